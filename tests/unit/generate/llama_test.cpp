// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "unit/generate/llama_trace.hpp"
#include <fmt/format.h>

namespace trn3sim::generate {
namespace {

TEST(LlamaDims, ParametersArePublishedOnes) {
  EXPECT_EQ(llama_preset("llama2-7b").parameters(), 6'738'415'616);
  EXPECT_EQ(llama_preset("llama2-13b").parameters(), 13'015'864'320);
  EXPECT_EQ(llama_preset("llama2-70b").parameters(), 68'976'648'192);
  EXPECT_EQ(llama_preset("llama3.1-8b").parameters(), 8'030'261'248);
  EXPECT_EQ(llama_preset("llama3.1-70b").parameters(), 70'553'706'496);
}

TEST(LlamaDims, RanksHoldTheModelAndCopiesOfTheNorms) {
  for (const std::string& name : llama_preset_names()) {
    const LlamaDims d = llama_preset(name);
    const std::int64_t norms = (2 * d.layers + 1) * d.hidden;
    EXPECT_EQ(4 * d.parameters_per_rank(4), d.parameters() + 3 * norms) << name;
  }
}

std::string complaint(const LlamaPlan& plan) {
  try {
    generate_llama(plan);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

TEST(LlamaPlanErrors, NameTheNearestThatWorks) {
  EXPECT_EQ(complaint(plan_of("llama2-7b", 4, 64)), "");
  EXPECT_EQ(complaint(plan_of("llama2-7b", 5, 64)),
            "llama: tp: 5 does not divide heads 32, kv_heads 32, ffn 11008, seq 4096; the nearest "
            "that works is 4");
  EXPECT_EQ(complaint(plan_of("llama3.1-8b", 16, 4)),
            "llama: tp: 16 does not divide kv_heads 8; the nearest that works is 8");
  LlamaPlan plan = plan_of("llama2-7b", 4, 64);
  plan.gbs = 1000;  // 15 x 64 = 960, 16 x 64 = 1024
  EXPECT_EQ(complaint(plan),
            "llama: gbs: 1000 is not a multiple of dp x mbs = 64 x 1 = 64; the "
            "nearest that works is 1024");
  plan.gbs = 3;
  EXPECT_EQ(complaint(plan),
            "llama: gbs: 3 is not a multiple of dp x mbs = 64 x 1 = 64; the "
            "nearest that works is 64");
  plan.tp = 0;
  EXPECT_EQ(complaint(plan), "llama: tp: expected 1 to 1073741824, got 0");
  EXPECT_THROW(llama_preset("llama2-7"), base::UserError);
  try {
    llama_preset("llama2-7");
  } catch (const base::UserError& e) {
    EXPECT_STREQ(e.what(),
                 "llama: preset: unknown model \"llama2-7\"; did you mean \"llama2-7b\"?; "
                 "known: llama2-7b, llama2-13b, llama2-70b, llama3.1-8b, llama3.1-70b");
  }
}

// Ids of a block, in issue order.
std::string order(const trace::Program& p, std::string_view block) {
  std::string text;
  for (const trace::Op& op : block_of(p, block).ops) text += (text.empty() ? "" : " ") + op.id;
  return text;
}

TEST(Llama, IssueOrder) {
  const trace::Program p = program_of(plan_of("llama2-7b", 4, 64, 16));
  EXPECT_EQ(order(p, "layer_fwd"),
            "norm1 ag1 qkv rope attn o rs1 add1 norm2 ag2 gate_up silu down rs2 add2");
  EXPECT_EQ(order(p, "layer_bwd"),
            "ag_dy2 down_dx silu_again down_dw silu_bwd ag_x2 gate_up_dx gate_up_dw rs_dx2 "
            "norm2_bwd add2_bwd ag_dy1 o_dx o_dw attn_bwd rope_bwd ag_x1 qkv_dx qkv_dw rs_dx1 "
            "norm1_bwd add1_bwd");
  EXPECT_EQ(order(p, "head"), "norm ag head ar_max loss ar_target ar_sum");
  EXPECT_EQ(order(p, "optimizer"),
            "norm_grads grad_buckets grad_rest grad_squares grad_norm_tp grad_norm_dp adamw "
            "weight_buckets weight_rest loss");
  EXPECT_EQ(order(p, ""), "micro_steps optimizer");
}

// The job of the 64-chip machine, against numbers of its own.
TEST(Llama, Step) {
  const trace::Program p = program_of(plan_of("llama2-7b", 4, 64, 16));
  EXPECT_EQ(p.header.tokens_per_step, 4'194'304);
  EXPECT_EQ(p.header.mesh.ranks(), 256);
  const trace::Totals t = trace::scan(p, 0);
  // Gemms: 6 FLOP per weight and token, without the input embedding (a gather) and the norms.
  const LlamaDims d = llama_preset("llama2-7b");
  const double gemm_params = static_cast<double>(d.parameters()) - 32000.0 * 4096 - 65 * 4096.0;
  // Attention: 6 products (2 forward, 4 backward) of 2 S S H per layer and sequence.
  const double attention = 6 * 2.0 * 4096 * 4096 * 4096 * 32;
  const double ranks = 256, sequences = 1024;
  EXPECT_NEAR(t.model_flop * ranks / (sequences * (6 * gemm_params * 4096 + attention)), 1, 1e-12);
  EXPECT_NEAR(t.model_flop_causal * ranks / (sequences * (6 * gemm_params * 4096 + attention / 2)),
              1, 1e-12);
  // Recomputed: the scores, one product per layer. (SiLU*mul is vector work.)
  EXPECT_NEAR(t.recompute_flop * ranks / (sequences * attention / 6), 1, 1e-12);
  // Per micro-step 32 layers of 15 + 22, embedding 2, head 7, head backward 6, embedding
  // backward 2. Optimizer: 65 norm reductions, 49 + 1 gradient buckets, 24 + 1 weight buckets, sum
  // of squares, 2 norm reductions, AdamW, loss.
  EXPECT_EQ(t.ops, 16 * (32 * 37 + 17) + 65 + 50 + 25 + 5);
}

// Per micro-step: what forward saves, backward frees; so a step ends as it began.
TEST(Llama, ActivationsAreFreed) {
  for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full})
    for (const bool sequence_parallel : {true, false})
      for (const std::int64_t tp : {1, 4}) {
        LlamaPlan plan = plan_of("llama2-7b", tp, 2, 3);
        plan.recompute = recompute;
        plan.sequence_parallel = sequence_parallel;
        const trace::Program p = program_of(plan);
        const auto net = [&](std::string_view block) {
          std::int64_t sum = 0;
          for (const trace::Op& op : block_of(p, block).ops) sum += op.alloc - op.free;
          return sum;
        };
        // What a layer saves, in elements of 2 bytes: layer input, 2 norms, first residual sum
        // (each T H, over t with sequence parallel), q k v, attention, gate and up (all over t);
        // and the fp32 log-sum-exp of every head and token.
        const std::int64_t t = 4096, h = 4096, f = 11008;
        const std::int64_t sharded = sequence_parallel ? tp : 1;
        const bool selective = recompute == Recompute::Selective;
        const std::int64_t all =
            2 * (4 * t * h / sharded + (3 + 1) * t * h / tp + (selective ? 2 : 3) * t * f / tp) +
            4 * t * 32 / tp;
        // Full recompute saves the layer's input alone, and all the rest of one layer at a time.
        const std::int64_t input = 2 * t * h / sharded;
        const std::int64_t saved = recompute == Recompute::Full ? input : all;
        EXPECT_EQ(net("layer_fwd"), saved);
        EXPECT_EQ(net("layer_bwd"), -saved);
        EXPECT_EQ(net("embed") + net("head") + net("head_bwd") + net("embed_bwd"), 0);
        const std::int64_t peak = trace::scan(p, 0).activation_peak_bytes;
        EXPECT_GT(peak, 31 * saved + all);
        EXPECT_LT(peak, 32 * saved + all + 4 * t * h * 2 + 2 * t * 32000 / tp * 2);
      }
}

// The backward pass of a layer starts with its forward pass, op by op the same work, marked.
TEST(Llama, FullRecomputeRunsTheForwardPassTwice) {
  for (const std::int64_t tp : {1, 4}) {
    LlamaPlan plan = plan_of("llama2-7b", tp, 2, 3);
    plan.recompute = Recompute::None;
    const trace::Totals none = trace::scan(program_of(plan), 0);
    plan.recompute = Recompute::Full;
    const trace::Program p = program_of(plan);
    const std::vector<trace::Op>& forward = block_of(p, "layer_fwd").ops;
    const std::vector<trace::Op>& backward = block_of(p, "layer_bwd").ops;
    double again = 0;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      EXPECT_EQ(backward[i].id, forward[i].id + "_again");
      EXPECT_TRUE(backward[i].recompute && !forward[i].recompute);
      EXPECT_EQ(backward[i].body.index(), forward[i].body.index());
      EXPECT_EQ(trace::flop_recompute(backward[i]), trace::flop_full(forward[i]));
      again += trace::flop_full(forward[i]);
    }
    for (std::size_t i = forward.size(); i < backward.size(); ++i)
      EXPECT_FALSE(backward[i].recompute);
    // The model's work is what it was; 3 micro-steps of 32 layers do their forward work again.
    const trace::Totals full = trace::scan(p, 0);
    EXPECT_EQ(full.model_flop, none.model_flop);
    EXPECT_EQ(full.recompute_flop, none.recompute_flop + 3 * 32 * again);
    for (const std::string_view kind : {"all_gather", "reduce_scatter"})
      EXPECT_EQ(sum_of(full, kind, "tp").count,
                sum_of(none, kind, "tp").count + (tp > 1 ? 3 * 32 * 2 : 0));
  }
}

TEST(Llama, MemoryOfTheHeader) {
  const trace::Program p = program_of(plan_of("llama2-7b", 4, 64, 16));
  const std::int64_t params = llama_preset("llama2-7b").parameters_per_rank(4);
  ASSERT_EQ(p.header.memory.size(), 3U);
  EXPECT_EQ(p.header.memory[0].bytes, 2 * params);
  EXPECT_EQ(p.header.memory[1].bytes, 4 * params);
  EXPECT_EQ(p.header.memory[2].bytes, 12 * params / 64);
}

TEST(Llama, OneDataParallelRankReducesNothing) {
  const trace::Totals t = trace::scan(program_of(plan_of("llama2-7b", 4, 1, 16)), 0);
  for (const trace::GroupTotals& g : t.collectives) EXPECT_EQ(g.group, "tp");
}

TEST(Llama, OneTensorParallelRankGathersNothing) {
  const trace::Totals t = trace::scan(program_of(plan_of("llama2-7b", 1, 4)), 0);
  for (const trace::GroupTotals& g : t.collectives) EXPECT_EQ(g.group, "dp");
}

// Without sequence parallel: two all-reduces of T H forward and two backward per layer, one for the
// embedding and one for the head's input gradient, three small ones for the loss, one for the norm.
TEST(Llama, WithoutSequenceParallel) {
  LlamaPlan plan = plan_of("llama2-7b", 4, 1);
  plan.sequence_parallel = false;
  const trace::Totals t = trace::scan(program_of(plan), 0);
  EXPECT_EQ(sum_of(t, "all_gather", "tp").count, 0);
  EXPECT_EQ(sum_of(t, "reduce_scatter", "tp").count, 0);
  const trace::GroupTotals sum = sum_of(t, "all_reduce", "tp");
  EXPECT_EQ(sum.count, 4 * 32 + 2 + 3 + 1);
  EXPECT_EQ(sum.in_bytes, (4 * 32 + 2) * 4096LL * 4096 * 2 + 3 * 4 * 4096 + 4);
}

TEST(Llama, WithoutZero1) {
  LlamaPlan plan = plan_of("llama2-7b", 4, 64);
  plan.zero1 = false;
  const trace::Program p = program_of(plan);
  const trace::Totals t = trace::scan(p, 0);
  const std::int64_t params = plan.dims.parameters_per_rank(4);
  EXPECT_EQ(sum_of(t, "reduce_scatter", "dp").count, 0);
  EXPECT_EQ(sum_of(t, "all_gather", "dp").count, 0);
  const trace::GroupTotals sum = sum_of(t, "all_reduce", "dp");
  EXPECT_GE(sum.in_bytes, 4 * params + 4);  // gradients and the loss
  EXPECT_LT(sum.in_bytes, 4 * params + 4 + 4 * 64);
  EXPECT_EQ(sum.count, (4 * params + (512 << 20) - 1) / (512 << 20) + 1);
  EXPECT_EQ(std::get<trace::Vec>(op_of(p, "optimizer", "adamw").body).elems, params);
  EXPECT_EQ(p.header.memory[2].bytes, 12 * params);
}

// The last micro-step launches each layer's reduction after the layer; the next layer's backward
// depends on the layer alone, and all reductions end before the optimizer starts.
TEST(Llama, OverlappedGradientReduction) {
  LlamaPlan plan = plan_of("llama2-7b", 4, 64, 16);
  const trace::Totals plain = trace::scan(program_of(plan), 0);
  plan.overlap_grad_reduce = true;
  const trace::Program p = program_of(plan);
  const trace::Totals t = trace::scan(p, 0);
  EXPECT_EQ(t.model_flop, plain.model_flop);
  const trace::Block& last = block_of(p, "last_micro_step");
  EXPECT_TRUE(last.out.empty());  // complete only when every op is
  std::int64_t layers = 0;
  for (const trace::Op& op : last.ops) {
    const bool backward = op.id.starts_with("backward");
    layers += backward ? 1 : 0;
    for (std::int32_t dep : op.deps) {
      if (dep == trace::kEntry) continue;
      const std::string& id = last.ops[static_cast<std::size_t>(dep)].id;
      EXPECT_FALSE(id.find("grads") != std::string::npos) << op.id << " waits for " << id;
    }
  }
  EXPECT_EQ(layers, 32);
  const std::int64_t bytes = 4 * plan.dims.parameters_per_rank(4);
  const trace::GroupTotals grads = sum_of(t, "reduce_scatter", "dp");
  EXPECT_GE(grads.in_bytes, bytes);
  // A layer's 202 MB are two collectives; each is padded by less than 4 bytes per rank.
  EXPECT_EQ(grads.count, 2 * 32 + 2);
  EXPECT_LT(grads.in_bytes, bytes + grads.count * 4 * 64);
  for (const trace::GroupTotals& g : t.collectives)
    EXPECT_FALSE(g.kind == "reduce_scatter" && g.group == "dp" && g.phase == "optimizer");
}

TEST(Llama, OneMicroStepCanOverlap) {
  LlamaPlan plan = plan_of("llama2-7b", 4, 2, 1);
  plan.overlap_grad_reduce = true;
  EXPECT_EQ(order(program_of(plan), ""), "last_micro_step optimizer");
}

TEST(Llama, EveryPresetReads) {
  for (const std::string& name : llama_preset_names())
    EXPECT_GT(trace::scan(program_of(plan_of(name, 8, 4, 2)), 0).ops, 0) << name;
}

}  // namespace
}  // namespace trn3sim::generate
