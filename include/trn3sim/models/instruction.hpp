// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The instruction set that the engine models execute, and tile programs: per-engine instruction
// streams that keep their loops.
//
// Semaphores count. A wait takes `count` tokens from a semaphore and blocks until they are there; a
// signal adds `count` tokens when its instruction (or DMA transfer) completes. Each semaphore has
// one waiting stream and one signalling stream, so the order in which the simulator visits engines
// cannot change a result. Double buffering is a pair of semaphores: `full` (0 tokens at start) and
// `free` (one token per buffer at start).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/quantity.hpp"

namespace trn3sim::models {

enum class Engine : std::uint8_t { Tensor, Vector, Scalar, Gpsimd, Sync };
inline constexpr std::size_t kEngines = 5;

enum class Opcode : std::uint8_t {
  // TensorE
  LoadStationary,   // `rows` x `columns` weights into the array
  MultiplyMoving,   // `elements` moving columns against the loaded weights
  Transpose,        // PE transpose of [rows x elements]
  // VectorE / ScalarE / GpSimdE; cost class by function, see models/engine_cost.hpp
  TensorCopy, TensorScalar, TensorTensor, TensorReduce, Activation, ActivationReduce,
  Exponential, QuantizeMx, Reciprocal, Select, Iota, BnStats,
  Memset,              // writes a constant
  ScalarTensorTensor,  // (a op per-row scalar) op b
  TensorTensorScan,    // y_t = a_t op0 y_(t-1) op1 b_t along the free axis
  // SyncE, and any engine that starts DMA
  DmaStart,         // enqueue transfer `dma` on its queue
  Nop,
};

enum class Space : std::uint8_t { Sbuf, Psum };

// What two engines of a core share: VectorE and GpSimdE their way to SBUF, VectorE and ScalarE
// theirs to PSUM.
enum class Port : std::uint8_t { Sbuf, Psum };
inline constexpr std::size_t kPorts = 2;

struct SemaphoreWait { std::uint16_t id = 0; std::uint16_t count = 0; };    // count 0 = unused
struct SemaphoreSignal { std::uint16_t id = 0; std::uint16_t count = 0; };

struct Instruction {
  Opcode op = Opcode::Nop;
  base::DType dtype = base::DType::Bf16;  // of the operands
  Space source = Space::Sbuf;             // where the (first) operand lies
  Space destination = Space::Sbuf;
  bool two_inputs_sbuf = false;           // both operands of a TensorTensor lie in SBUF
  bool transcendental = false;            // energy class of an Activation
  bool first_of_chain = false;            // depends on the previous instruction of this stream
  std::int32_t elements = 0;              // per partition (free size); columns of a MultiplyMoving
  std::int16_t rows = 0;                  // partitions used (contraction rows for TensorE)
  std::int16_t columns = 0;               // stationary columns (output partitions)
  std::int16_t stride = 0;                // innermost, bytes of the operand that has the longest; 0 = contiguous
  std::int8_t sparsity = 1;               // contraction rows per stored value of the stationary operand
  std::int32_t dma = -1;                  // index into TileProgram::transfers
  std::array<SemaphoreWait, 3> waits{};
  std::array<SemaphoreSignal, 2> signals{};
};

// A node of a stream: an instruction, or the begin or end of a counted loop.
struct StreamNode {
  enum class Kind : std::uint8_t { Instruction, LoopBegin, LoopEnd } kind = Kind::Instruction;
  std::int32_t index = 0;  // Instruction: into TileProgram::instructions; LoopBegin: trip count (>= 1);
                           // LoopEnd: node index of its LoopBegin
};

enum class DmaDirection : std::uint8_t { HbmToSbuf, SbufToHbm };

// A DMA transfer: `rows` descriptors of `row_bytes` each, spread over the core's DMA engines by
// partition. HBM addresses advance through the operand from transfer to transfer and wrap.
struct DmaTransfer {
  DmaDirection direction = DmaDirection::HbmToSbuf;
  std::int32_t operand = 0;       // index into TileProgram::operands
  std::int32_t rows = 0;          // descriptors
  std::int32_t row_bytes = 0;     // bytes of one descriptor
  std::int32_t scale_bytes = 0;   // of all rows, among their bytes: MX block scales
  std::int16_t queue = 0;         // ring, 0 .. queues_per_engine-1
  bool accumulate = false;        // read-add-write
  bool spill = false;             // of an intermediate result, which a larger SBUF could hold
  std::array<SemaphoreSignal, 2> signals{};  // on completion, to the streams of the same core
  [[nodiscard]] std::int64_t bytes() const { return std::int64_t{rows} * row_bytes; }
};

// An HBM operand of a kernel, for addresses and byte accounting.
struct Operand {
  std::string name;
  std::int64_t bytes = 0;
  bool weight = false;   // known before the predecessor ends, so its loads can be prefetched
};

// The program of one core.
struct CoreProgram {
  std::array<std::vector<StreamNode>, kEngines> streams;
  std::vector<std::uint32_t> semaphores;  // initial tokens by id
};

// A kernel compiled for the cores of one HBM stack that serve the rank.
struct TileProgram {
  std::vector<Instruction> instructions;
  std::vector<DmaTransfer> transfers;
  std::vector<Operand> operands;
  std::vector<CoreProgram> cores;      // 1 .. cores_per_stack
  std::int64_t sbuf_bytes_per_partition = 0;  // peak use, checked against the spec
  std::int64_t psum_banks = 0;
};

}  // namespace trn3sim::models
