// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What the precision policies make of the kernels of llama7b_chip1.trace: 1,684,803,584 weights
// per rank in bf16, tensor-parallel degree 4.
#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"

#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using base::DType;

constexpr std::int64_t kWeights = 1'684'803'584;

Plan plan_of(const std::vector<std::string>& sets) {
  const std::string root = std::string(TRN3SIM_SOURCE_DIR) + "/configs/";
  const config::RunSpec run = config::load_run(root + "chip1.json", sets);
  const trace::Program program = trace::read(root + "traces/llama7b_chip1.trace");
  return place(program, topology::build(run.system), run);
}

std::string error_of(const std::vector<std::string>& sets) {
  try {
    plan_of(sets);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

const KernelSpec& gemm_of(const Plan& plan, std::int64_t m, std::int64_t n, std::int64_t k) {
  return *std::ranges::find_if(plan.kernels, [&](const KernelSpec& s) {
    return s.kind == KernelKind::Gemm && s.m == m && s.n == n && s.k == k;
  });
}

// Bytes of all adamw work of the plan's one optimizer step.
std::int64_t adamw_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const auto& block : plan.ops) {
    for (const OpPlan& op : block) {
      if (op.kernel < 0) continue;
      const auto add = [&](std::int32_t index, std::int64_t times) {
        const KernelSpec& s = plan.kernels[static_cast<std::size_t>(index)];
        if (s.fn == "adamw") bytes += times * (s.rd + s.wr);
      };
      add(op.kernel, op.pieces);
      if (op.last_piece >= 0) add(op.last_piece, 1);
    }
  }
  return bytes;
}

// X lies by rows: tokens on the partitions. W of the forward pass lies contraction-major, W^T does
// not; dW contracts over the tokens.
TEST(Precision, OperandsAreTransposedWhereTheyLieByRows) {
  const Plan plan = plan_of({});
  const KernelSpec& forward = gemm_of(plan, 4096, 3072, 4096);
  EXPECT_TRUE(forward.a_transposed);
  EXPECT_FALSE(forward.b_transposed);
  const KernelSpec& input_gradient = gemm_of(plan, 4096, 4096, 3072);
  EXPECT_TRUE(input_gradient.a_transposed);
  EXPECT_TRUE(input_gradient.b_transposed);
  const KernelSpec& weight_gradient = gemm_of(plan, 3072, 4096, 4096);
  EXPECT_FALSE(weight_gradient.a_transposed);
  EXPECT_FALSE(weight_gradient.b_transposed);
}

TEST(Precision, TheTracesFormatChangesNothing) {
  const Plan trace = plan_of({}), bf16 = plan_of({"precision.matmul=bf16"});
  EXPECT_EQ(trace.kernels, bf16.kernels);
}

// Weights come in the format, activations and gradients are quantised on the way.
TEST(Precision, MxWeightsAreStoredActivationsAreNot) {
  for (const auto& [policy, format] : {std::pair{"mxfp8", DType::Mxfp8}, {"mxfp4", DType::Mxfp4}}) {
    const Plan plan = plan_of({std::string("precision.matmul=") + policy});
    const KernelSpec& forward = gemm_of(plan, 4096, 3072, 4096);
    EXPECT_EQ(forward.in, DType::Mxfp8);
    EXPECT_EQ(forward.out, DType::Bf16);
    EXPECT_EQ(forward.a_format, DType::Bf16);
    EXPECT_EQ(forward.b_format, format);
    // Both orientations of W are stored: nothing is transposed for dX but dY.
    EXPECT_FALSE(gemm_of(plan, 4096, 4096, 3072).b_transposed);
    const KernelSpec& weight_gradient = gemm_of(plan, 3072, 4096, 4096);
    EXPECT_EQ(weight_gradient.a_format, DType::Bf16);
    EXPECT_EQ(weight_gradient.b_format, DType::Bf16);
    EXPECT_EQ(weight_gradient.out, DType::Fp32);
    // Attention keeps its format.
    for (const KernelSpec& s : plan.kernels) {
      if (s.kind == KernelKind::AttentionForward) {
        EXPECT_EQ(s.in, DType::Bf16);
      }
    }
  }
}

// The optimizer reads 16 bits of each weight and writes two copies.
TEST(Precision, WeightCopiesAreMadeOncePerStep) {
  const std::int64_t plain = adamw_bytes(plan_of({}));
  const auto extra = [&](const std::string& set) { return adamw_bytes(plan_of({set})) - plain; };
  const auto bits = [&](double n) { return static_cast<double>(kWeights) * n / 8; };
  EXPECT_NEAR(static_cast<double>(extra("precision.matmul=mxfp8")), bits(16 + 2 * 8.25), 1e3);
  EXPECT_NEAR(static_cast<double>(extra("precision.matmul=mxfp4")), bits(16 + 2 * 4.25), 1e3);
  EXPECT_NEAR(static_cast<double>(extra("precision.matmul=fp8")), bits(16 + 2 * 8), 1e3);
  EXPECT_EQ(extra("precision.matmul=fp16"), 0);
  // A quarter of the values, 16 bits and 4 bits of position each.
  EXPECT_NEAR(static_cast<double>(extra("precision.sparsity=4:16")), bits(16 + 2 * 5), 1e3);
}

TEST(Precision, PoliciesThatTheChipCannotRunAreRefused) {
  EXPECT_EQ(error_of({"precision.matmul=mxfp8", "precision.sparsity=4:16"}),
            "precision.sparsity: 4:16 is for bf16, fp16 or tf32 products, but precision.matmul "
            "makes them mxfp8; use \"none\" or another format");
  EXPECT_EQ(error_of({"precision.matmul=mxfp8", "chip.tensor.macs_per_pe_cycle.mxfp8=0"}),
            "precision.matmul: Trainium3 cannot multiply mxfp8")
      << "said once, not for every op";
  EXPECT_NE(error_of({"precision.matmul=mxfp4", "chip.vector.quantize_speedup=0"})
                .find("has no quantize_mx"),
            std::string::npos);
  EXPECT_NE(error_of({"precision.sparsity=2:4", "chip.tensor.sparse_weights=false"})
                .find("has no sparse weights"),
            std::string::npos);
}

}  // namespace
}  // namespace trn3sim::compile
