// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"

#include "compile/kernel/gemm_mapping.hpp"
#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using base::DType;

KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  KernelSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.batch = batch;
  s.cores = 2;
  return s;
}

test::ProgramRun run(const KernelSpec& spec, const config::ChipSpec& chip = test::trainium3()) {
  const models::TileProgram program = compile_kernel(spec, chip);
  EXPECT_LE(program.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count())
      << spec.label();
  EXPECT_LE(program.psum_banks, chip.psum.banks);
  return test::ProgramInterpreter(program, chip).run();
}

// Every MAC is done once, every result stored once, every operand loaded at least once.
TEST(GemmKernel, DoesAllTheWorkOnALadderOfShapes) {
  for (const std::int64_t m : {1, 100, 128, 500, 2048}) {
    for (const std::int64_t n : {1, 96, 512, 1000, 3072}) {
      for (const std::int64_t k : {1, 64, 128, 4097}) {
        for (const std::int64_t batch : {1, 3}) {
          if (batch == 3 && m * n > 500 * 1000) continue;
          const KernelSpec spec = gemm(m, n, k, batch);
          const test::ProgramRun r = run(spec);
          EXPECT_EQ(r.total_macs(), m * n * k * batch) << spec.label();
          EXPECT_GE(r.loaded.at("a"), m * k * batch * 2) << spec.label();
          EXPECT_GE(r.loaded.at("b"), n * k * batch * 2) << spec.label();
          EXPECT_EQ(r.stored.at("c"), m * n * batch * 2) << spec.label();
        }
      }
    }
  }
}

// Both cores of a pair do half if the shape divides.
TEST(GemmKernel, CoresShareTheWork) {
  const test::ProgramRun r = run(gemm(4096, 5504, 4096));
  ASSERT_EQ(r.macs_per_core.size(), 2U);
  EXPECT_EQ(r.macs_per_core[0], r.macs_per_core[1]);
}

// A row of one element still uses both cores: 1 x 4096 results are divided along n.
TEST(GemmKernel, ThinShapesUseBothCores) {
  const test::ProgramRun r = run(gemm(1, 4096, 4096));
  EXPECT_EQ(r.macs_per_core[0], r.macs_per_core[1]);
}

// Packed formats: a partition holds 4 values of k, 4 of them multiply in a cycle.
TEST(GemmKernel, PackedFormatsKeepTheMacs) {
  for (const DType t : {DType::Fp8, DType::Mxfp8, DType::Mxfp4, DType::Fp32}) {
    KernelSpec spec = gemm(512, 1024, 4096);
    spec.in = t;
    const test::ProgramRun r = run(spec);
    EXPECT_EQ(r.macs[static_cast<std::size_t>(t)], 512LL * 1024 * 4096) << spec.label();
    EXPECT_GE(r.loaded.at("a"), base::storage_bytes(t, 512 * 4096)) << spec.label();
  }
}

// 2048 cubed on one Trainium2 core takes 241 us with the best measured kernel (AWS Labs notes on
// nki-autotune): 91 % of the array's peak. One accumulator stalls the array for each eviction.
TEST(GemmKernel, BufferingFollowsTheMeasuredLadder) {
  KernelSpec spec = gemm(2048, 2048, 2048);
  spec.b_weight = false;
  spec.cores = 1;
  const double ideal = 2048.0 * 2048 * 2048 / (128 * 128 * 2.4);
  const auto share = [&] { return ideal / run(spec, test::trainium2()).duration_ns; };
  EXPECT_NEAR(share(), 0.909, 0.02);
  spec.double_accumulators = false;
  const double single = share();
  EXPECT_LT(single, 0.80);
  EXPECT_GT(single, 0.59);  // measured, with more time between matmuls than a store needs
  spec.streaming_loads = false;
  EXPECT_LT(share(), single);
}

// Operands that must be transposed first need loads ahead of the transposes.
TEST(GemmKernel, SingleBuffersStallTransposedOperands) {
  KernelSpec spec = gemm(4096, 4096, 1024);
  spec.a_transposed = true;
  const double streaming = run(spec).duration_ns;
  spec.streaming_loads = false;
  EXPECT_GT(run(spec).duration_ns, 1.02 * streaming);
}

TEST(GemmKernel, AccumulateReadsAndWritesFp32) {
  KernelSpec spec = gemm(1024, 1500, 2048);
  spec.out = DType::Fp32;
  spec.accumulate = true;
  const test::ProgramRun r = run(spec);
  EXPECT_EQ(r.loaded.at("c"), 1024 * 1500 * 4);
  EXPECT_EQ(r.stored.at("c"), 1024 * 1500 * 4);
  EXPECT_EQ(r.total_macs(), 1024LL * 1500 * 2048);
}

// Gate and up are the two halves of the results: nothing more is read. Both are stored for the
// backward pass, and the product of half the size.
TEST(GemmKernel, SiluMulOfBothHalves) {
  KernelSpec spec = gemm(1024, 2048, 1024);
  spec.epilogues = {{"silu_mul", 1024 * 1024}};
  const test::ProgramRun r = run(spec);
  EXPECT_EQ(r.stored.at("c"), (1024 * 2048 + 1024 * 1024) * 2);
  EXPECT_EQ(r.loaded.size(), 2U);
}

// gelu_bwd needs the input of gelu; rope's gradient needs no input of rope.
TEST(GemmKernel, ResultsThatTheBackwardPassNeedsAreStored) {
  KernelSpec spec = gemm(1000, 1536, 1024);
  const std::int64_t bytes = 1000 * 1536 * 2;
  spec.epilogues = {{"rope", 1000 * 1536}};
  EXPECT_EQ(run(spec).stored.at("c"), bytes);
  spec.epilogues = {{"gelu", 1000 * 1536}};
  EXPECT_EQ(run(spec).stored.at("c"), 2 * bytes);
  EXPECT_EQ(map_gemm(spec, test::trainium3()).traffic_bytes,
            run(spec).loaded.at("a") + run(spec).loaded.at("b") + 2 * bytes);
}

// The gradient of silu_mul reads gate and up and writes both gradients.
TEST(GemmKernel, SiluMulBackwardReadsTwoAndWritesTwo) {
  KernelSpec spec = gemm(1024, 2048, 1024);
  spec.epilogues = {{"silu_mul_bwd", 1024 * 2048}};
  const test::ProgramRun r = run(spec);
  EXPECT_EQ(r.stored.at("c"), 2 * 1024 * 2048 * 2);
  EXPECT_EQ(r.loaded.at("epilogue0"), 1024 * 2048 * 2);
  EXPECT_EQ(r.loaded.at("epilogue1"), 1024 * 2048 * 2);
}

// GEMMs of Llama-2 7B with tensor parallel degree 4 keep the array busy.
TEST(GemmKernel, KeepsTheArrayBusy) {
  struct Case {
    std::int64_t m, n, k;
    bool accumulate;
  };
  for (const Case c : {Case{4096, 3072, 4096, false}, Case{4096, 4096, 1024, false},
                       Case{4096, 5504, 4096, false}, Case{4096, 4096, 2752, false},
                       Case{4096, 5504, 4096, true}, Case{4096, 8000, 4096, false}}) {
    KernelSpec spec = gemm(c.m, c.n, c.k);
    spec.accumulate = c.accumulate;
    if (c.accumulate) spec.out = DType::Fp32;
    const auto chip = test::trainium3();
    const test::ProgramRun r = run(spec, chip);
    const double ideal = static_cast<double>(c.m * c.n * c.k) / 2 / 16384 / 2.4;
    EXPECT_GT(ideal / r.duration_ns, 0.93) << describe_mapping(spec, chip);
  }
}

// The mapping's traffic is what the program moves, so its choice rests on true numbers.
TEST(GemmKernel, MovesThePredictedTraffic) {
  for (const auto& [m, n, k] :
       {std::tuple{4096, 5504, 4096}, std::tuple{1, 4096, 4096}, std::tuple{300, 700, 1000},
        std::tuple{4096, 4096, 16384}, std::tuple{256, 256, 65536}}) {
    KernelSpec spec = gemm(m, n, k);
    spec.accumulate = m == 4096;
    if (spec.accumulate) spec.out = DType::Fp32;
    const test::ProgramRun r = run(spec);
    std::int64_t moved = 0;
    for (const auto* by_operand : {&r.loaded, &r.stored}) {
      for (const auto& [name, bytes] : *by_operand) moved += bytes;
    }
    EXPECT_EQ(moved, map_gemm(spec, test::trainium3()).traffic_bytes) << spec.label();
  }
}

// Thin results store one row of PSUM tiles in less than a DMA issue interval: stores are merged.
TEST(GemmKernel, ShortContractionsMergeStores) {
  EXPECT_TRUE(map_gemm(gemm(4096, 4096, 128), test::trainium3()).merge_stores);
  EXPECT_FALSE(map_gemm(gemm(4096, 4096, 4096), test::trainium3()).merge_stores);
}

TEST(GemmKernel, SmallestSbufIsAnErrorThatNamesTheShape) {
  config::ChipSpec chip = test::trainium3();
  chip.sbuf.usable_per_partition = base::Bytes(512);
  try {
    compile_kernel(gemm(128, 128, 128), chip);
    FAIL() << "expected an error";
  } catch (const base::UserError& e) {
    EXPECT_EQ(std::string(e.what()),
              "gemm 128x128x128 bf16: no block sizes fit into 512 bytes per SBUF partition");
  }
}

TEST(GemmKernel, LabelsNameShapeAndEpilogues) {
  KernelSpec spec = gemm(4096, 5504, 4096);
  spec.epilogues = {{"silu_mul", 4096 * 2752}};
  EXPECT_EQ(spec.label(), "gemm 4096x5504x4096 bf16 +silu_mul");
  spec.batch = 3;
  spec.out = DType::Fp32;
  spec.accumulate = true;
  EXPECT_EQ(spec.label(), "gemm 3x 4096x5504x4096 bf16->fp32 accumulate +silu_mul");
}

TEST(GemmKernel, UnsupportedFormatNamesTheSupportedOnes) {
  KernelSpec spec = gemm(128, 128, 128);
  spec.in = DType::Mxfp8;
  try {
    compile_kernel(spec, test::trainium2());
    FAIL() << "expected an error";
  } catch (const base::UserError& e) {
    EXPECT_NE(std::string(e.what()).find("trn2 does not support mxfp8; supported: fp32"),
              std::string::npos)
        << e.what();
  }
}

TEST(GemmKernel, UnknownEpilogueHasASuggestion) {
  KernelSpec spec = gemm(128, 128, 128);
  spec.epilogues = {{"silu_mull", 128 * 128}};
  EXPECT_THROW(compile_kernel(spec, test::trainium3()), base::UserError);
}

}  // namespace
}  // namespace trn3sim::compile
