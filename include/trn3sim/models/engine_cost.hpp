// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Cost and event counts of one instruction: plain functions of the instruction and the chip.
#pragma once

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/event_counts.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

struct InstructionCost {
  std::int64_t cycles = 0;   // engine clock; LoadStationary: of its (background) load
  EventCounts counts;        // dynamic events of one execution
};

// Cycles by the per-instruction formulas of the Neuron ISA documentation (NKI 2.26) with the
// performance modes of the chip. `engine`: the stream that holds the instruction.
InstructionCost instruction_cost(const Instruction& instruction, Engine engine,
                                 const config::ChipSpec& chip);

base::Frequency engine_clock(const config::ChipSpec& chip, Engine engine);

// Event counts of a whole program (loops multiplied out), HBM and DMA bytes included, activates not.
EventCounts program_counts(const TileProgram& program, const config::ChipSpec& chip);

// In-order TensorE pipeline: LoadStationary runs in the background of the previous MultiplyMoving
// and is exposed when the array waits for it. Times in tensor cycles are converted from a running
// cycle count, never accumulated.
class TensorPipeline {
 public:
  explicit TensorPipeline(const config::ChipSpec& chip);
  void reset();
  struct Slot { base::Time start, end; };  // array occupancy; results visible `fill` later
  // `ready`: earliest start allowed by semaphores.
  Slot issue(const Instruction& instruction, const InstructionCost& cost, base::Time ready);
  [[nodiscard]] base::Time fill() const;

 private:
  const config::ChipSpec* chip_;
  base::Time array_free_, load_free_, weights_ready_;
};

}  // namespace trn3sim::models
