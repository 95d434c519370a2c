// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Random kernels (fixed seed): each compiles to a program that ends and does its work, or is
// refused as a user error. Every instruction must be one that its engine can execute.
#include <random>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

class Dice {
 public:
  std::int64_t roll(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(most - least + 1));
  }
  std::int64_t size(std::int64_t bits) { return roll(1, std::int64_t{1} << roll(0, bits)); }
  base::DType dtype(std::int64_t most) { return static_cast<base::DType>(roll(0, most)); }
  const char* function() {
    static constexpr const char* kNames[] = {"add",      "silu_mul", "silu_mul_bwd", "gelu",
                                             "gelu_bwd", "rmsnorm",  "scale",        "sum_squares",
                                             "adamw",    "softmax"};
    return kNames[roll(0, 9)];
  }

 private:
  std::mt19937 engine_{7};
};

KernelSpec random_gemm(Dice& dice) {
  KernelSpec s;
  s.m = dice.size(12);
  s.n = dice.size(12);
  s.k = dice.size(13);
  s.batch = dice.roll(1, 3);
  s.in = dice.dtype(6);
  s.out = dice.dtype(6);
  s.accumulate = dice.roll(0, 3) == 0;
  if (s.accumulate) s.out = base::DType::Fp32;
  s.a_transposed = dice.roll(0, 1) == 1;
  s.b_transposed = dice.roll(0, 2) == 0;
  if (dice.roll(0, 2) == 0) s.a_format = dice.dtype(6);
  if (dice.roll(0, 2) == 0) s.b_format = dice.dtype(6);
  if (dice.roll(0, 4) == 0) {
    s.sparse_kept = 4;
    s.sparse_block = 4 * dice.roll(2, 4);
  }
  for (std::int64_t e = dice.roll(0, 2); e > 0; --e) {
    const std::int64_t results = s.m * s.n * s.batch;
    s.epilogues.push_back({dice.function(), std::max<std::int64_t>(1, results / dice.roll(1, 2))});
  }
  return s;
}

KernelSpec random_vector(Dice& dice) {
  KernelSpec s;
  s.kind = KernelKind::Vector;
  s.fn = dice.function();
  s.elems = dice.size(22);
  s.in = dice.dtype(4);
  s.rd = dice.roll(0, 3) * s.elems * dice.roll(0, 4);
  s.wr = dice.roll(0, 3) * s.elems * dice.roll(0, 4) + dice.roll(0, 9);
  return s;
}

KernelSpec random_attention(Dice& dice, KernelKind kind) {
  KernelSpec s;
  s.kind = kind;
  s.batch = dice.roll(1, 3);
  s.kv_heads = dice.roll(1, 4);
  s.heads = s.kv_heads * dice.roll(1, 4);
  s.skv = dice.roll(1, 2500);
  s.causal = dice.roll(0, 1) == 1;
  s.sq = s.causal ? dice.roll(1, s.skv) : dice.roll(1, 2500);
  s.d = dice.roll(1, 300);
  s.flash = dice.roll(0, 5) != 0;
  s.fast_exponential = dice.roll(0, 1) == 1;
  s.in = dice.dtype(4);
  return s;
}

void check(const KernelSpec& spec, const models::TileProgram& program,
           const config::ChipSpec& chip) {
  const test::ProgramRun r = test::ProgramInterpreter(program, chip).run();
  std::int64_t loaded = 0, stored = 0;
  for (const auto& [name, bytes] : r.loaded) loaded += bytes;
  for (const auto& [name, bytes] : r.stored) stored += bytes;
  const models::EventCounts counts = models::program_counts(program, chip);
  EXPECT_GE(counts.hbm_read_bytes, loaded) << spec.label();  // accumulating stores read too
  EXPECT_EQ(counts.hbm_write_bytes, stored) << spec.label();
  if (spec.kind == KernelKind::Gemm) {
    EXPECT_EQ(r.total_macs(), spec.m * spec.n * spec.k * spec.batch) << spec.label();
    EXPECT_LE(static_cast<std::int64_t>(program.psum_banks), chip.psum.banks);
  }
  if (spec.kind == KernelKind::Vector) {
    EXPECT_EQ(loaded - counts.spill_reload_bytes, spec.rd) << spec.label();
    EXPECT_EQ(stored - counts.spill_save_bytes, spec.wr) << spec.label();
    if (spec.memory_reuse) {
      EXPECT_EQ(counts.spill_reload_bytes + counts.spill_save_bytes, 0);
    }
  }
}

TEST(RandomKernels, CompileAndEndOrAreRefused) {
  Dice dice;
  int compiled = 0;
  for (int i = 0; i < 900; ++i) {
    const config::ChipSpec chip = i % 2 == 0 ? test::trainium2() : test::trainium3();
    KernelSpec spec;
    switch (dice.roll(0, 3)) {
      case 0:
        spec = random_gemm(dice);
        break;
      case 1:
        spec = random_vector(dice);
        break;
      case 2:
        spec = random_attention(dice, KernelKind::AttentionForward);
        break;
      default:
        spec = random_attention(dice, KernelKind::AttentionBackward);
        break;
    }
    spec.cores = dice.roll(1, 3);
    spec.double_accumulators = dice.roll(0, 2) != 0;
    spec.streaming_loads = dice.roll(0, 2) != 0;
    spec.memory_reuse = dice.roll(0, 2) != 0;
    spec.fusion = dice.roll(0, 1) != 0;
    SCOPED_TRACE(spec.label());
    models::TileProgram program;
    try {
      program = compile_kernel(spec, chip);
    } catch (const base::UserError&) {
      continue;
    }
    ++compiled;
    ASSERT_NO_THROW(check(spec, program, chip));
  }
  EXPECT_GT(compiled, 750);
}

}  // namespace
}  // namespace trn3sim::compile
