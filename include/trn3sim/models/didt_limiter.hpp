// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The limiter of TensorE's current (dI/dt), in integer cycles of the tensor clock.
//
// When work begins after idling, the array runs at a share of its rate that grows linearly to the
// full rate over the ramp, whether it works or not in between ("starts at roughly 50 % utilization
// and ramps to full over the first ~3 microseconds"). The limit is back, for the next instruction,
// once a window was utilised less than the re-arm share ("below 50 % over any ~3 microsecond
// window", Neuron Explorer glossary): once idle time within one window, not counting what lies
// before the work began, exceeds `window x (1 - rearm_share)`. Utilisation is work done over work at
// the full rate (the limit itself is one "of the maximum utilization"), so cycles that the limit
// takes away are idle ones too. An idle stretch can only grow the idle time of the
// window that ends now, so it is enough to look when the next instruction starts.
//
// With x cycles since the work began, R the ramp and u the start share, the work done is
//   W(x) = u x + (1 - u) x^2 / (2 R) for x <= R,  x - R (1 - u) / 2 above.
// An instruction of c cycles that starts at x ends at the first cycle y with W(y) >= W(x) + c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::models {

class DidtLimiter {
 public:
  // No limit.
  DidtLimiter() = default;
  explicit DidtLimiter(const config::TensorSpec& spec);

  [[nodiscard]] bool on() const { return on_; }
  // Idle for ever: the next instruction begins the ramp.
  void reset();
  // As after work without end until the first instruction.
  void warm_up();
  // No limit until reset().
  void release() { on_ = false; }

  // Starts an instruction of `cycles` at full rate, not before the start of the one before; the
  // cycles that it takes.
  std::int64_t work(std::int64_t start, std::int64_t cycles) {
    if (!on_) return cycles;
    if (start > active_until_ || start < ramp_end_) return work_slowly(start, cycles);
    if (start + cycles > active_until_) active_until_ = start + cycles;
    return cycles;
  }
  // The instruction keeps the array until `cycle`.
  void occupied(std::int64_t cycle) {
    if (cycle > active_until_) active_until_ = cycle;
  }

  // Moves the origin of time: cycle c becomes c - `by`.
  void shift(std::int64_t by);

  // Where the limiter stands at the end of the work so far.
  [[nodiscard]] std::int64_t active_until() const { return active_until_; }
  // Cycles since the work began, at most the ramp; 0 before any.
  [[nodiscard]] std::int64_t age() const;
  // Idle cycles in the window that ends there.
  [[nodiscard]] std::int64_t idle() const;

 private:
  struct Gap {
    std::int64_t start, end;
  };
  std::int64_t work_slowly(std::int64_t start, std::int64_t cycles);
  void add_gap(std::int64_t from, std::int64_t to);
  void note_gap(std::int64_t start);
  void begin(std::int64_t at);
  void forget_gaps();
  [[nodiscard]] std::int64_t end_of(std::int64_t x, std::int64_t cycles) const;

  bool exists_ = false, on_ = false;
  std::int64_t ramp_ = 0, window_ = 0;  // cycles
  std::int64_t idle_limit_ = 0;         // idle cycles of a window that bring the limit back
  std::int64_t share_ = 0;              // at the start, in 1 / kOne
  bool idle_ = true, warm_ = false;     // before the first instruction
  std::int64_t begin_ = 0, ramp_end_ = 0;
  std::int64_t active_until_ = 0;
  std::vector<Gap> gaps_;  // not utilised, in the window, ascending from first_gap_
  std::size_t first_gap_ = 0;
  std::int64_t idle_cycles_ = 0;  // their sum
};

}  // namespace trn3sim::models
