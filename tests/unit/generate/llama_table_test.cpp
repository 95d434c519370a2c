// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The generated step against a table worked out by hand from the model's dimensions (sequence of
// 4096, one sequence per micro-batch, full attention), for tensor parallel 8 and 32. (70B on 32
// ranks would need replicated KV heads, which the generator refuses.)
#include <cmath>

#include "unit/generate/llama_trace.hpp"

namespace trn3sim::generate {
namespace {

constexpr double kGiga = 1e9;
constexpr std::int64_t kMiB = 1 << 20;

struct Row {
  std::string preset;
  std::int64_t tp, dp;
  std::int64_t qkv_n, heads, o_k, gate_up_n, head_n;                     // gemm dimensions
  double qkv, scores, o, gate_up, down, layer_fwd, layer_bwd, head_fwd;  // GFLOP
  std::int64_t shard_mib, full_mib;                                      // TP collectives
  std::int64_t gathers, scatters;                                        // per micro-batch
  double gather_gib, scatter_gib;
  double tflop;                         // per micro-batch
  double params_million;                // of a rank
  std::int64_t grads_mib, weights_mib;  // DP: reduce-scatter in (fp32), all-gather out (bf16)
  std::int64_t buckets;                 // of 130 x 2^20 bytes
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"llama2-7b", 8,     8, 1536, 4,   512, 2752, 4000, 51.54, 17.18, 17.18, 92.34, 46.17, 241.6,
       500.4,       134.2, 4, 32,   195, 130, 6.09, 4.06, 24.15, 842.5, 3214,  1607,  25},
      {"llama2-7b", 32,    2, 384, 1,   128, 688,  1000, 12.88, 4.295, 4.295, 23.09, 11.54, 60.40,
       125.1,       33.55, 1, 32,  195, 130, 6.09, 4.06, 6.036, 210.8, 804,   402,   7},
      {"llama3.1-70b", 8,     8,     1280,  8,     1024,  7168, 16032, 85.90, 34.36,
       68.72,          481.0, 240.5, 944.9, 1924,  1076,  8,    64,    483,   322,
       30.2,           20.1,  232.8, 8820,  33647, 16824, 259}};
  return kRows;
}

// `value` rounds to what the table prints with 4 significant digits (3 for those given so).
void expect_rounds(double value, double printed, const char* what) {
  EXPECT_NEAR(value / printed, 1.0, 6e-4) << what;
}

double gflop(const trace::Op& op) {
  return trace::flop_full(op) / kGiga;
}

double block_gflop(const trace::Program& p, std::string_view id) {
  double sum = 0;
  for (const trace::Op& op : block_of(p, id).ops) sum += gflop(op);
  return sum;
}

class LlamaTable : public testing::TestWithParam<Row> {};

TEST_P(LlamaTable, GemmShapes) {
  const Row& r = GetParam();
  const LlamaDims d = llama_preset(r.preset);
  const trace::Program p = program_of(plan_of(r.preset, r.tp, r.dp));
  const auto expect = [&](std::string_view block, std::string_view id, std::int64_t m,
                          std::int64_t n, std::int64_t k) {
    const auto& g = std::get<trace::Gemm>(op_of(p, block, id).body);
    EXPECT_EQ((std::vector{g.m, g.n, g.k, g.batch}), (std::vector<std::int64_t>{m, n, k, 1})) << id;
    const bool weight_gradient = id.ends_with("_dw");
    EXPECT_EQ(g.accumulate, weight_gradient) << id;
    EXPECT_EQ(g.out.has_value(), weight_gradient) << id;
    EXPECT_EQ(g.b, weight_gradient ? trace::Role::Activation : trace::Role::Weight) << id;
    EXPECT_EQ(g.a, block == "layer_fwd" || block == "head" ? trace::Role::Activation
                                                           : trace::Role::Gradient)
        << id;
  };
  const std::int64_t t = 4096, h = d.hidden, f = r.gate_up_n / 2;
  expect("layer_fwd", "qkv", t, r.qkv_n, h);
  expect("layer_fwd", "o", t, h, r.o_k);
  expect("layer_fwd", "gate_up", t, r.gate_up_n, h);
  expect("layer_fwd", "down", t, h, f);
  expect("head", "head", t, r.head_n, h);
  expect("head_bwd", "head_dx", t, h, r.head_n);
  expect("head_bwd", "head_dw", r.head_n, h, t);
  expect("layer_bwd", "down_dx", t, f, h);
  expect("layer_bwd", "down_dw", h, f, t);
  expect("layer_bwd", "gate_up_dx", t, h, r.gate_up_n);
  expect("layer_bwd", "gate_up_dw", r.gate_up_n, h, t);
  expect("layer_bwd", "o_dx", t, r.o_k, h);
  expect("layer_bwd", "o_dw", h, r.o_k, t);
  expect("layer_bwd", "qkv_dx", t, h, r.qkv_n);
  expect("layer_bwd", "qkv_dw", r.qkv_n, h, t);
  const auto& a = std::get<trace::Attention>(op_of(p, "layer_fwd", "attn").body);
  EXPECT_EQ(a.heads, r.heads);
  EXPECT_EQ(a.kv_heads, d.kv_heads / r.tp);
  EXPECT_EQ(a.d, 128);
}

TEST_P(LlamaTable, Flop) {
  const Row& r = GetParam();
  const trace::Program p = program_of(plan_of(r.preset, r.tp, r.dp));
  expect_rounds(gflop(op_of(p, "layer_fwd", "qkv")), r.qkv, "qkv");
  expect_rounds(gflop(op_of(p, "layer_fwd", "attn")) / 2, r.scores, "scores");
  expect_rounds(gflop(op_of(p, "layer_fwd", "o")), r.o, "o");
  expect_rounds(gflop(op_of(p, "layer_fwd", "gate_up")), r.gate_up, "gate_up");
  expect_rounds(gflop(op_of(p, "layer_fwd", "down")), r.down, "down");
  expect_rounds(gflop(op_of(p, "head", "head")), r.head_fwd, "head");
  expect_rounds(block_gflop(p, "layer_fwd"), r.layer_fwd, "layer forward");
  // The table's backward counts the recomputed scores of flash attention, which are no model FLOP.
  const double again = trace::flop_recompute(op_of(p, "layer_bwd", "attn_bwd")) / kGiga;
  expect_rounds(again, r.scores, "recomputed scores");
  expect_rounds(block_gflop(p, "layer_bwd") + again, r.layer_bwd, "layer backward");
  const trace::Totals t = trace::scan(p, 0);
  expect_rounds((t.model_flop + t.recompute_flop) * 1e-12, r.tflop, "micro-batch");
}

TEST_P(LlamaTable, TensorParallelCollectives) {
  const Row& r = GetParam();
  const trace::Program p = program_of(plan_of(r.preset, r.tp, r.dp));
  for (const std::string block :
       {"layer_fwd", "layer_bwd", "head", "head_bwd", "embed", "embed_bwd"})
    for (const trace::Op& op : block_of(p, block).ops) {
      const auto* c = std::get_if<trace::Collective>(&op.body);
      if (c == nullptr || c->kind == trace::CollectiveKind::AllReduce) continue;
      const bool gather = c->kind == trace::CollectiveKind::AllGather;
      EXPECT_EQ(c->in, (gather ? r.shard_mib : r.full_mib) * kMiB) << op.id;
      EXPECT_EQ(c->out, (gather ? r.full_mib : r.shard_mib) * kMiB) << op.id;
    }
  const trace::Totals t = trace::scan(p, 0);
  const trace::GroupTotals gathers = sum_of(t, "all_gather", "tp");
  const trace::GroupTotals scatters = sum_of(t, "reduce_scatter", "tp");
  EXPECT_EQ(gathers.count, r.gathers);
  EXPECT_EQ(scatters.count, r.scatters);
  EXPECT_NEAR(static_cast<double>(gathers.out_bytes) / (1 << 30), r.gather_gib, 0.05);
  EXPECT_NEAR(static_cast<double>(scatters.in_bytes) / (1 << 30), r.scatter_gib, 0.05);
}

TEST_P(LlamaTable, DataParallelBuckets) {
  const Row& r = GetParam();
  const LlamaPlan plan = plan_of(r.preset, r.tp, r.dp);
  const std::int64_t params = plan.dims.parameters_per_rank(r.tp);
  expect_rounds(static_cast<double>(params) * 1e-6, r.params_million, "parameters of a rank");
  const trace::Totals t = trace::scan(program_of(plan), 0);
  const trace::GroupTotals grads = sum_of(t, "reduce_scatter", "dp");
  const trace::GroupTotals weights = sum_of(t, "all_gather", "dp");
  EXPECT_EQ(grads.count, r.buckets);
  EXPECT_EQ(std::llround(static_cast<double>(grads.in_bytes) / kMiB), r.grads_mib);
  EXPECT_EQ(std::llround(static_cast<double>(weights.out_bytes) / kMiB), r.weights_mib);
  // Every byte once, and at most one element per rank of padding.
  EXPECT_GE(grads.in_bytes, 4 * params);
  EXPECT_LT(grads.in_bytes, 4 * params + 4 * r.dp);
  EXPECT_GE(weights.out_bytes, 2 * params);
  EXPECT_LT(weights.out_bytes, 2 * params + 2 * r.dp);
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaTable, testing::ValuesIn(rows()), [](const auto& row) {
  std::string name = row.param.preset + "_tp" + std::to_string(row.param.tp);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace trn3sim::generate
