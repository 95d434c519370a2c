// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Cost and event counts of one instruction: plain functions of the instruction and the chip.
//
// Sources: the Neuron NKI 2.26 ISA reference (per-instruction cost formulas) and the Trainium2 and
// Trainium3 NKI architecture guides (performance modes),
// https://awsdocs-neuron.readthedocs-hosted.com.
#pragma once

#include <string_view>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/event_counts.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

struct InstructionCost {
  std::int64_t cycles = 0;  // engine clock; LoadStationary: of its (background) load
  EventCounts counts;       // dynamic events of one execution; DMA bytes are not in here
};

// Cycles by the per-instruction formulas of the Neuron ISA documentation (NKI 2.26) with the
// performance modes of the chip. `engine`: the stream that holds the instruction. A combination
// that the hardware does not have (a matmul on VectorE, QuantizeMx on a chip without it, ...) is an
// InternalError: kernels must not emit it.
//
// Conventions of the counts: PSUM words count 4 bytes (FP32 accumulators) whatever `dtype` is; a
// MultiplyMoving reads and writes the accumulators; MX operands include their scale bytes.
InstructionCost instruction_cost(const Instruction& instruction, Engine engine,
                                 const config::ChipSpec& chip);

// Cycles of VectorE's and ScalarE's accesses that an instruction spends beside the next one, as long
// as that does not depend on it; the cost of an instruction that does includes them.
std::int64_t access_latency(const Instruction& instruction, Engine engine);

// Elements per lane and cycle of a copy or tensor-scalar by the performance modes of the engine:
// 4 between contiguous SBUF tiles of 2-byte data, 2 if one side lies in PSUM or is not contiguous,
// at most the engine's fastest mode.
std::int64_t copy_speedup(const Instruction& instruction, const config::LaneEngineSpec& engine);

// Ports (bits 1 << Port) that the instruction needs for itself: `shared_port` of SBUF and PSUM.
std::uint8_t shared_ports(const Instruction& instruction, Engine engine,
                          const config::ChipSpec& chip);

// SyncE runs at the ScalarE clock (its own is not published).
base::Frequency engine_clock(const config::ChipSpec& chip, Engine engine);

std::string_view name(Engine engine);
std::string_view name(Opcode op);

// Event counts of a whole program (loops multiplied out), HBM and DMA bytes included, activates
// not.
EventCounts program_counts(const TileProgram& program, const config::ChipSpec& chip);

// Executions of each instruction of one stream with the loops multiplied out, by index into
// TileProgram::instructions. Throws InternalError if the loops do not nest.
std::vector<std::int64_t> execution_counts(const TileProgram& program,
                                           const std::vector<StreamNode>& stream);

// Time at the array's peak for the executed MACs of every format (transposes not counted), of one
// core's worth of array: divide by the cores that share the work.
base::Time tensor_ideal_time(const EventCounts& counts, const config::ChipSpec& chip);

}  // namespace trn3sim::models
