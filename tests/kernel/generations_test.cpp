// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Every kind of kernel on the shipped chip of each generation, in detail: it fits into the usable
// SBUF, moves the bytes of its program and is no faster than array, DMA and HBM allow.
#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/sim/bench.hpp"

#include "support/kernel_test.hpp"

namespace trn3sim::compile {
namespace {

using base::DType;

constexpr std::array kChips = {"trn1_chip.json", "trn2_chip.json", "chip1.json"};

class GenerationsTest : public test::KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  const config::ChipSpec chip = config::load_run(GetParam(), {}).system.chip;
  sim::KernelBench bench{"bench", chip, context};

  [[nodiscard]] KernelSpec on_stack(KernelKind kind) const {
    KernelSpec spec;
    spec.kind = kind;
    spec.cores = chip.cores_per_stack();
    return spec;
  }
  [[nodiscard]] KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType in) const {
    KernelSpec spec = on_stack(KernelKind::Gemm);
    spec.m = m;
    spec.n = n;
    spec.k = k;
    spec.in = in;
    return spec;
  }
  [[nodiscard]] KernelSpec attention(KernelKind kind, std::int64_t s, bool causal) const {
    KernelSpec spec = on_stack(kind);
    spec.heads = 4;
    spec.kv_heads = 2;
    spec.sq = spec.skv = s;
    spec.d = 128;
    spec.causal = causal;
    return spec;
  }
  [[nodiscard]] bool multiplies(DType t) const { return chip.peak_flops_per_core(t) > 0; }

  void runs(const KernelSpec& spec) {
    const models::TileProgram program = compile_kernel(spec, chip);
    EXPECT_LE(program.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count());
    const modules::ClusterRun run = bench.run(program, base::Rate(0));
    const models::EventCounts counts = models::program_counts(program, chip);
    EXPECT_EQ(run.hbm_read_bytes, counts.hbm_read_bytes) << spec.label();
    EXPECT_EQ(run.hbm_write_bytes, counts.hbm_write_bytes) << spec.label();
    const double seconds = base::to_seconds(run.duration);
    const auto cores = static_cast<double>(spec.cores);
    EXPECT_GT(seconds, base::to_seconds(models::tensor_ideal_time(counts, chip)) / cores)
        << spec.label();
    const auto bytes = static_cast<double>(counts.hbm_read_bytes + counts.hbm_write_bytes);
    const auto engines = static_cast<double>(chip.dma.engines * spec.cores);
    EXPECT_GT(seconds, bytes / (engines * static_cast<double>(chip.dma.bus_rate.count())));
    EXPECT_GT(seconds, bytes * static_cast<double>(chip.stacks) /
                           static_cast<double>(chip.hbm.bandwidth.count()));
  }
};

TEST_P(GenerationsTest, GemmsOfEveryFormat) {
  for (std::size_t i = 0; i < base::kDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    if (!multiplies(t)) {
      EXPECT_THROW(compile_kernel(gemm(512, 512, 512, t), chip), base::UserError);
      continue;
    }
    runs(gemm(700, 1000, 2100, t));
    KernelSpec gradient = gemm(512, 1024, 512, t);
    gradient.out = DType::Fp32;
    gradient.accumulate = true;
    runs(gradient);
  }
  KernelSpec fused = gemm(512, 2048, 1024, DType::Bf16);
  fused.epilogues = {{"silu_mul", 512 * 1024}};
  runs(fused);
  KernelSpec prepared = gemm(700, 1000, 2100, DType::Bf16);
  prepared.a_transposed = prepared.b_transposed = true;
  runs(prepared);
}

TEST_P(GenerationsTest, SparseWeightsWhereTheArrayHasThem) {
  KernelSpec spec = gemm(512, 1024, 4096, DType::Bf16);
  spec.sparse_kept = 4;
  spec.sparse_block = 16;
  if (chip.tensor.sparse_weights)
    runs(spec);
  else
    EXPECT_THROW(compile_kernel(spec, chip), base::UserError);
}

TEST_P(GenerationsTest, AttentionBothWays) {
  for (const KernelKind kind : {KernelKind::AttentionForward, KernelKind::AttentionBackward})
    for (const bool flash : {true, false}) {
      for (const bool causal : {true, false}) {
        KernelSpec spec = attention(kind, 600, causal);
        spec.flash = flash;
        runs(spec);
      }
    }
  runs(attention(KernelKind::AttentionForward, 4096, true));
}

TEST_P(GenerationsTest, VectorFunctions) {
  for (const char* fn :
       {"rmsnorm",  "rmsnorm_bwd",   "layernorm",     "layernorm_bwd", "rope",
        "softmax",  "softmax_bwd",   "silu_mul",      "silu_mul_bwd",  "gelu",
        "gelu_bwd", "add",           "scale",         "cast",          "zero",
        "adamw",    "cross_entropy", "embedding_bwd", "sum_squares",   "cast_weights"}) {
    for (const DType t : {DType::Bf16, DType::Fp32}) {
      KernelSpec spec = on_stack(KernelKind::Vector);
      spec.fn = fn;
      spec.elems = 300'003;
      spec.in = t;
      spec.rd = 4 * spec.elems;
      spec.wr = 2 * spec.elems;
      runs(spec);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Trainium, GenerationsTest, ::testing::ValuesIn(kChips),
                         [](const auto& chip) {
                           return std::string(chip.param).substr(0, 5) == "chip1"
                                      ? std::string("trn3")
                                      : std::string(chip.param).substr(0, 4);
                         });

}  // namespace
}  // namespace trn3sim::compile
