// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Calendar of the columns of one pseudo-channel. Time is divided into bins; a bin holds the time
// for which the data bus and each bank group are taken, as amounts without a position. A run of
// columns takes what it needs from the first bins with room, at or after its ready time, split over
// bins if need be. A later run fills what an earlier, longer waiting one left, which stands in for
// FR-FCFS.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace trn3sim::models {

inline constexpr std::int64_t kMaxBankGroups = 8;

// One column on the bus, and the bank group's interval between two. All times in femtoseconds.
struct ColumnTiming {
  std::int64_t slot = 0;
  std::int64_t ccd_l = 0;
  std::int64_t bin = 0;
};

class ColumnCalendar {
 public:
  // Starts of the first and the last column of a run.
  struct Booked {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  explicit ColumnCalendar(const ColumnTiming& timing)
      : slot_(timing.slot),
        ccd_l_(timing.ccd_l),
        bin_(timing.bin),
        inverse_(1.0 / static_cast<double>(timing.bin)),
        share_{static_cast<double>(timing.ccd_l) / static_cast<double>(timing.slot),
               static_cast<double>(timing.ccd_l) / static_cast<double>(2 * timing.slot)} {}

  // Forgets all bookings; the first bin starts at `time`.
  void clear(std::int64_t time) {
    newest_ += kBins;
    origin_ = time - newest_ * bin_;
    full_ = {newest_, newest_};
  }

  // Books `columns` columns of `group`, and of its neighbour `group ^ 1` too if `pair`, not before
  // `ready`. Reads keep out of the times that `keep_reads_out` named.
  Booked book(std::int64_t ready, std::int64_t group, std::int64_t columns, bool pair, bool write) {
    Need need;
    need.ready = ready;
    need.work = columns * ccd_l_;
    need.bus = (columns * slot_) << (pair ? 1 : 0);
    need.own = static_cast<std::size_t>(group);
    need.other = pair ? need.own ^ 1 : need.own;
    const std::int64_t natural = (columns - 1) * ccd_l_ + (pair ? slot_ : 0);
    const std::size_t seen = write ? 1 : 0;
    std::int64_t k = skip_full(seen);
    std::int64_t start = origin_ + k * bin_;
    if (ready >= start + bin_) {
      k = index(ready);
      start = origin_ + k * bin_;
    }
    std::int64_t first = -1;
    for (;; ++k, start += bin_) {
      Bin* bin = at(k);
      if (bin == nullptr) continue;
      const std::int64_t left = std::min(bin_, start + bin_ - ready);
      const std::int64_t room = std::min(bin_ - bin->bus[seen], left);
      const std::int64_t group_room =
          std::min(bin_ - std::max(bin->group[need.own], bin->group[need.other]), left);
      if (room <= 0 || group_room <= 0) continue;
      if (first < 0) first = std::max(ready, start);
      if (need.work > group_room || need.bus > room) {
        take_part(*bin, need, room, group_room, write);
        if (need.work + need.bus > 0) continue;
      } else {
        take(*bin, need, need.work, need.bus, write);
      }
      const std::int64_t packed =
          start + std::max(bin->bus[seen] - slot_, std::int64_t{bin->group[need.own]} - ccd_l_);
      return {first, std::max(ready + natural, packed)};
    }
  }

  // Writes will not come before `time` any more.
  void begin_writes(std::int64_t time) { full_[1] = std::max(full_[1], index(time)); }

  // No read between the two times, but for those that are booked.
  void keep_reads_out(std::int64_t from, std::int64_t to) {
    from = std::max(from, closed_until_);
    closed_until_ = std::max(closed_until_, to);
    for (std::int64_t k = std::max(index(from), full_[0]); from < to; ++k) {
      const std::int64_t end = std::min(origin_ + (k + 1) * bin_, to);
      if (Bin* bin = at(k); bin != nullptr && end > from)
        bin->bus[0] += static_cast<std::int32_t>(end - from);
      from = std::max(from, end);
    }
  }
  void reset() { *this = ColumnCalendar({slot_, ccd_l_, bin_}); }

 private:
  static constexpr std::int64_t kBins = 128;
  struct Bin {
    std::int64_t index = -1;
    std::array<std::int32_t, 2> bus{};  // as reads see it, as writes see it
    std::array<std::int32_t, kMaxBankGroups> group{};
  };

  // What a run still has to book.
  struct Need {
    std::int64_t ready, work, bus;
    std::size_t own, other;
  };
  // The part that the rooms of bus and groups allow, both in proportion.
  void take_part(Bin& bin, Need& need, std::int64_t room, std::int64_t group_room, bool write) {
    const double share = share_[need.own != need.other ? 1 : 0];
    std::int64_t part =
        std::min(need.work, static_cast<std::int64_t>(static_cast<double>(room) * share));
    std::int64_t bus_part = std::min(need.bus, room);
    if (part > group_room) {
      part = group_room;
      bus_part = std::min(need.bus, static_cast<std::int64_t>(static_cast<double>(part) / share));
    }
    take(bin, need, part, bus_part, write);
  }
  static void take(Bin& bin, Need& need, std::int64_t part, std::int64_t bus_part, bool write) {
    need.work -= part;
    need.bus -= bus_part;
    bin.group[need.own] += static_cast<std::int32_t>(part);
    if (need.other != need.own) bin.group[need.other] += static_cast<std::int32_t>(part);
    bin.bus[1] += static_cast<std::int32_t>(bus_part);
    if (!write) bin.bus[0] += static_cast<std::int32_t>(bus_part);
  }
  // The bin that `time` lies in, or 0 before the first.
  [[nodiscard]] std::int64_t index(std::int64_t time) const {
    const std::int64_t offset = time - origin_;
    if (offset <= 0) return 0;
    auto k = static_cast<std::int64_t>(static_cast<double>(offset) * inverse_);
    while (k * bin_ > offset) --k;
    while ((k + 1) * bin_ <= offset) ++k;
    return k;
  }
  // Bin `k`, empty when new; nullptr if a later one has its place, which counts as full.
  Bin* at(std::int64_t k) {
    Bin& bin = bins_[static_cast<std::size_t>(k & (kBins - 1))];
    if (bin.index == k) return &bin;
    if (bin.index > k) return nullptr;
    bin = Bin{};
    bin.index = k;
    newest_ = std::max(newest_, k);
    return &bin;
  }
  std::int64_t skip_full(std::size_t seen) {
    for (std::int64_t& k = full_[seen];; ++k) {
      const Bin& bin = bins_[static_cast<std::size_t>(k & (kBins - 1))];
      if (bin.index != k || bin.bus[seen] < bin_) return k;
    }
  }

  std::int64_t slot_, ccd_l_, bin_;
  double inverse_;
  std::array<double, 2> share_;  // group time per bus time of a run, of a pair
  std::int64_t origin_ = 0;
  std::array<std::int64_t, 2> full_{};  // the bus of all bins before these is taken
  std::int64_t newest_ = 0;             // latest bin in use
  std::int64_t closed_until_ = 0;
  std::array<Bin, kBins> bins_{};
};

}  // namespace trn3sim::models
