// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMMs whose operands are transposed or converted in SBUF.
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "compile/kernel/gemm_mapping.hpp"
#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using base::DType;

KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.cores = 2;
  return s;
}

struct Ran {
  test::ProgramRun run;
  models::EventCounts counts;
};

Ran run(const KernelSpec& spec, const config::ChipSpec& chip = test::trainium3()) {
  const models::TileProgram program = compile_kernel(spec, chip);
  EXPECT_LE(program.psum_banks, chip.psum.banks);
  return {test::ProgramInterpreter(program, chip).run(), models::program_counts(program, chip)};
}

// Every shape ends, does its MACs and moves the predicted bytes, whatever is prepared.
TEST(PreparedGemm, DoesAllTheWorkOnALadderOfShapes) {
  for (const std::int64_t m : {1, 500, 2048}) {
    for (const std::int64_t n : {96, 1000, 3072}) {
      for (const std::int64_t k : {64, 1024, 4097}) {
        for (const int what : {1, 2, 3, 4, 5, 6, 7}) {
          KernelSpec spec = gemm(m, n, k);
          spec.a_transposed = (what & 1) != 0;
          spec.b_transposed = (what & 2) != 0;
          if ((what & 4) != 0) {
            spec.in = DType::Mxfp8;
            spec.out = DType::Bf16;
            spec.a_format = DType::Bf16;
            if (spec.b_transposed) spec.b_format = DType::Bf16;
          }
          spec.accumulate = m == 500;
          if (spec.accumulate) spec.out = DType::Fp32;
          const Ran r = run(spec);
          EXPECT_EQ(r.run.total_macs(), m * n * k) << spec.label();
          EXPECT_GE(r.run.loaded.at("a"), m * k * 2) << spec.label();
          std::int64_t moved = 0;
          for (const auto* by_operand : {&r.run.loaded, &r.run.stored})
            for (const auto& [name, bytes] : *by_operand) moved += bytes;
          EXPECT_EQ(moved, map_gemm(spec, test::trainium3()).traffic_bytes)
              << describe_mapping(spec, test::trainium3());
        }
      }
    }
  }
}

// A [m,k] of 128 x 128 tiles passes the array once per load: m/128 x k/128 transposes of 128^3 MACs
// each, on each of the two cores that divide n.
TEST(PreparedGemm, TransposesEachLoadedTileOnce) {
  KernelSpec spec = gemm(1024, 2048, 4096);
  spec.a_transposed = true;
  const Ran r = run(spec);
  const std::int64_t loads = r.run.loaded.at("a") / (1024 * 4096 * 2);
  EXPECT_EQ(r.run.loaded.at("a") % (1024 * 4096 * 2), 0);
  EXPECT_EQ(r.run.transposes, loads * 8 * 32);
  EXPECT_EQ(r.counts.transpose_macs, r.run.transposes * 128 * 128 * 128);
  spec.a_transposed = false;
  EXPECT_EQ(run(spec).counts.transpose_macs, 0);
}

// On Trainium3 transposes hide behind multiplies: at most 4 % of a large GEMM. On an array without
// background transposes each takes 128 cycles against 512 per multiply.
TEST(PreparedGemm, BackgroundTransposesHide) {
  KernelSpec spec = gemm(4096, 5504, 4096);
  const double plain = run(spec).run.duration_ns;
  spec.a_transposed = true;
  EXPECT_LT(run(spec).run.duration_ns, 1.04 * plain) << describe_mapping(spec, test::trainium3());
  config::ChipSpec chip = test::trainium3();
  chip.tensor.background_transpose = false;
  EXPECT_GT(run(spec, chip).run.duration_ns, run(spec).run.duration_ns);
}

// X in bf16 is quantised once per loaded element, the MXFP8 weights are not.
TEST(PreparedGemm, ActivationsAreQuantisedOncePerLoad) {
  KernelSpec spec = gemm(4096, 2752, 4096);
  spec.in = DType::Mxfp8;
  spec.out = DType::Bf16;
  spec.a_format = DType::Bf16;
  const Ran r = run(spec);
  EXPECT_EQ(r.counts.quantize_ops, r.run.loaded.at("a") / 2);
  EXPECT_EQ(r.counts.macs[static_cast<std::size_t>(DType::Mxfp8)], 4096LL * 2752 * 4096);
  // Weights: 8 bits and one scale byte per 32 values; each loaded a whole number of times.
  EXPECT_EQ(r.run.loaded.at("b") % (2752LL * 4096 * 33 / 32), 0);
}

// The array is four times as fast; quantising takes VectorE 1/4 cycle per element.
TEST(PreparedGemm, QuantisedGemmsAreFaster) {
  for (const bool transposed : {false, true}) {
    KernelSpec spec = gemm(4096, 5504, 4096);
    spec.a_transposed = transposed;
    const double bf16 = run(spec).run.duration_ns;
    spec.in = DType::Mxfp8;
    spec.out = spec.a_format.emplace(DType::Bf16);
    EXPECT_LT(run(spec).run.duration_ns, 0.5 * bf16) << describe_mapping(spec, test::trainium3());
  }
}

// fp8 operands are cast from bf16, fp32 operands are made from bf16: no quantize_mx.
TEST(PreparedGemm, OtherFormatsAreCast) {
  for (const DType t : {DType::Fp8, DType::Fp32}) {
    KernelSpec spec = gemm(512, 512, 1024);
    spec.in = t;
    spec.out = spec.a_format.emplace(DType::Bf16);
    const Ran r = run(spec);
    EXPECT_EQ(r.counts.quantize_ops, 0);
    // One operation per loaded element, and the evictions of both engines.
    EXPECT_EQ(r.counts.vector_ops + r.counts.scalar_ops, r.run.loaded.at("a") / 2 + 512 * 512);
    EXPECT_EQ(r.run.loaded.at("b") % base::storage_bytes(t, 512 * 1024), 0);
  }
}

// 4 of 16 values are kept: a quarter of the MACs and a quarter of the time; a weight takes 16 bits
// and 4 bits of position per kept value, 5 bits in all.
TEST(PreparedGemm, CompressedWeights) {
  KernelSpec spec = gemm(4096, 4096, 4096);
  const double dense = run(spec).run.duration_ns;
  spec.sparse_kept = 4;
  spec.sparse_block = 16;
  const Ran r = run(spec);
  EXPECT_EQ(r.counts.macs[static_cast<std::size_t>(DType::Bf16)], 4096LL * 4096 * 4096 / 4);
  EXPECT_EQ(r.run.loaded.at("b") % (4096LL * 4096 * 5 / 8), 0);
  EXPECT_LT(r.run.duration_ns, 0.5 * dense) << describe_mapping(spec, test::trainium3());
  EXPECT_FALSE(map_gemm(spec, test::trainium3()).stationary_a);
  spec.sparse_block = 12;  // a third
  EXPECT_NEAR(static_cast<double>(run(spec).counts.macs[static_cast<std::size_t>(DType::Bf16)]),
              4096.0 * 4096 * 4096 / 3, 4096.0 * 4096 * 2);
}

// A contraction whose panels do not fit twice: operands stream through a few chunks. All MACs are
// done once, the bytes are the predicted ones, and the time is above that of the array alone.
TEST(PreparedGemm, LongContractionsStream) {
  const config::ChipSpec chip = test::trainium3();
  for (const std::int64_t k : {32000, 70001}) {
    for (const int what : {1, 2, 3, 5, 7}) {
      KernelSpec spec = gemm(1000, 4096, k);
      if (k == 32000) spec.m = 2048;
      spec.a_transposed = (what & 1) != 0;
      spec.b_transposed = (what & 2) != 0;
      if ((what & 4) != 0) {
        spec.in = DType::Mxfp8;
        spec.out = spec.a_format.emplace(DType::Bf16);
        if (spec.b_transposed) spec.b_format = DType::Bf16;
      }
      const GemmMapping map = map_gemm(spec, chip);
      EXPECT_LE(map.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count());
      const Ran r = run(spec, chip);
      EXPECT_EQ(r.run.total_macs(), spec.m * spec.n * k) << spec.label();
      std::int64_t moved = 0;
      for (const auto* by_operand : {&r.run.loaded, &r.run.stored})
        for (const auto& [name, bytes] : *by_operand) moved += bytes;
      EXPECT_EQ(moved, map.traffic_bytes) << describe_mapping(spec, chip);
      const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(spec.in)];
      const double peak = 2.0 * 128 * 128 * rate * static_cast<double>(chip.tensor.clock.count());
      EXPECT_GT(r.run.duration_ns, static_cast<double>(r.run.total_macs()) / peak * 1e9);
    }
  }
  KernelSpec spec = gemm(2048, 4096, 32000);
  spec.a_transposed = spec.b_transposed = true;
  const GemmMapping map = map_gemm(spec, chip);
  EXPECT_EQ(map.outer_ring, kStreamRing);
  EXPECT_EQ(map.inner_ring, kStreamRing);
}

}  // namespace
}  // namespace trn3sim::compile
