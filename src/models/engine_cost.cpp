// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/engine_cost.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::models {
namespace {

constexpr std::int64_t kAccumulatorBytes = 4;  // PSUM words are FP32
constexpr std::int64_t kBnStatsPerPartition = 6;
constexpr std::int64_t kReciprocalPasses = 8;
constexpr std::int64_t kLongStride = 16;  // bytes; from here on the ports give less
// A DMA trigger instruction took 8 ns in a published profile ("NKI DMA overview"): about 10 cycles.
constexpr std::int64_t kDmaTriggerCycles = 10;
// Start of a tensor access ("Trainium/Inferentia2 architecture guide": about 60 cycles); an
// instruction reads and writes.
constexpr std::int64_t kAccessCycles = 60;

std::int64_t ceil_over(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t data_bytes(Space space, base::DType dtype, std::int64_t elements) {
  return space == Space::Psum ? elements * kAccumulatorBytes : base::storage_bytes(dtype, elements);
}

void read(EventCounts& c, Space space, base::DType dtype, std::int64_t elements) {
  (space == Space::Psum ? c.psum_read_bytes : c.sbuf_read_bytes) +=
      data_bytes(space, dtype, elements);
}

void write(EventCounts& c, Space space, base::DType dtype, std::int64_t elements) {
  (space == Space::Psum ? c.psum_write_bytes : c.sbuf_write_bytes) +=
      data_bytes(space, dtype, elements);
}

[[noreturn]] void unsupported(const Instruction& i, Engine engine, const config::ChipSpec& chip,
                              std::string_view why) {
  base::check_failed(__FILE__, __LINE__, "instruction supported",
                     fmt::format("{} in {} on the {} engine of {}: {}", name(i.op),
                                 base::name(i.dtype), name(engine), chip.name, why));
}

// Passes through the array per moving column: more than one if the format has less than one MAC per
// PE and cycle.
std::int64_t array_passes(const Instruction& i, Engine engine, const config::ChipSpec& chip) {
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(i.dtype)];
  if (rate <= 0) unsupported(i, engine, chip, "the array does not multiply this format");
  const auto most_rows = static_cast<std::int64_t>(
      std::llround(static_cast<double>(chip.tensor.rows * i.sparsity) * std::max(1.0, rate)));
  if (i.rows > most_rows || i.columns > chip.tensor.columns)
    unsupported(i, engine, chip,
                fmt::format("{} rows x {} columns exceed {} x {}", i.rows, i.columns, most_rows,
                            chip.tensor.columns));
  return rate < 1 ? std::llround(1 / rate) : 1;
}

InstructionCost tensor_cost(const Instruction& i, const config::ChipSpec& chip) {
  const config::TensorSpec& t = chip.tensor;
  const std::int64_t rows = i.rows, columns = i.columns, n = i.elements;
  InstructionCost cost;
  EventCounts& c = cost.counts;
  switch (i.op) {
    case Opcode::LoadStationary:
      cost.cycles = ceil_over(columns * array_passes(i, Engine::Tensor, chip), t.load_speedup);
      c.sbuf_read_bytes = base::storage_bytes(i.dtype, ceil_over(rows, i.sparsity) * columns);
      return cost;
    case Opcode::MultiplyMoving:
      cost.cycles = std::max(t.min_interval_cycles, n) * array_passes(i, Engine::Tensor, chip);
      c.macs[static_cast<std::size_t>(i.dtype)] = ceil_over(rows, i.sparsity) * columns * n;
      c.sbuf_read_bytes = base::storage_bytes(i.dtype, rows * n);
      c.psum_read_bytes = c.psum_write_bytes = columns * n * kAccumulatorBytes;
      return cost;
    case Opcode::Transpose: {
      // max(P, min(64, F)); in the background twice as fast on chains (Trainium3 guide).
      const std::int64_t cycles = std::max(rows, std::min(t.min_interval_cycles, n));
      cost.cycles = t.background_transpose ? ceil_over(cycles, 2) : cycles;
      c.transpose_macs = rows * rows * n;
      c.sbuf_read_bytes = base::storage_bytes(i.dtype, rows * n);
      c.psum_write_bytes = rows * n * kAccumulatorBytes;
      return cost;
    }
    default:
      unsupported(i, Engine::Tensor, chip, "not a TensorE instruction");
  }
}

const config::LaneEngineSpec& lanes_of(const config::ChipSpec& chip, Engine engine) {
  if (engine == Engine::Vector) return chip.vector;
  return engine == Engine::Gpsimd ? chip.gpsimd : chip.scalar;
}

// Formats that the performance modes take.
bool is_fast_format(base::DType dtype, const config::LaneEngineSpec& spec) {
  const int bits = base::element_bits(dtype);
  return bits == 16 || (bits < 16 && spec.fast_8bit);
}

bool has_second_operand(const Instruction& i) {
  return i.op == Opcode::TensorTensor || i.op == Opcode::ScalarTensorTensor ||
         i.op == Opcode::TensorTensorScan || i.op == Opcode::Select;
}

// A VectorE instruction in the 2x or 4x mode.
bool in_fast_mode(const Instruction& i, const config::ChipSpec& chip) {
  const config::LaneEngineSpec& spec = chip.vector;
  if (i.op == Opcode::TensorCopy || i.op == Opcode::TensorScalar) return copy_speedup(i, spec) > 1;
  return i.op == Opcode::TensorTensor && i.two_inputs_sbuf && i.destination == Space::Sbuf &&
         is_fast_format(i.dtype, spec) && spec.max_speedup_16bit >= 2;
}

std::int64_t lane_cycles(const Instruction& i, Engine engine, const config::ChipSpec& chip) {
  const config::LaneEngineSpec& spec = lanes_of(chip, engine);
  const std::int64_t n = i.elements;
  const bool narrow = base::element_bits(i.dtype) <= 16;
  const bool vector = engine == Engine::Vector;
  switch (i.op) {
    case Opcode::TensorCopy:
    case Opcode::TensorScalar:
      return ceil_over(n, copy_speedup(i, spec));
    case Opcode::TensorTensor: {
      const bool mixed = !i.two_inputs_sbuf;  // one operand in PSUM, one in SBUF
      // The ISA's own case is BF16; the 2x mode takes all fast formats.
      const bool fast = vector && i.destination == Space::Sbuf &&
                        (i.dtype == base::DType::Bf16 ||
                         (is_fast_format(i.dtype, spec) && spec.max_speedup_16bit >= 2));
      return mixed || fast ? n : 2 * n;
    }
    case Opcode::ScalarTensorTensor:
      return 2 * n;
    case Opcode::TensorTensorScan:
      if (!vector) unsupported(i, engine, chip, "scans run on VectorE only");
      return 2 * n;
    case Opcode::TensorReduce:
      return vector && i.dtype == base::DType::Bf16 ? ceil_over(n, 2) : n;
    case Opcode::Memset:
      return vector && base::element_bits(i.dtype) == 16 ? ceil_over(n, 2) : n;
    case Opcode::Activation:
    case Opcode::Select:
    case Opcode::Iota:
    case Opcode::BnStats:
      return n;
    case Opcode::ActivationReduce:
      return std::max(spec.min_interval_cycles, n) + spec.min_interval_cycles;
    case Opcode::Exponential:
      if (engine == Engine::Scalar) return n;
      if (!vector || spec.exponential_speedup <= 0)
        unsupported(i, engine, chip, "no exponential instruction");
      return ceil_over(n, std::max<std::int64_t>(
                              1, narrow ? spec.exponential_speedup : spec.exponential_speedup / 2));
    case Opcode::QuantizeMx:
      if (!vector || spec.quantize_speedup <= 0)
        unsupported(i, engine, chip, "no quantize_mx instruction");
      if (i.source == Space::Psum || i.destination == Space::Psum)
        unsupported(i, engine, chip, "quantize_mx works from SBUF to SBUF");
      return ceil_over(n, spec.quantize_speedup);
    case Opcode::Reciprocal:
      return kReciprocalPasses * n;
    default:
      unsupported(i, engine, chip, "not an instruction of this engine");
  }
}

void count_lane_traffic(const Instruction& i, EventCounts& c) {
  const std::int64_t all = std::int64_t{i.rows} * i.elements;
  if (i.op != Opcode::Iota && i.op != Opcode::Memset) read(c, i.source, i.dtype, all);
  if (has_second_operand(i)) {
    // The second operand: in SBUF, or in the space that the first is not in.
    const bool psum = !i.two_inputs_sbuf && i.source == Space::Sbuf;
    read(c, psum ? Space::Psum : Space::Sbuf, i.dtype, all);
  }
  switch (i.op) {
    case Opcode::TensorReduce:
      return write(c, i.destination, i.dtype, i.rows);
    case Opcode::BnStats:
      return write(c, i.destination, base::DType::Fp32, i.rows * kBnStatsPerPartition);
    case Opcode::QuantizeMx:
      return write(c, i.destination, base::DType::Mxfp8, all);
    case Opcode::ActivationReduce:
      write(c, i.destination, base::DType::Fp32, i.rows);
      [[fallthrough]];
    default:
      return write(c, i.destination, i.dtype, all);
  }
}

void count_lane_ops(const Instruction& i, Engine engine, EventCounts& c) {
  const std::int64_t all = std::int64_t{i.rows} * i.elements;
  const bool transcendental = i.transcendental || i.op == Opcode::Exponential;
  if (i.op == Opcode::QuantizeMx) {
    c.quantize_ops += all;
  } else if (engine == Engine::Vector) {
    (transcendental ? c.vector_transcendental_ops : c.vector_ops) += all;
  } else if (engine == Engine::Scalar) {
    (transcendental ? c.scalar_transcendental_ops : c.scalar_ops) += all;
  } else {
    c.gpsimd_ops += all;
  }
}

InstructionCost lane_cost(const Instruction& i, Engine engine, const config::ChipSpec& chip) {
  const config::LaneEngineSpec& spec = lanes_of(chip, engine);
  InstructionCost cost;
  std::int64_t cycles = lane_cycles(i, engine, chip);
  if (i.stride >= kLongStride)
    cycles = std::llround(std::ceil(static_cast<double>(cycles) / chip.sbuf.strided_rate));
  cost.cycles = std::max(spec.min_interval_cycles, cycles);
  // GpSimd pays its start for every instruction, the others when they depend on the one before.
  if (engine == Engine::Gpsimd || i.first_of_chain) cost.cycles += spec.access_cycles;
  count_lane_traffic(i, cost.counts);
  count_lane_ops(i, engine, cost.counts);
  return cost;
}

void add_transfer(EventCounts& c, const DmaTransfer& t) {
  const std::int64_t bytes = t.bytes();
  c.dma_bytes += bytes;
  c.hbm_scale_bytes += t.scale_bytes;
  if (t.spill)
    (t.direction == DmaDirection::HbmToSbuf ? c.spill_reload_bytes : c.spill_save_bytes) += bytes;
  if (t.direction == DmaDirection::HbmToSbuf) {
    c.hbm_read_bytes += bytes;
    c.sbuf_write_bytes += bytes;
    if (t.accumulate) c.sbuf_read_bytes += bytes;
  } else {
    c.sbuf_read_bytes += bytes;
    c.hbm_write_bytes += bytes;
    if (t.accumulate) c.hbm_read_bytes += bytes;
  }
}

}  // namespace

std::string_view name(Engine engine) {
  constexpr std::string_view kNames[kEngines] = {"tensor", "vector", "scalar", "gpsimd", "sync"};
  return kNames[static_cast<std::size_t>(engine)];
}

std::string_view name(Opcode op) {
  constexpr std::string_view kNames[] = {"load_stationary",
                                         "multiply_moving",
                                         "transpose",
                                         "tensor_copy",
                                         "tensor_scalar",
                                         "tensor_tensor",
                                         "tensor_reduce",
                                         "activation",
                                         "activation_reduce",
                                         "exponential",
                                         "quantize_mx",
                                         "reciprocal",
                                         "select",
                                         "iota",
                                         "bn_stats",
                                         "memset",
                                         "scalar_tensor_tensor",
                                         "tensor_tensor_scan",
                                         "dma_start",
                                         "nop"};
  return kNames[static_cast<std::size_t>(op)];
}

std::int64_t copy_speedup(const Instruction& i, const config::LaneEngineSpec& engine) {
  if (!is_fast_format(i.dtype, engine)) return 1;
  const int psum_sides = (i.source == Space::Psum ? 1 : 0) + (i.destination == Space::Psum ? 1 : 0);
  const std::int64_t mode = psum_sides == 2 ? 1 : psum_sides == 1 || i.stride > 0 ? 2 : 4;
  return std::clamp(engine.max_speedup_16bit, std::int64_t{1}, mode);
}

std::uint8_t shared_ports(const Instruction& i, Engine engine, const config::ChipSpec& chip) {
  const bool computes = i.op != Opcode::DmaStart && i.op != Opcode::Nop;
  if (!computes || engine == Engine::Tensor || engine == Engine::Sync) return 0;
  const bool two = has_second_operand(i);
  // A second operand in another space than the first covers both.
  const bool both = two && !i.two_inputs_sbuf;
  const bool sbuf = i.source == Space::Sbuf || i.destination == Space::Sbuf || two;
  const bool psum = i.source == Space::Psum || i.destination == Space::Psum || both;
  std::uint8_t ports = 0;
  const std::string& of_sbuf = chip.sbuf.shared_port;
  const bool alone_on_sbuf =
      of_sbuf == "exclusive"
          ? engine != Engine::Scalar
          : of_sbuf == "fast_modes" &&
                (engine == Engine::Gpsimd || (engine == Engine::Vector && in_fast_mode(i, chip)));
  if (sbuf && alone_on_sbuf) ports |= 1u << static_cast<unsigned>(Port::Sbuf);
  if (psum && engine != Engine::Gpsimd && chip.psum.shared_port == "exclusive")
    ports |= 1u << static_cast<unsigned>(Port::Psum);
  return ports;
}

base::Frequency engine_clock(const config::ChipSpec& chip, Engine engine) {
  return engine == Engine::Tensor ? chip.tensor.clock : lanes_of(chip, engine).clock;
}

std::int64_t access_latency(const Instruction& instruction, Engine engine) {
  const bool hidden = (engine == Engine::Vector || engine == Engine::Scalar) &&
                      instruction.op != Opcode::DmaStart && instruction.op != Opcode::Nop &&
                      !instruction.first_of_chain;
  return hidden ? 2 * kAccessCycles : 0;
}

InstructionCost instruction_cost(const Instruction& instruction, Engine engine,
                                 const config::ChipSpec& chip) {
  if (instruction.op == Opcode::DmaStart) return {kDmaTriggerCycles, {}};
  if (instruction.op == Opcode::Nop) return {1, {}};
  if (engine == Engine::Sync) unsupported(instruction, engine, chip, "SyncE does not compute");
  return engine == Engine::Tensor ? tensor_cost(instruction, chip)
                                  : lane_cost(instruction, engine, chip);
}

std::vector<std::int64_t> execution_counts(const TileProgram& program,
                                           const std::vector<StreamNode>& stream) {
  std::vector<std::int64_t> counts(program.instructions.size(), 0);
  std::vector<std::int64_t> trips{1};  // product of the enclosing trip counts
  std::vector<std::int32_t> begins;
  for (std::size_t n = 0; n < stream.size(); ++n) {
    const StreamNode& node = stream[n];
    if (node.kind == StreamNode::Kind::Instruction) {
      TRN3SIM_CHECK(node.index >= 0 && std::size_t(node.index) < counts.size(),
                    "instruction index out of range");
      counts[std::size_t(node.index)] += trips.back();
    } else if (node.kind == StreamNode::Kind::LoopBegin) {
      TRN3SIM_CHECK(node.index >= 1, "a loop must run at least once");
      begins.push_back(static_cast<std::int32_t>(n));
      trips.push_back(trips.back() * node.index);
    } else {
      TRN3SIM_CHECK(!begins.empty() && begins.back() == node.index, "loops must nest");
      begins.pop_back();
      trips.pop_back();
    }
  }
  TRN3SIM_CHECK(begins.empty(), "a loop has no end");
  return counts;
}

EventCounts program_counts(const TileProgram& program, const config::ChipSpec& chip) {
  EventCounts total;
  for (const CoreProgram& core : program.cores)
    for (std::size_t e = 0; e < kEngines; ++e) {
      const std::vector<std::int64_t> executions = execution_counts(program, core.streams[e]);
      for (std::size_t i = 0; i < executions.size(); ++i) {
        if (executions[i] == 0) continue;
        const Instruction& instruction = program.instructions[i];
        EventCounts c = instruction_cost(instruction, static_cast<Engine>(e), chip).counts;
        if (instruction.op == Opcode::DmaStart)
          add_transfer(c, program.transfers.at(std::size_t(instruction.dma)));
        total += (c *= executions[i]);
      }
    }
  return total;
}

base::Time tensor_ideal_time(const EventCounts& counts, const config::ChipSpec& chip) {
  double cycles = 0;
  for (std::size_t f = 0; f < base::kDTypes; ++f) {
    if (counts.macs[f] == 0) continue;
    cycles += static_cast<double>(counts.macs[f]) /
              (static_cast<double>(chip.tensor.rows * chip.tensor.columns) *
               chip.tensor.macs_per_pe_cycle[f]);
  }
  return base::cycles_time(std::llround(std::ceil(cycles)), chip.tensor.clock);
}

}  // namespace trn3sim::models
