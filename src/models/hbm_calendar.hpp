// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Slot calendars of one pseudo-channel. A calendar is a bit ring over fixed time slots; a request
// takes the first slots that fit at or after its ready time, so a later request may fill a hole
// that an earlier, longer waiting one left. That stands in for the reordering of an FR-FCFS
// scheduler.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace trn3sim::models {

// First slot boundary at or after a time, without an integer division.
class SlotGrid {
 public:
  SlotGrid() = default;
  SlotGrid(std::int64_t slot, std::int64_t origin)
      : slot_(slot), origin_(origin), inverse_(1.0 / static_cast<double>(slot)) {}
  [[nodiscard]] std::int64_t ceil_slot(std::int64_t time) const {
    const std::int64_t offset = time - origin_;
    if (offset <= 0) return 0;
    // The quotient is off by at most a few units for offsets up to 2^63; the loops mend it exactly.
    auto index = static_cast<std::int64_t>(static_cast<double>(offset) * inverse_);
    while (index * slot_ < offset) ++index;
    while ((index - 1) * slot_ >= offset) --index;
    return index;
  }
  [[nodiscard]] std::int64_t time(std::int64_t slot) const { return origin_ + slot * slot_; }
  // Moves slot `slot` to `time`.
  void anchor(std::int64_t slot, std::int64_t time) { origin_ = time - slot * slot_; }

 private:
  std::int64_t slot_ = 1;
  std::int64_t origin_ = 0;
  double inverse_ = 1.0;
};

inline constexpr std::int64_t kMaxBankGroups = 6;
inline constexpr std::int64_t kFirstSlot = 64;  // slot of the request that an idle calendar meets

// A ring of 512 slots with several bits per slot, the fields. One cache line holds 64 slots of all
// fields. Slots are >= 0; slots before the ring count as taken.
class SlotRing {
 public:
  static constexpr int kTaken = 0;    // the shared resource
  static constexpr int kSpecial = 1;  // meaning set by the owner
  static constexpr int group(std::int64_t g) { return static_cast<int>(g) + 2; }

  void clear() {
    lines_.fill(Line{});
    base_ = full_ = 0;
  }
  // Makes slots up to `last` valid; the oldest fall out.
  void reach(std::int64_t last) {
    const std::int64_t wanted = (last >> 6) - kLines + 1;
    if (wanted <= base_) return;
    const std::int64_t fresh = wanted - base_ < kLines ? wanted - base_ : kLines;
    for (std::int64_t i = 0; i < fresh; ++i) line(wanted + kLines - 1 - i) = Line{};
    base_ = wanted;
    if (full_ < base_) full_ = base_;
  }
  [[nodiscard]] std::int64_t clamp(std::int64_t s) const { return s < base_ * 64 ? base_ * 64 : s; }
  // `earliest`, or a later slot if all slots before that are taken.
  [[nodiscard]] std::int64_t first_open(std::int64_t earliest) {
    while (full_ < base_ + kLines - 1 && bits(full_, kTaken) == ~std::uint64_t{0}) ++full_;
    return earliest < full_ * 64 ? full_ * 64 : earliest;
  }
  // 64 slots from `s`, bit 0 first.
  [[nodiscard]] std::uint64_t window(int field, std::int64_t s) const {
    const std::int64_t word = s >> 6;
    const auto shift = static_cast<unsigned>(s & 63);
    // Two shifts, since a shift by 64 is undefined.
    return bits(word, field) >> shift | (bits(word + 1, field) << 1) << (63 - shift);
  }
  void put(int field, std::int64_t s, std::uint64_t pattern) {
    const auto shift = static_cast<unsigned>(s & 63);
    bits(s >> 6, field) |= pattern << shift;
    bits((s >> 6) + 1, field) |= (pattern >> 1) >> (63 - shift);
  }
  // Sets slots first..last; those before the ring are left out.
  void range(int field, std::int64_t first, std::int64_t last) {
    first = clamp(first);
    for (std::int64_t word = first >> 6; word <= last >> 6; ++word) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (word == first >> 6) mask &= ~std::uint64_t{0} << (first & 63);
      if (word == last >> 6) mask &= ~std::uint64_t{0} >> (63 - (last & 63));
      bits(word, field) |= mask;
    }
  }

 private:
  static constexpr std::int64_t kLines = 8;
  struct alignas(64) Line {
    std::array<std::uint64_t, 8> field{};
  };
  static_assert(kMaxBankGroups + 2 <= 8);
  Line& line(std::int64_t word) { return lines_[static_cast<std::size_t>(word & (kLines - 1))]; }
  std::uint64_t& bits(std::int64_t word, int field) {
    return line(word).field[static_cast<std::size_t>(field)];
  }
  [[nodiscard]] std::uint64_t bits(std::int64_t word, int field) const {
    return lines_[static_cast<std::size_t>(word & (kLines - 1))]
        .field[static_cast<std::size_t>(field)];
  }
  std::array<Line, kLines> lines_{};
  std::int64_t base_ = 0;  // first valid word
  std::int64_t full_ = 0;  // all slots before this word are taken
};

// Column commands: one slot is one burst on the data bus. A run of n columns of one bank group
// takes every `stride`-th slot (tCCD_L); runs of other groups interleave.
class ColumnCalendar {
 public:
  // `period4`: slots from the start of a four-column run to the next column of its group.
  ColumnCalendar(std::int64_t stride, std::int64_t period4)
      : stride_(stride), gap_(period4 > 3 * stride ? period4 - 3 * stride : 1) {
    for (std::size_t n = 1; n < pattern_.size(); ++n) {
      pattern_[n] = pattern_[n - 1] | std::uint64_t{1}
                                          << (static_cast<std::int64_t>(n - 1) * stride);
    }
  }
  void clear() { ring_.clear(); }
  // No slot before this one is free.
  std::int64_t first_open() { return ring_.first_open(0); }
  // Books `n` (1..4) columns of `group` at the first fit at or after `earliest`; returns the start.
  // `earliest` must be at least first_open(). Reads keep out of the slots that `keep_reads_out`
  // named.
  std::int64_t book(std::int64_t group, std::int64_t n, std::int64_t earliest, bool write) {
    const int of_group = SlotRing::group(group);
    const std::int64_t length = span(n);
    std::int64_t s = earliest;
    for (;; s += 64 - length) {
      ring_.reach(s + 191);
      std::uint64_t taken = ring_.window(SlotRing::kTaken, s) | ring_.window(of_group, s);
      if (!write) taken |= ring_.window(SlotRing::kSpecial, s);
      const std::uint64_t open = ~taken;
      const std::uint64_t pair = open & (open >> stride_);
      std::uint64_t fit = open;
      if (n == 4) {
        fit = pair & (pair >> (2 * stride_));
      } else if (n > 1) {
        fit = n == 2 ? pair : pair & (open >> (2 * stride_));
      }
      if (fit != 0) {
        s += std::countr_zero(fit);
        break;
      }
    }
    ring_.put(SlotRing::kTaken, s, pattern_[static_cast<std::size_t>(n)]);
    ring_.range(of_group, s - gap_ + 1, s + length + gap_ - 1);
    return s;
  }
  [[nodiscard]] std::int64_t span(std::int64_t n) const { return (n - 1) * stride_; }
  void keep_reads_out(std::int64_t first, std::int64_t last) {
    ring_.reach(last + 1);
    ring_.range(SlotRing::kSpecial, first, last);
  }

 private:
  SlotRing ring_;
  std::int64_t stride_;
  std::int64_t gap_;
  std::array<std::uint64_t, 5> pattern_{};  // by number of columns
};

// Row activations: one slot is tRRD_S, at most four in `window` consecutive slots (tFAW), and
// `group_gap` slots between two of the same bank group (tRRD_L).
class ActivateCalendar {
 public:
  // `window` is at most 32.
  ActivateCalendar(std::int64_t window, std::int64_t group_gap)
      : window_(window), mask_((std::uint64_t{1} << window) - 1), group_gap_(group_gap) {}
  void clear() { ring_.clear(); }
  std::int64_t book(std::int64_t group, std::int64_t earliest) {
    const int of_group = SlotRing::group(group);
    std::int64_t s = ring_.first_open(earliest);
    for (;; s += 64) {
      ring_.reach(s + 191);
      const std::uint64_t open = ~(ring_.window(SlotRing::kTaken, s) | ring_.window(of_group, s));
      if (open != 0) {
        s += std::countr_zero(open);
        break;
      }
    }
    // kSpecial holds the activations; kTaken also the slots in which a fifth would break tFAW.
    ring_.put(SlotRing::kSpecial, s, 1);
    const std::int64_t first = ring_.clamp(s - window_ + 1);
    const std::uint64_t booked = ring_.window(SlotRing::kSpecial, first);
    std::uint64_t taken = std::uint64_t{1} << (s - first);
    for (std::int64_t w = 0; w <= s - first; ++w) {
      if (four_or_more((booked >> w) & mask_)) taken |= mask_ << w;
    }
    ring_.put(SlotRing::kTaken, first, taken);
    ring_.range(of_group, s - group_gap_ + 1, s + group_gap_ - 1);
    return s;
  }

 private:
  static bool four_or_more(std::uint64_t bits) {
    for (int i = 0; i < 3; ++i) bits &= bits - 1;
    return bits != 0;
  }
  SlotRing ring_;
  std::int64_t window_;
  std::uint64_t mask_;
  std::int64_t group_gap_;
};

}  // namespace trn3sim::models
