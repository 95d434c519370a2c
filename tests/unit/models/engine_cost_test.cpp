// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/engine_cost.hpp"

#include "trn3sim/base/error.hpp"

#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::DType;
using test::TileBuilder;

class EngineCost : public ::testing::Test {
 protected:
  std::int64_t cycles(const Instruction& i, Engine e) {
    return instruction_cost(i, e, chip).cycles;
  }
  EventCounts counts(const Instruction& i, Engine e) { return instruction_cost(i, e, chip).counts; }
  // Cycles of `op` over `n` elements per partition on VectorE.
  std::int64_t vector(Opcode op, std::int32_t n, DType dtype, Space source = Space::Sbuf,
                      Space destination = Space::Sbuf, bool two_sbuf = false) {
    Instruction i = test::lane(op, n, 128, dtype);
    i.source = source;
    i.destination = destination;
    i.two_inputs_sbuf = two_sbuf;
    return cycles(i, Engine::Vector);
  }
  config::ChipSpec chip = test::test_chip();
};

TEST_F(EngineCost, TensorFormulas) {
  // 128 columns at a quarter of a matmul's time.
  EXPECT_EQ(cycles(test::load_stationary(128, 128), Engine::Tensor), 32);
  EXPECT_EQ(cycles(test::load_stationary(128, 65), Engine::Tensor), 17) << "65 / 4 rounded up";
  // One column per cycle, at least 64 cycles apart, four passes for FP32.
  EXPECT_EQ(cycles(test::multiply(128, 128, 512), Engine::Tensor), 512);
  EXPECT_EQ(cycles(test::multiply(128, 128, 63), Engine::Tensor), 64);
  EXPECT_EQ(cycles(test::multiply(128, 128, 65), Engine::Tensor), 65);
  EXPECT_EQ(cycles(test::multiply(128, 128, 512, DType::Fp32), Engine::Tensor), 2048);
  // MX contracts 512 rows in the time of 128.
  EXPECT_EQ(cycles(test::multiply(512, 128, 512, DType::Mxfp8), Engine::Tensor), 512);
}

TEST_F(EngineCost, TransposeIsMaxOfRowsAndElementsUpTo64) {
  Instruction t = test::lane(Opcode::Transpose, 512, 32);
  chip.tensor.background_transpose = false;
  EXPECT_EQ(cycles(t, Engine::Tensor), 64) << "max(32, min(64, 512))";
  t.rows = 128;
  EXPECT_EQ(cycles(t, Engine::Tensor), 128);
  chip.tensor.background_transpose = true;
  EXPECT_EQ(cycles(t, Engine::Tensor), 64) << "twice as fast on chains";
}

TEST_F(EngineCost, VectorCopyModes) {
  EXPECT_EQ(vector(Opcode::TensorCopy, 512, DType::Bf16), 128) << "4x: SBUF to SBUF, 2 bytes";
  EXPECT_EQ(vector(Opcode::TensorScalar, 512, DType::Fp8), 128) << "FP8 is in the 4x path";
  EXPECT_EQ(vector(Opcode::TensorCopy, 512, DType::Bf16, Space::Psum), 256) << "2x: one side PSUM";
  EXPECT_EQ(vector(Opcode::TensorCopy, 512, DType::Bf16, Space::Sbuf, Space::Psum), 256);
  EXPECT_EQ(vector(Opcode::TensorCopy, 512, DType::Bf16, Space::Psum, Space::Psum), 512);
  EXPECT_EQ(vector(Opcode::TensorCopy, 512, DType::Fp32), 512) << "1x: 4 bytes";
  EXPECT_EQ(vector(Opcode::TensorCopy, 100, DType::Bf16), 64) << "at least 64 cycles";
}

TEST_F(EngineCost, VectorTwoOperandModes) {
  const auto tt = [&](DType d, bool two) {
    return vector(Opcode::TensorTensor, 512, d, Space::Sbuf, Space::Sbuf, two);
  };
  EXPECT_EQ(tt(DType::Bf16, true), 512) << "both in SBUF, 2 bytes: N";
  EXPECT_EQ(tt(DType::Fp32, true), 1024) << "both in SBUF, 4 bytes: 2N";
  EXPECT_EQ(tt(DType::Fp32, false), 512) << "one in SBUF, one in PSUM: N";
  EXPECT_EQ(vector(Opcode::TensorReduce, 512, DType::Bf16), 256);
  EXPECT_EQ(vector(Opcode::TensorReduce, 512, DType::Fp32), 512);
  EXPECT_EQ(vector(Opcode::ScalarTensorTensor, 512, DType::Fp32, Space::Psum), 1024) << "2N";
  EXPECT_EQ(vector(Opcode::Reciprocal, 512, DType::Fp32), 8 * 512);
  EXPECT_EQ(vector(Opcode::BnStats, 512, DType::Fp32), 512);
  EXPECT_EQ(vector(Opcode::Select, 512, DType::Bf16), 512);
}

TEST_F(EngineCost, VectorExponentialAndQuantize) {
  EXPECT_EQ(vector(Opcode::Exponential, 512, DType::Bf16), 128) << "N / 4";
  EXPECT_EQ(vector(Opcode::Exponential, 512, DType::Fp32), 256) << "N / 2";
  EXPECT_EQ(vector(Opcode::QuantizeMx, 512, DType::Bf16), 128) << "N / 4";
  chip.vector.exponential_speedup = chip.vector.quantize_speedup = 0;
  EXPECT_THROW(vector(Opcode::Exponential, 512, DType::Bf16), base::InternalError);
  EXPECT_THROW(vector(Opcode::QuantizeMx, 512, DType::Bf16), base::InternalError);
}

TEST_F(EngineCost, ScalarAndGpsimd) {
  EXPECT_EQ(cycles(test::lane(Opcode::Activation, 512), Engine::Scalar), 512);
  EXPECT_EQ(cycles(test::lane(Opcode::Activation, 10), Engine::Scalar), 64);
  EXPECT_EQ(cycles(test::lane(Opcode::ActivationReduce, 512), Engine::Scalar), 512 + 64);
  EXPECT_EQ(cycles(test::lane(Opcode::ActivationReduce, 10), Engine::Scalar), 64 + 64);
  EXPECT_EQ(cycles(test::lane(Opcode::TensorCopy, 512), Engine::Scalar), 256) << "up to 2x";
  EXPECT_EQ(cycles(test::lane(Opcode::Exponential, 512), Engine::Scalar), 512);
  EXPECT_EQ(cycles(test::lane(Opcode::Iota, 512), Engine::Gpsimd), 150 + 512);
  EXPECT_EQ(cycles(test::lane(Opcode::TensorCopy, 512), Engine::Gpsimd), 150 + 512);
  Instruction dependent = test::lane(Opcode::Activation, 512);
  dependent.first_of_chain = true;
  EXPECT_EQ(cycles(dependent, Engine::Scalar), 512 + 100) << "not pipelined";
}

TEST_F(EngineCost, RefusesWhatTheHardwareDoesNotHave) {
  EXPECT_THROW(cycles(test::multiply(128, 128, 512), Engine::Vector), base::InternalError);
  EXPECT_THROW(cycles(test::lane(Opcode::TensorCopy, 512), Engine::Tensor), base::InternalError);
  EXPECT_THROW(cycles(test::lane(Opcode::TensorCopy, 512), Engine::Sync), base::InternalError);
  EXPECT_THROW(cycles(test::multiply(256, 128, 512), Engine::Tensor), base::InternalError)
      << "BF16 contracts 128 rows";
  chip.tensor.macs_per_pe_cycle[std::size_t(DType::Fp8)] = 0;
  EXPECT_THROW(cycles(test::multiply(128, 128, 512, DType::Fp8), Engine::Tensor),
               base::InternalError);
}

TEST_F(EngineCost, TensorCounts) {
  const EventCounts ls = counts(test::load_stationary(128, 64), Engine::Tensor);
  EXPECT_EQ(ls.sbuf_read_bytes, 128 * 64 * 2);
  const EventCounts mm = counts(test::multiply(128, 64, 512), Engine::Tensor);
  EXPECT_EQ(mm.macs[std::size_t(DType::Bf16)], 128 * 64 * 512);
  EXPECT_EQ(mm.sbuf_read_bytes, 128 * 512 * 2);
  EXPECT_EQ(mm.psum_write_bytes, 64 * 512 * 4) << "FP32 accumulators";
  EXPECT_EQ(mm.psum_read_bytes, 64 * 512 * 4);
  const EventCounts mx = counts(test::multiply(512, 128, 512, DType::Mxfp8), Engine::Tensor);
  EXPECT_EQ(mx.macs[std::size_t(DType::Mxfp8)], 512 * 128 * 512);
  EXPECT_EQ(mx.sbuf_read_bytes, 512 * 512 + 512 * 512 / 32) << "one scale byte per 32";
  const EventCounts t = counts(test::lane(Opcode::Transpose, 128), Engine::Tensor);
  EXPECT_EQ(t.transpose_macs, 128 * 128 * 128);
  EXPECT_EQ(t.psum_write_bytes, 128 * 128 * 4);
  EXPECT_EQ(t.macs[std::size_t(DType::Bf16)], 0);
}

TEST_F(EngineCost, LaneCounts) {
  Instruction evict = test::lane(Opcode::TensorCopy, 512);
  evict.source = Space::Psum;
  const EventCounts e = counts(evict, Engine::Vector);
  EXPECT_EQ(e.psum_read_bytes, 128 * 512 * 4);
  EXPECT_EQ(e.sbuf_write_bytes, 128 * 512 * 2);
  EXPECT_EQ(e.vector_ops, 128 * 512);
  Instruction add = test::lane(Opcode::TensorTensor, 512);
  EXPECT_EQ(counts(add, Engine::Vector).psum_read_bytes, 128 * 512 * 4) << "second operand";
  EXPECT_EQ(counts(add, Engine::Vector).sbuf_read_bytes, 128 * 512 * 2);
  add.two_inputs_sbuf = true;
  EXPECT_EQ(counts(add, Engine::Vector).sbuf_read_bytes, 2 * 128 * 512 * 2);
  Instruction exp = test::lane(Opcode::Activation, 512);
  exp.transcendental = true;
  EXPECT_EQ(counts(exp, Engine::Scalar).scalar_transcendental_ops, 128 * 512);
  EXPECT_EQ(counts(exp, Engine::Scalar).scalar_ops, 0);
  const EventCounts q = counts(test::lane(Opcode::QuantizeMx, 512), Engine::Vector);
  EXPECT_EQ(q.quantize_ops, 128 * 512);
  EXPECT_EQ(q.vector_ops, 0);
  EXPECT_EQ(q.sbuf_write_bytes, 128 * 512 + 128 * 512 / 32);
  EXPECT_EQ(counts(test::lane(Opcode::TensorReduce, 512), Engine::Vector).sbuf_write_bytes,
            128 * 2);
}

TEST_F(EngineCost, ProgramCountsMultiplyNestedLoops) {
  TileBuilder t(2);
  const std::int32_t read = t.transfer(test::load(t.operand(1 << 20), 128, 1024));
  DmaTransfer store = test::load(0, 128, 512);
  store.direction = DmaDirection::SbufToHbm;
  const std::int32_t write = t.transfer(store);
  for (std::size_t core = 0; core < 2; ++core)
    t.loop(
        Engine::Tensor, 3,
        [&] {
          t.loop(
              Engine::Tensor, 5,
              [&] { t.add(Engine::Tensor, test::multiply(128, 128, 512), core); }, core);
          t.dma(Engine::Tensor, read, {}, core);
        },
        core);
  t.dma(Engine::Sync, write);
  const EventCounts c = program_counts(t.program(), chip);
  EXPECT_EQ(c.macs[std::size_t(DType::Bf16)], std::int64_t{2} * 3 * 5 * 128 * 128 * 512);
  EXPECT_EQ(c.hbm_read_bytes, 2 * 3 * 128 * 1024);
  EXPECT_EQ(c.hbm_write_bytes, 128 * 512);
  EXPECT_EQ(c.dma_bytes, 2 * 3 * 128 * 1024 + 128 * 512);
  EXPECT_EQ(c.sbuf_write_bytes, 2 * 3 * 128 * 1024);
  // 30 matmuls of 512 cycles.
  EXPECT_EQ(tensor_ideal_time(c, chip), base::cycles_time(30 * 512, chip.tensor.clock));
}

TEST_F(EngineCost, LoopsMustNest) {
  TileBuilder t;
  t.add(Engine::Tensor, test::multiply(128, 128, 512));
  t.program().cores[0].streams[0].push_back({StreamNode::Kind::LoopBegin, 2});
  EXPECT_THROW(program_counts(t.program(), chip), base::InternalError);
}

}  // namespace
}  // namespace trn3sim::models
