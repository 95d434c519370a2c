// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// In-order TensorE pipeline, in integer cycles of the tensor clock.
//
// The array holds the weights in use and one shadow set. A LoadStationary fills the shadow set and
// may start when the instruction before it has started (the weights of the load before are then in
// use); a MultiplyMoving waits for the array and for the load before it. So a load hides behind the
// running MultiplyMoving and is exposed when it is longer or when its operand comes late. A limiter
// of the array's current slows both while it is engaged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "trn3sim/models/didt_limiter.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

class TensorPipeline {
 public:
  TensorPipeline() = default;
  // `fill_cycles`: from the end of a pass until its last result is in PSUM.
  // `overhead_cycles`: array cycles lost after each MultiplyMoving; its results do not wait for
  // them. `background_transpose`: PE transposes use the load path instead of the array.
  TensorPipeline(std::int64_t fill_cycles, std::int64_t overhead_cycles, bool background_transpose,
                 DidtLimiter limiter = {})
      : fill_(fill_cycles),
        overhead_(overhead_cycles),
        background_transpose_(background_transpose),
        limiter_(std::move(limiter)) {}

  void reset() {
    issued_ = array_free_ = load_free_ = weights_ready_ = limited_ = 0;
    limiter_.reset();
  }

  struct Slot {
    std::int64_t start, end;  // cycles: occupancy of the array or of the load path
    std::int64_t visible;     // operands released (load) or results in PSUM (pass)
    bool array;               // occupies the array
  };
  // `cycles`: cost of the instruction; `ready`: earliest start allowed by semaphores.
  Slot issue(Opcode op, std::int64_t cycles, std::int64_t ready) {
    const std::int64_t order = std::max(ready, issued_);
    if (op == Opcode::LoadStationary) {
      issued_ = std::max(order, load_free_);
      load_free_ = weights_ready_ = issued_ + limiter_.work(issued_, cycles);
      return {issued_, load_free_, load_free_, false};
    }
    if (op == Opcode::Transpose && background_transpose_) {
      issued_ = std::max(order, load_free_);
      load_free_ = issued_ + limiter_.work(issued_, cycles);
      return {issued_, load_free_, load_free_ + fill_, false};
    }
    issued_ = std::max({order, array_free_, weights_ready_});
    const std::int64_t taken = limiter_.work(issued_, cycles);
    limited_ += taken - cycles;
    array_free_ = issued_ + taken + (op == Opcode::MultiplyMoving ? overhead_ : 0);
    limiter_.occupied(array_free_);
    return {issued_, array_free_, issued_ + taken + fill_, true};
  }

  [[nodiscard]] DidtLimiter& limiter() { return limiter_; }
  [[nodiscard]] const DidtLimiter& limiter() const { return limiter_; }
  // The array has done all passes so far.
  [[nodiscard]] std::int64_t array_free() const { return array_free_; }
  // Cycles that passes on the array took longer because of the limiter.
  [[nodiscard]] std::int64_t limited() const { return limited_; }

 private:
  std::int64_t fill_ = 0, overhead_ = 0;
  bool background_transpose_ = false;
  DidtLimiter limiter_;
  std::int64_t limited_ = 0;
  std::int64_t issued_ = 0;  // start of the instruction before
  std::int64_t array_free_ = 0, load_free_ = 0, weights_ready_ = 0;
};

}  // namespace trn3sim::models
