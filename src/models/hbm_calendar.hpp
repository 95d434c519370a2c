// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Slot calendars of one pseudo-channel. A calendar is a bit ring over fixed time slots; a request
// takes the first slots that fit at or after its ready time, so a later request may fill a hole that
// an earlier, longer waiting one left. That stands in for the reordering of an FR-FCFS scheduler.
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

// A ring of bits; the owner keeps the valid range. Slots are >= 0.
template <int kWords>
class SlotBits {
  static_assert(std::has_single_bit(static_cast<unsigned>(kWords)));

 public:
  // 64 bits from slot `s`, bit 0 first. Words word(s) and word(s) + 1 must be in the valid range.
  [[nodiscard]] std::uint64_t window(std::int64_t s) const {
    const std::int64_t word = s >> 6;
    const auto shift = static_cast<unsigned>(s & 63);
    const std::uint64_t low = at(word) >> shift;
    return shift == 0 ? low : low | (at(word + 1) << (64 - shift));
  }
  void put(std::int64_t s, std::uint64_t pattern) {
    const auto shift = static_cast<unsigned>(s & 63);
    at(s >> 6) |= pattern << shift;
    if (shift != 0) at((s >> 6) + 1) |= pattern >> (64 - shift);
  }
  // Sets (or clears) slots first..last; both in the valid range.
  template <bool kSet>
  void range(std::int64_t first, std::int64_t last) {
    for (std::int64_t word = first >> 6; word <= last >> 6; ++word) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (word == first >> 6) mask &= ~std::uint64_t{0} << (first & 63);
      if (word == last >> 6) mask &= ~std::uint64_t{0} >> (63 - (last & 63));
      if constexpr (kSet) {
        at(word) |= mask;
      } else {
        at(word) &= ~mask;
      }
    }
  }
  void zero_word(std::int64_t word) { at(word) = 0; }
  void clear() { words_.fill(0); }

 private:
  [[nodiscard]] std::uint64_t at(std::int64_t word) const {
    return words_[static_cast<std::size_t>(word) & (kWords - 1)];
  }
  std::uint64_t& at(std::int64_t word) {
    return words_[static_cast<std::size_t>(word) & (kWords - 1)];
  }
  std::array<std::uint64_t, kWords> words_{};
};

inline constexpr std::int64_t kMaxBankGroups = 8;
inline constexpr std::int64_t kFirstSlot = 64;  // slot of an anchored calendar's first request

// One shared ring base for the map of the resource and one map per bank group.
template <int kWords>
class GroupedBits {
 public:
  explicit GroupedBits(std::int64_t groups) : groups_(groups) {}
  void clear() {
    base_ = 0;
    all_.clear();
    for (auto& group : group_) group.clear();
  }
  // Makes words up to that of `last` valid; the oldest words fall out and count as taken.
  void reach(std::int64_t last) {
    const std::int64_t wanted = (last >> 6) - kWords + 1;
    if (wanted <= base_) return;
    const std::int64_t fresh = wanted - base_ < kWords ? wanted - base_ : kWords;
    for (std::int64_t i = 0; i < fresh; ++i) {
      const std::int64_t word = wanted + kWords - 1 - i;
      all_.zero_word(word);
      for (std::int64_t g = 0; g < groups_; ++g) group_[static_cast<std::size_t>(g)].zero_word(word);
    }
    base_ = wanted;
  }
  [[nodiscard]] std::int64_t clamp(std::int64_t s) const { return s < base_ * 64 ? base_ * 64 : s; }
  SlotBits<kWords>& all() { return all_; }
  SlotBits<kWords>& group(std::int64_t g) { return group_[static_cast<std::size_t>(g)]; }

 private:
  std::int64_t groups_;
  std::int64_t base_ = 0;
  SlotBits<kWords> all_;
  std::array<SlotBits<kWords>, kMaxBankGroups> group_{};
};

// Column commands: one slot is one burst on the data bus. A run of n columns of one bank group takes
// every `stride`-th slot (tCCD_L); runs of other groups interleave.
class ColumnCalendar {
 public:
  // `period4`: slots from the start of a four-column run to the next column of its group.
  ColumnCalendar(std::int64_t groups, std::int64_t stride, std::int64_t period4)
      : bits_(groups), stride_(stride), gap_(period4 - 3 * stride) {
    if (gap_ < 1) gap_ = 1;
  }
  void clear() { bits_.clear(); }
  // Books `n` (1..4) columns of `group` at the first fit at or after `earliest`; returns the start.
  std::int64_t book(std::int64_t group, std::int64_t n, std::int64_t earliest) {
    std::int64_t s = bits_.clamp(earliest);
    const std::int64_t span = (n - 1) * stride_;
    auto& of_group = bits_.group(group);
    for (;; s += 64 - span) {
      bits_.reach(s + 191);
      const std::uint64_t open = ~(bits_.all().window(s) | of_group.window(s));
      std::uint64_t fit = open;
      for (std::int64_t i = 1; i < n; ++i) fit &= open >> (i * stride_);
      if (fit != 0) {
        s += std::countr_zero(fit);
        break;
      }
    }
    std::uint64_t pattern = 1;
    for (std::int64_t i = 1; i < n; ++i) pattern |= std::uint64_t{1} << (i * stride_);
    bits_.all().put(s, pattern);
    of_group.range<true>(bits_.clamp(s - gap_ + 1), s + span + gap_ - 1);
    return s;
  }
  [[nodiscard]] std::int64_t span(std::int64_t n) const { return (n - 1) * stride_; }
  void block(std::int64_t first, std::int64_t last) {
    bits_.reach(last + 1);
    first = bits_.clamp(first);
    if (first <= last) bits_.all().range<true>(first, last);
  }
  void unblock(std::int64_t first, std::int64_t last) {
    bits_.reach(last + 1);
    first = bits_.clamp(first);
    if (first <= last) bits_.all().range<false>(first, last);
  }

 private:
  GroupedBits<8> bits_;
  std::int64_t stride_;
  std::int64_t gap_;
};

// Row activations: one slot is tRRD_S, at most four in `window` consecutive slots (tFAW), and
// `group_gap` slots between two of the same bank group (tRRD_L).
class ActivateCalendar {
 public:
  ActivateCalendar(std::int64_t groups, std::int64_t window, std::int64_t group_gap)
      : blocked_(groups),
        window_(window),
        mask_(window >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << window) - 1),
        group_gap_(group_gap) {}
  void clear() {
    blocked_.clear();
    booked_.clear();
  }
  std::int64_t book(std::int64_t group, std::int64_t earliest) {
    std::int64_t s = blocked_.clamp(earliest);
    auto& of_group = blocked_.group(group);
    for (;; s += 64) {
      reach(s + 191);
      const std::uint64_t open = ~(blocked_.all().window(s) | of_group.window(s));
      if (open != 0) {
        s += std::countr_zero(open);
        break;
      }
    }
    booked_.put(s, 1);
    blocked_.all().put(s, 1);
    for (std::int64_t w = blocked_.clamp(s - window_ + 1); w <= s; ++w) {
      if (std::popcount(booked_.window(w) & mask_) >= 4) {
        blocked_.all().range<true>(w, w + window_ - 1);
      }
    }
    of_group.range<true>(blocked_.clamp(s - group_gap_ + 1), s + group_gap_ - 1);
    return s;
  }

 private:
  void reach(std::int64_t last) {
    const std::int64_t before = blocked_.clamp(0) >> 6;
    blocked_.reach(last);
    const std::int64_t after = blocked_.clamp(0) >> 6;
    const std::int64_t fresh = after - before < kWords ? after - before : kWords;
    for (std::int64_t i = 0; i < fresh; ++i) booked_.zero_word(after + kWords - 1 - i);
  }
  static constexpr int kWords = 8;
  GroupedBits<kWords> blocked_;
  SlotBits<kWords> booked_;
  std::int64_t window_;
  std::uint64_t mask_;
  std::int64_t group_gap_;
};

}  // namespace trn3sim::models
