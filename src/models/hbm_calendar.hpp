// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Calendar of the row activations of one pseudo-channel: a bit ring over fixed time slots. A
// request takes the first slot that fits at or after its ready time, so a later request may fill a
// hole that an earlier, longer waiting one left. That stands in for the reordering of an FR-FCFS
// scheduler.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "models/hbm_columns.hpp"

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

inline constexpr std::int64_t kFirstSlot = 64;  // slot of the request that an idle calendar meets

// A ring of 512 slots with several bits per slot, the fields. Slots are >= 0; slots before the ring
// count as taken.
class SlotRing {
 public:
  static constexpr int kTaken = 0;    // the shared resource
  static constexpr int kSpecial = 1;  // meaning set by the owner
  static constexpr int group(std::int64_t g) { return static_cast<int>(g) + 2; }

  void clear() {
    lines_.fill(Line{});
    base_ = 0;
    full_ = 1;
  }
  // Makes slots up to `last` valid; the oldest fall out.
  void reach(std::int64_t last) {
    const std::int64_t wanted = (last >> 6) - kLines + 1;
    if (wanted <= base_) return;
    const std::int64_t fresh = wanted - base_ < kLines ? wanted - base_ : kLines;
    for (std::int64_t i = 0; i < fresh; ++i) line(wanted + kLines - 1 - i) = Line{};
    base_ = wanted;
    if (full_ <= base_) full_ = base_ + 1;
  }
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

 private:
  static constexpr std::int64_t kLines = 8;
  struct Line {
    std::array<std::uint64_t, kMaxBankGroups + 2> field{};
  };
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
  std::int64_t full_ = 1;  // all slots before this word are taken; the first word is a margin
};

// Row activations: one slot is tRRD_S, at most four in `window` consecutive slots (tFAW), and
// `group_gap` slots between two of the same bank group (tRRD_L).
class ActivateCalendar {
 public:
  // Both are at most 32.
  ActivateCalendar(std::int64_t window, std::int64_t group_gap)
      : window_(window),
        mask_((std::uint64_t{1} << window) - 1),
        group_gap_(group_gap),
        group_pattern_((std::uint64_t{1} << (2 * group_gap - 1)) - 1) {}
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
    const std::int64_t first = s - window_ + 1;
    const std::uint64_t full = full_windows(ring_.window(SlotRing::kSpecial, first)) & mask_;
    ring_.put(SlotRing::kTaken, first, smeared(full, window_) | std::uint64_t{1} << (window_ - 1));
    ring_.put(of_group, s - group_gap_ + 1, group_pattern_);
    return s;
  }

 private:
  // Bit w: four or more of the bits w to w + window - 1. Adds all windows at once, bit by bit of
  // their counts.
  [[nodiscard]] std::uint64_t full_windows(std::uint64_t bits) const {
    std::uint64_t ones = 0;
    std::uint64_t twos = 0;
    std::uint64_t fours = 0;
    for (std::int64_t i = 0; i < window_; ++i, bits >>= 1) {
      const std::uint64_t carry = ones & bits;
      ones ^= bits;
      fours |= twos & carry;
      twos ^= carry;
    }
    return fours;
  }
  // Each bit, and the `count` - 1 bits above it.
  static std::uint64_t smeared(std::uint64_t bits, std::int64_t count) {
    for (std::int64_t done = 1; done < count;) {
      const std::int64_t step = done < count - done ? done : count - done;
      bits |= bits << step;
      done += step;
    }
    return bits;
  }
  SlotRing ring_;
  std::int64_t window_;
  std::uint64_t mask_;
  std::int64_t group_gap_;
  std::uint64_t group_pattern_;
};

}  // namespace trn3sim::models
