// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Formats of single ops, and the parts of a format, on the kernels of llama7b_chip1.trace.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"

#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using base::DType;

struct Compiled {
  trace::Program program;
  Plan plan;
};

using Sets = std::vector<std::string>;

Compiled compiled(const Sets& sets, const std::function<void(trace::Program&)>& change = {}) {
  const std::string root = std::string(TRN3SIM_SOURCE_DIR) + "/configs/";
  const config::RunSpec run = config::load_run(root + "chip1.json", sets);
  trace::Program program = trace::read(root + "traces/llama7b_chip1.trace");
  if (change) change(program);
  program = rewrite(std::move(program), run.compile);
  Plan plan = place(program, topology::build(run.system), run);
  return {std::move(program), std::move(plan)};
}

// The kernels of the ops "block.op".
std::map<std::string, KernelSpec> kernels(const Sets& sets) {
  const Compiled c = compiled(sets);
  std::map<std::string, KernelSpec> out;
  for (std::size_t b = 0; b < c.program.blocks.size(); ++b)
    for (std::size_t i = 0; i < c.program.blocks[b].ops.size(); ++i)
      if (const std::int32_t k = c.plan.ops[b][i].kernel; k >= 0)
        out[c.program.blocks[b].id + "." + c.program.blocks[b].ops[i].id] =
            c.plan.kernels[static_cast<std::size_t>(k)];
  return out;
}

std::string error_of(const Sets& sets) {
  try {
    compiled(sets);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

// Elements and bytes of the weight copies behind all adamw work.
struct Copies {
  std::map<std::string, std::int64_t> elements;
  std::int64_t read = 0, written = 0;
};

Copies copies(const Sets& sets) {
  const Compiled c = compiled(sets);
  Copies out;
  for (const auto& block : c.plan.ops)
    for (const OpPlan& op : block) {
      const auto add = [&](std::int32_t index, std::int64_t times) {
        const KernelSpec& s = c.plan.kernels[static_cast<std::size_t>(index)];
        if (s.fn != "adamw") return;
        for (const Epilogue& e : s.epilogues) out.elements[e.fn] += times * e.elems;
        out.read += times * s.rd;
        out.written += times * s.wr;
      };
      if (op.kernel >= 0) add(op.kernel, op.pieces);
      if (op.last_piece >= 0) add(op.last_piece, 1);
    }
  return out;
}

TEST(PrecisionOps, ANameSetsTheFormatOfItsOpsOnly) {
  const auto k = kernels({"precision.ops=layer_fwd.qkv=mxfp8"});
  EXPECT_EQ(k.at("layer_fwd.qkv").in, DType::Mxfp8);
  EXPECT_EQ(k.at("layer_fwd.qkv").out, DType::Bf16);
  EXPECT_EQ(k.at("layer_fwd.qkv").a_format, DType::Bf16);
  EXPECT_EQ(k.at("layer_fwd.qkv").b_format, DType::Mxfp8);
  EXPECT_EQ(k.at("layer_bwd.qkv_dx").in, DType::Bf16);
  EXPECT_TRUE(k.at("layer_bwd.qkv_dx").b_transposed) << "no copy of the weights for dX";
  EXPECT_EQ(k.at("layer_fwd.o").in, DType::Bf16);
}

TEST(PrecisionOps, NamesBeatTheRunAndTheBlockBeatsTheName) {
  const Sets sets = {"precision.matmul=mxfp8",
                     "precision.ops=layer_fwd.qkv = mxfp4, qkv=fp8, head=bf16, qkv_dx=trace"};
  const auto k = kernels(sets);
  EXPECT_EQ(k.at("layer_fwd.qkv").b_format, DType::Mxfp4);
  EXPECT_EQ(k.at("head.head").in, DType::Bf16);
  EXPECT_TRUE(k.at("head.head").a_transposed);
  EXPECT_FALSE(k.at("head.head").a_format.has_value());
  EXPECT_EQ(k.at("layer_bwd.qkv_dx").in, DType::Bf16);
  EXPECT_EQ(k.at("layer_fwd.o").in, DType::Mxfp8);
  EXPECT_EQ(kernels({"precision.ops=qkv=fp8"}).at("layer_fwd.qkv").in, DType::Fp8);
}

TEST(PrecisionOps, ANameBeatsTheDtypeOfTheOpUnlessItSaysTrace) {
  const auto qkv = [](const std::string& set) {
    const Compiled c = compiled({"precision.matmul=mxfp8", set}, [](trace::Program& p) {
      for (trace::Block& block : p.blocks)
        for (trace::Op& op : block.ops)
          if (op.id == "qkv") std::get<trace::Gemm>(op.body).dtype = DType::Fp32;
    });
    return std::ranges::find_if(
               c.plan.kernels,
               [](const KernelSpec& s) { return s.kind == KernelKind::Gemm && s.n == 3072; })
        ->in;
  };
  EXPECT_EQ(qkv("precision.ops=head=bf16"), DType::Fp32);
  EXPECT_EQ(qkv("precision.ops=qkv=trace"), DType::Fp32);
  EXPECT_EQ(qkv("precision.ops=qkv=mxfp4"), DType::Mxfp8);
}

TEST(PrecisionOps, PiecesGoByTheNameOfTheWhole) {
  const auto k = kernels({"compile.level=ideal", "precision.ops=layer_fwd.gate_up=mxfp8"});
  EXPECT_EQ(k.at("layer_fwd.gate_up.0").in, DType::Mxfp8);
  EXPECT_EQ(k.at("layer_fwd.gate_up.3").in, DType::Mxfp8);
}

// A layer has 4096 x (3072 + 1024 + 5504 + 2752) weights, the head 4096 x 8000.
TEST(PrecisionOps, OnlyTheNamedWeightsAreCopiedInTheOrientationsInUse) {
  constexpr std::int64_t kWeights = 1'684'803'584, kLayer = 3072 + 1024 + 5504 + 2752;
  const auto share = [](std::int64_t part) {
    return static_cast<double>(kWeights) * static_cast<double>(part) / (32 * kLayer + 8000);
  };
  const Copies plain = copies({}), qkv = copies({"precision.ops=qkv=mxfp8"});
  ASSERT_EQ(qkv.elements.size(), 1U);
  EXPECT_NEAR(static_cast<double>(qkv.elements.at("quantize_mxfp8_forward")), share(32 * 3072),
              1e3);
  EXPECT_NEAR(static_cast<double>(qkv.read - plain.read), share(32 * 3072) * 2, 1e3);
  EXPECT_NEAR(static_cast<double>(qkv.written - plain.written), share(32 * 3072) * 8.25 / 8, 1e3);
  const Copies both = copies({"precision.ops=qkv=mxfp8,qkv_dx=mxfp8"});
  ASSERT_EQ(both.elements.size(), 1U);
  EXPECT_NEAR(static_cast<double>(both.elements.at("quantize_mxfp8")), share(32 * 3072), 1e3);
  const Copies named = copies({"precision.matmul=mxfp8", "precision.ops=qkv=mxfp8"});
  EXPECT_EQ(named.elements, copies({"precision.matmul=mxfp8"}).elements);
  const Copies head = copies({"precision.matmul=mxfp4", "precision.ops=head=bf16,head_dx=bf16"});
  EXPECT_NEAR(static_cast<double>(head.elements.at("quantize_mxfp4")), share(32 * kLayer), 1e3);
}

TEST(PrecisionOps, SparsityIsOfThe16BitOps) {
  const auto k = kernels({"precision.sparsity=4:16", "precision.ops=head=mxfp8,qkv=fp16"});
  EXPECT_EQ(k.at("head.head").sparse_block, 0);
  EXPECT_EQ(k.at("layer_fwd.qkv").sparse_block, 16);
  EXPECT_EQ(k.at("layer_fwd.o").sparse_block, 16);
}

TEST(PrecisionOps, WrongNamesAreAnswered) {
  EXPECT_NE(error_of({"precision.ops=hed=bf16"}).find("has no op \"hed\"; did you mean \"head\"?"),
            std::string::npos);
  EXPECT_NE(error_of({"precision.ops=layer_fwd.kqv=bf16"}).find("\"layer_fwd.qkv\""),
            std::string::npos);
  EXPECT_NE(error_of({"precision.ops=nonsense=bf16"}).find("its gemms are \"head.head\""),
            std::string::npos);
  EXPECT_NE(error_of({"precision.ops=norm1=bf16"}).find("is no gemm"), std::string::npos);
  EXPECT_NE(error_of({"precision.ops=attn=fp8"}).find("attention keeps the format of the trace"),
            std::string::npos);
  EXPECT_EQ(error_of({"precision.ops=head=mxfp4", "chip.vector.quantize_speedup=0"}),
            "precision.ops: Trainium3 has no quantize_mx, which mxfp4 needs for activations");
}

// Weights come converted: only activations and gradients are, anew in each kernel and along the
// contraction of each: X and dY for their products with W, and both for dW.
TEST(PrecisionOps, WeightsAreNeverConvertedInAKernel) {
  for (const std::string format : {"fp8", "mxfp8", "mxfp4"}) {
    for (const auto& [name, s] : kernels({"precision.matmul=" + format})) {
      if (s.kind != KernelKind::Gemm) continue;
      EXPECT_EQ(s.a_format, DType::Bf16) << name;
      EXPECT_EQ(s.b_format == DType::Bf16, !s.b_weight) << name;
    }
    EXPECT_EQ(copies({"precision.matmul=" + format}).elements.size(), 1U);
  }
}

// Micro-batches use the copies again.
TEST(PrecisionOps, CopiesAreMadeOncePerStepHoweverManyMicroBatches) {
  const auto adamw = [](std::int64_t times) {
    const Compiled c = compiled({"precision.matmul=mxfp8"}, [&](trace::Program& p) {
      for (trace::Op& op : p.blocks[0].ops)
        if (auto* r = std::get_if<trace::Repeat>(&op.body)) r->times = times;
    });
    std::vector<KernelSpec> found;
    std::ranges::copy_if(c.plan.kernels, std::back_inserter(found),
                         [](const KernelSpec& s) { return s.fn == "adamw"; });
    return found;
  };
  EXPECT_EQ(adamw(1), adamw(16));
  EXPECT_FALSE(adamw(1).empty());
}

TEST(PrecisionParts, EachAddsOneThing) {
  const auto qkv = [](const std::string& parts) {
    return kernels({"precision.matmul=mxfp4", "precision.parts=" + parts}).at("layer_bwd.qkv_dx");
  };
  const KernelSpec rate = qkv("rate"), bytes = qkv("rate_bytes"), all = qkv("all");
  EXPECT_EQ(rate.in, DType::Mxfp8);
  EXPECT_EQ(rate.a_format, DType::Bf16);
  EXPECT_EQ(rate.b_format, DType::Bf16);
  EXPECT_TRUE(rate.b_transposed);
  EXPECT_EQ(rate.conversion, Conversion::None);
  EXPECT_EQ(bytes.b_format, DType::Mxfp4);
  EXPECT_FALSE(bytes.b_transposed);
  EXPECT_EQ(bytes.conversion, Conversion::Free);
  KernelSpec charged = bytes;
  charged.conversion = Conversion::Charged;
  EXPECT_EQ(charged, all);

  const Copies none = copies({"precision.matmul=mxfp4", "precision.parts=rate"});
  EXPECT_TRUE(none.elements.empty());
  const Copies free = copies({"precision.matmul=mxfp4", "precision.parts=rate_bytes"});
  const Copies work = copies({"precision.matmul=mxfp4"});
  EXPECT_EQ(free.written, work.written);
  EXPECT_EQ(free.read, work.read);
  EXPECT_EQ(free.elements.at("free_quantize_mxfp4"), work.elements.at("quantize_mxfp4"));
}

TEST(PrecisionParts, NamedOpsAreWhole) {
  const auto k = kernels(
      {"precision.matmul=mxfp8", "precision.parts=rate", "precision.ops=layer_fwd.qkv=mxfp8"});
  EXPECT_EQ(k.at("layer_fwd.qkv").conversion, Conversion::Charged);
  EXPECT_EQ(k.at("layer_fwd.qkv").b_format, DType::Mxfp8);
  EXPECT_EQ(k.at("layer_fwd.o").conversion, Conversion::None);
}

}  // namespace
}  // namespace trn3sim::compile
