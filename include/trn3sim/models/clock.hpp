// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Edges of a clock in femtoseconds without 128-bit division in the common case. Edge c lies at
// ceil(c x 1e15 / f), as base::cycles_time; edge_at_or_after() is its exact inverse.
#pragma once

#include <cstdint>
#include <numeric>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::models {

class ClockEdges {
 public:
  ClockEdges() = default;
  explicit ClockEdges(base::Frequency f) {
    const std::int64_t g = std::gcd(base::kFemtosPerSecond, f.count());
    femtos_ = base::kFemtosPerSecond / g;  // femtos_ / cycles_ = period
    cycles_ = f.count() / g;
    max_cycles_ = (INT64_MAX - cycles_) / femtos_;
    max_time_ = INT64_MAX / cycles_;
  }

  // Time of edge `cycles` (>= 0), rounded up to a femtosecond.
  [[nodiscard]] base::Time edge(std::int64_t cycles) const {
    if (cycles <= max_cycles_) [[likely]]
      return base::Time((cycles * femtos_ + cycles_ - 1) / cycles_);
    return base::Time(static_cast<std::int64_t>(base::ceil_div(Int128(cycles) * femtos_, cycles_)));
  }
  // Smallest c >= 0 with edge(c) >= t.
  [[nodiscard]] std::int64_t edge_at_or_after(base::Time t) const {
    if (t.count() <= 0) return 0;
    const std::int64_t before = t.count() - 1;
    if (before <= max_time_) [[likely]]
      return before * cycles_ / femtos_ + 1;
    return static_cast<std::int64_t>(Int128(before) * cycles_ / femtos_) + 1;
  }

 private:
  std::int64_t femtos_ = 1, cycles_ = 1, max_cycles_ = 0, max_time_ = 0;
};

}  // namespace trn3sim::models
