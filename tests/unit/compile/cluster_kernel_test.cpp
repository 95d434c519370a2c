// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled kernels on the detailed engines, DMA and HBM of one stack.
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/sim/bench.hpp"

#include "support/kernel_test.hpp"
#include "support/test_chip.hpp"

namespace trn3sim::compile {
namespace {

class ClusterKernelTest : public test::KernelTest {
 protected:
  config::ChipSpec chip = test::test_chip();

  // Share of the array's peak, of both cores.
  double utilisation(sim::KernelBench& bench, const KernelSpec& spec) {
    const models::TileProgram program = compile_kernel(spec, chip);
    const modules::ClusterRun run = bench.run(program, base::Rate(0));
    const models::EventCounts counts = models::program_counts(program, chip);
    double macs = 0;
    for (std::size_t t = 0; t < base::kDTypes; ++t) {
      if (counts.macs[t] > 0) {
        macs += static_cast<double>(counts.macs[t]) / chip.tensor.macs_per_pe_cycle[t];
      }
    }
    const double ideal = macs / static_cast<double>(spec.cores) / 16384 / 2.4e9;
    const double seconds = base::to_seconds(run.duration);
    return ideal / seconds;
  }

  static KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    KernelSpec s;
    s.m = m;
    s.n = n;
    s.k = k;
    s.cores = 2;
    return s;
  }
  static KernelSpec attention(KernelKind kind, std::int64_t heads, std::int64_t s, bool causal) {
    KernelSpec spec;
    spec.kind = kind;
    spec.heads = spec.kv_heads = heads;
    spec.sq = spec.skv = s;
    spec.d = 128;
    spec.causal = causal;
    spec.cores = 2;
    return spec;
  }
};

// GEMMs of Llama-2 7B with tensor parallel degree 4.
TEST_F(ClusterKernelTest, GemmsKeepTheArrayBusy) {
  sim::KernelBench bench("bench", chip, context);
  for (const auto& spec : {gemm(4096, 3072, 4096), gemm(4096, 4096, 1024), gemm(4096, 5504, 4096),
                           gemm(4096, 4096, 2752), gemm(4096, 8000, 4096)}) {
    EXPECT_GT(utilisation(bench, spec), 0.92) << describe_mapping(spec, chip);
  }
  KernelSpec weights = gemm(4096, 5504, 4096);
  weights.accumulate = true;
  weights.out = base::DType::Fp32;
  EXPECT_GT(utilisation(bench, weights), 0.92) << describe_mapping(weights, chip);
  KernelSpec mlp = gemm(4096, 5504, 4096);
  mlp.epilogues = {{"silu_mul", 4096 * 2752}};
  EXPECT_GT(utilisation(bench, mlp), 0.92) << describe_mapping(mlp, chip);
}

TEST_F(ClusterKernelTest, PackedFormatsAreFaster) {
  sim::KernelBench bench("bench", chip, context);
  KernelSpec spec = gemm(4096, 5504, 4096);
  spec.in = base::DType::Fp8;
  EXPECT_GT(utilisation(bench, spec), 0.85) << describe_mapping(spec, chip);
  spec.in = base::DType::Mxfp8;
  EXPECT_GT(utilisation(bench, spec), 0.75) << describe_mapping(spec, chip);
}

TEST_F(ClusterKernelTest, AttentionOverlapsItsEngines) {
  sim::KernelBench bench("bench", chip, context);
  EXPECT_GT(utilisation(bench, attention(KernelKind::AttentionForward, 8, 4096, true)), 0.5);
  EXPECT_GT(utilisation(bench, attention(KernelKind::AttentionForward, 8, 4096, false)), 0.5);
  EXPECT_GT(utilisation(bench, attention(KernelKind::AttentionBackward, 8, 4096, true)), 0.6);
  EXPECT_GT(utilisation(bench, attention(KernelKind::AttentionBackward, 8, 4096, false)), 0.6);
}

// Streaming kernels move the bytes of both cores near the rate that DMA and HBM grant.
TEST_F(ClusterKernelTest, VectorKernelsStream) {
  sim::KernelBench bench("bench", chip, context);
  for (const auto& [fn, inputs, outputs, bytes] :
       {std::tuple{"add", 2, 1, 2}, std::tuple{"adamw", 4, 4, 4}, std::tuple{"rmsnorm", 1, 1, 2},
        std::tuple{"silu_mul", 2, 1, 2}, std::tuple{"copy", 1, 1, 2}}) {
    KernelSpec spec;
    spec.kind = KernelKind::Vector;
    spec.fn = fn;
    spec.elems = 16'777'216;
    spec.in = bytes == 4 ? base::DType::Fp32 : base::DType::Bf16;
    spec.rd = inputs * bytes * spec.elems;
    spec.wr = outputs * bytes * spec.elems;
    spec.cores = 2;
    const modules::ClusterRun run = bench.run(compile_kernel(spec, chip), base::Rate(0));
    const double rate = static_cast<double>(spec.rd + spec.wr) / base::to_seconds(run.duration);
    EXPECT_GT(rate, 0.7 * 1056e9) << spec.label();
  }
}

// Odd sizes and every kind end on the detailed engines, with the HBM bytes of their programs.
TEST_F(ClusterKernelTest, EveryKindEndsWithItsBytes) {
  sim::KernelBench bench("bench", chip, context);
  std::vector<KernelSpec> specs = {gemm(1, 1000, 300), gemm(500, 77, 4097), gemm(4096, 1024, 128)};
  specs[1].epilogues = {{"gelu_bwd", 500 * 77}};
  for (const int prepared : {1, 2, 3, 4, 5}) {  // transposed, converted, compressed
    KernelSpec spec = gemm(700, 1000, 2100);
    spec.a_transposed = prepared != 4;
    spec.b_transposed = prepared == 2;
    if (prepared == 3 || prepared == 4) {
      spec.in = base::DType::Mxfp8;
      spec.out = spec.a_format.emplace(base::DType::Bf16);
    }
    if (prepared == 5) {
      spec.sparse_kept = 4;
      spec.sparse_block = 16;
    }
    specs.push_back(spec);
  }
  for (const auto kind : {KernelKind::AttentionForward, KernelKind::AttentionBackward}) {
    specs.push_back(attention(kind, 3, 700, true));
    specs.push_back(attention(kind, 2, 512, false));
    specs.back().flash = false;
    specs.push_back(attention(kind, 1, 128, true));
    specs.back().batch = 5;
    specs.push_back(attention(kind, 4, 300, false));
    specs.back().kv_heads = 1;
  }
  for (const char* fn :
       {"rmsnorm_bwd", "rope", "silu_mul_bwd", "adamw", "zero", "sum_squares", "embedding"}) {
    KernelSpec spec;
    spec.kind = KernelKind::Vector;
    spec.fn = fn;
    spec.elems = 1'000'003;
    spec.rd = 5'000'001;
    spec.wr = 3'000'001;
    spec.cores = 2;
    specs.push_back(spec);
  }
  for (const KernelSpec& spec : specs) {
    const models::TileProgram program = compile_kernel(spec, chip);
    const modules::ClusterRun run = bench.run(program, base::Rate(0));
    const models::EventCounts counts = models::program_counts(program, chip);
    EXPECT_EQ(run.hbm_read_bytes, counts.hbm_read_bytes) << spec.label();
    EXPECT_EQ(run.hbm_write_bytes, counts.hbm_write_bytes) << spec.label();
  }
}

}  // namespace
}  // namespace trn3sim::compile
