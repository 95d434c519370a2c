// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/generate/llama.hpp"

#include "generate/block_writer.hpp"
#include "generate/llama_plan.hpp"
#include <fmt/format.h>

namespace trn3sim::generate {
namespace {

using trace::LineWriter;

constexpr std::int64_t kGradient = 4;    // bytes of an fp32 gradient
constexpr std::int64_t kWeight = 2;      // bytes of a bf16 weight
constexpr std::int64_t kState = 12;      // bytes of fp32 master weight, m and v
constexpr std::int64_t kAdamRead = 16;   // gradient, master weight, m, v
constexpr std::int64_t kAdamWrite = 14;  // master weight, m, v; bf16 weight

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// `elems` numbers of `bytes` each cut into buckets for `ranks` ranks: `times` full ones of
// `part` bytes per rank and, if `rest` > 0, a last one of `rest` bytes per rank.
struct Buckets {
  std::int64_t part = 0, times = 0, rest = 0;
};

Buckets cut(std::int64_t elems, std::int64_t bytes, std::int64_t ranks, std::int64_t cap) {
  const std::int64_t per_rank = cap / (bytes * ranks);  // elements of a full bucket
  Buckets b;
  b.part = per_rank * bytes;
  b.times = elems / (per_rank * ranks);
  b.rest = ceil_div(elems - b.times * per_rank * ranks, ranks) * bytes;
  return b;
}

class Llama {
 public:
  explicit Llama(const LlamaPlan& plan)
      : plan_(plan),
        params_(plan.dims.parameters_per_rank(plan.tp)),
        shard_params_(plan.zero1 ? ceil_div(params_, plan.dp) : params_),
        micro_steps_(plan.gbs / (plan.dp * plan.mbs)),
        overlaps_(plan.overlap_grad_reduce && plan.dp > 1) {}

  [[nodiscard]] std::string text() const {
    std::string text = header() + embed_block(plan_) + layer_forward_block(plan_) +
                       head_block(plan_) + head_backward_block(plan_) +
                       layer_backward_block(plan_) + embed_backward_block(plan_);
    const std::int64_t plain = micro_steps_ - (overlaps_ ? 1 : 0);
    if (plain > 0) text += micro_step_block();
    if (overlaps_) text += layer_gradients_block() + last_micro_step_block();
    text += optimizer_parts() + optimizer_block();
    std::string before = "^";
    if (plain > 0) {
      text += LineWriter("repeat")
                  .text("id", "micro_steps")
                  .text("block", "micro_step")
                  .number("times", plain)
                  .texts("deps", {before})
                  .line();
      before = "micro_steps";
    }
    if (overlaps_) {
      text += call_line("last_micro_step", before);
      before = "last_micro_step";
    }
    return text + call_line("optimizer", before);
  }

 private:
  static std::string call_line(const std::string& block, const std::string& dep) {
    return LineWriter("call").text("id", block).text("block", block).texts("deps", {dep}).line();
  }

  [[nodiscard]] std::string header() const {
    const LlamaDims& d = plan_.dims;
    const std::string model = LineWriter("")
                                  .number("layers", d.layers)
                                  .number("hidden", d.hidden)
                                  .number("heads", d.heads)
                                  .number("kv_heads", d.kv_heads)
                                  .number("ffn", d.ffn)
                                  .number("vocab", d.vocab)
                                  .number("parameters", d.parameters())
                                  .number("parameters_per_rank", params_)
                                  .number("seq", plan_.seq)
                                  .number("micro_batch", plan_.mbs)
                                  .number("global_batch", plan_.gbs)
                                  .flag("sequence_parallel", plan_.sequence_parallel)
                                  .text("recompute", recompute_name(plan_.recompute))
                                  .flag("zero1", plan_.zero1)
                                  .flag("overlap_grad_reduce", plan_.overlap_grad_reduce)
                                  .object();
    const auto memory = [](std::string_view kind, std::int64_t bytes) {
      return LineWriter("")
          .text("kind", kind)
          .number("bytes", bytes)
          .text("live", "always")
          .object();
    };
    return LineWriter("")
        .text("trace", "trn3sim")
        .number("v", 1)
        .text("name", plan_.name)
        .text("rank_unit", base::name(plan_.rank_unit))
        .json("mesh", fmt::format("[[\"dp\",{}],[\"tp\",{}]]", plan_.dp, plan_.tp))
        .json("defaults", "{\"dtype\":\"bf16\"}")
        .json("model", model)
        .json("source", "{\"tool\":\"trn3sim trace gen llama\"}")
        .number("tokens_per_step", plan_.gbs * plan_.seq)
        .json("memory", fmt::format("[{},{},{}]", memory("weights", kWeight * params_),
                                    memory("grads", kGradient * params_),
                                    memory("optimizer", kState * shard_params_)))
        .line();
  }

  [[nodiscard]] std::string micro_step_block() const {
    BlockWriter b(plan_, "micro_step", "");
    forward_and_head(b);
    b.repeat("backward", "layer_bwd", plan_.dims.layers, {"head_bwd"});
    b.call("embed_bwd", "embed_bwd", {"backward"});
    return b.end();
  }

  void forward_and_head(BlockWriter& b) const {
    b.call("embed", "embed", {"^"});
    b.repeat("forward", "layer_fwd", plan_.dims.layers, {"embed"});
    b.call("head", "head", {"forward"});
    b.call("head_bwd", "head_bwd", {"head"});
  }

  // Reduction of `part` bytes per rank: the gradients of `part` x dp bytes.
  [[nodiscard]] LineWriter gradient_reduce(std::string_view id, std::int64_t part) const {
    LineWriter w("coll");
    const std::int64_t whole = part * plan_.dp;
    w.text("id", id)
        .text("kind", plan_.zero1 ? "reduce_scatter" : "all_reduce")
        .text("group", "dp")
        .number("in", whole)
        .number("out", plan_.zero1 ? part : whole)
        .text("dtype", "fp32");
    return w;
  }

  [[nodiscard]] std::int64_t gradient_cap() const {
    return plan_.zero1 ? plan_.bucket_bytes : plan_.all_reduce_bucket_bytes;
  }

  // Per rank bytes of `times` equal buckets that cover the gradients of `params` parameters.
  [[nodiscard]] Buckets even_cut(std::int64_t params) const {
    Buckets b;
    b.times = ceil_div(params * kGradient, gradient_cap());
    b.part = ceil_div(params, b.times * plan_.dp) * kGradient;
    return b;
  }

  [[nodiscard]] std::string layer_gradients_block() const {
    BlockWriter b(plan_, "layer_grads", "backward");
    LineWriter w = gradient_reduce("reduce", even_cut(layer_parameters(plan_.dims, plan_.tp)).part);
    b.line(w.texts("deps", {"^"}));
    return b.end();
  }

  // The layers one by one: no layer waits for the gradient reduction of the one before it, but the
  // block is complete only when all of them are.
  [[nodiscard]] std::string last_micro_step_block() const {
    const std::int64_t vocab_params = plan_.dims.vocab / plan_.tp * plan_.dims.hidden;
    const std::int64_t times = even_cut(layer_parameters(plan_.dims, plan_.tp)).times;
    BlockWriter b(plan_, "last_micro_step", "");
    forward_and_head(b);
    const auto whole = [&](std::string_view id, std::int64_t params, const std::string& dep) {
      b.line(gradient_reduce(id, ceil_div(params, plan_.dp) * kGradient).texts("deps", {dep}));
    };
    whole("head_grads", vocab_params + plan_.dims.hidden, "head_bwd");
    std::string before = "head_bwd";
    for (std::int64_t layer = plan_.dims.layers; layer-- > 0;) {
      const std::string id = fmt::format("backward{}", layer);
      b.call(id, "layer_bwd", {before});
      b.repeat(fmt::format("grads{}", layer), "layer_grads", times, {id});
      before = id;
    }
    b.call("embed_bwd", "embed_bwd", {before});
    whole("embed_grads", vocab_params, "embed_bwd");
    return b.end();
  }

  [[nodiscard]] bool reduces_norms() const { return plan_.sequence_parallel && plan_.tp > 1; }
  [[nodiscard]] Buckets gradient_buckets() const {
    return cut(params_, kGradient, plan_.dp, gradient_cap());
  }
  [[nodiscard]] Buckets weight_buckets() const {
    return cut(params_, kWeight, plan_.dp, plan_.bucket_bytes);
  }

  [[nodiscard]] LineWriter weight_gather(std::string_view id, std::int64_t part) const {
    LineWriter w("coll");
    w.text("id", id)
        .text("kind", "all_gather")
        .text("group", "dp")
        .number("in", part)
        .number("out", part * plan_.dp);
    return w;
  }

  // Blocks that the optimizer repeats.
  [[nodiscard]] std::string optimizer_parts() const {
    std::string text;
    if (reduces_norms()) {
      BlockWriter b(plan_, "norm_grad", "optimizer");
      b.all_reduce("reduce", "tp", kWeight * plan_.dims.hidden, "", {"^"});
      text += b.end();
    }
    if (plan_.dp > 1 && !overlaps_ && gradient_buckets().times > 0) {
      BlockWriter b(plan_, "grad_bucket", "optimizer");
      b.line(gradient_reduce("reduce", gradient_buckets().part).texts("deps", {"^"}));
      text += b.end();
    }
    if (plan_.dp > 1 && plan_.zero1 && weight_buckets().times > 0) {
      BlockWriter b(plan_, "weight_bucket", "optimizer");
      b.line(weight_gather("gather", weight_buckets().part).texts("deps", {"^"}));
      text += b.end();
    }
    return text;
  }

  [[nodiscard]] std::string optimizer_block() const {
    BlockWriter b(plan_, "optimizer", "optimizer");
    std::string last = "^";
    if (reduces_norms()) {
      b.repeat("norm_grads", "norm_grad", 2 * plan_.dims.layers + 1, {last});
      last = "norm_grads";
    }
    if (plan_.dp > 1 && !overlaps_) {
      const Buckets g = gradient_buckets();
      if (g.times > 0) {
        b.repeat("grad_buckets", "grad_bucket", g.times, {last});
        last = "grad_buckets";
      }
      if (g.rest > 0) {
        b.line(gradient_reduce("grad_rest", g.rest).texts("deps", {last}));
        last = "grad_rest";
      }
    }
    LineWriter squares("vec");
    squares.text("id", "grad_squares").text("fn", "sum_squares").number("elems", shard_params_);
    b.line(squares.text("dtype", "fp32").texts("deps", {last}));
    last = "grad_squares";
    if (plan_.tp > 1) b.all_reduce("grad_norm_tp", "tp", kGradient, "fp32", {last});
    if (plan_.tp > 1) last = "grad_norm_tp";
    if (plan_.dp > 1 && plan_.zero1) b.all_reduce("grad_norm_dp", "dp", kGradient, "fp32", {last});
    if (plan_.dp > 1 && plan_.zero1) last = "grad_norm_dp";
    LineWriter adamw("vec");
    adamw.text("id", "adamw")
        .text("fn", "adamw")
        .number("elems", shard_params_)
        .number("rd", kAdamRead * shard_params_)
        .number("wr", kAdamWrite * shard_params_)
        .text("dtype", "fp32")
        .texts("deps", {last});
    b.line(adamw);
    if (plan_.dp > 1) gather_weights(b);
    return b.end();
  }

  void gather_weights(BlockWriter& b) const {
    std::string last = "adamw";
    if (plan_.zero1) {
      const Buckets w = weight_buckets();
      if (w.times > 0) {
        b.repeat("weight_buckets", "weight_bucket", w.times, {last});
        last = "weight_buckets";
      }
      if (w.rest > 0) b.line(weight_gather("weight_rest", w.rest).texts("deps", {last}));
      if (w.rest > 0) last = "weight_rest";
    }
    b.all_reduce("loss", "dp", kGradient, "fp32", {last});
  }

  const LlamaPlan& plan_;
  std::int64_t params_, shard_params_, micro_steps_;
  bool overlaps_;
};

}  // namespace

std::string generate_llama(const LlamaPlan& plan) {
  check_plan(plan);
  return Llama(plan).text();
}

}  // namespace trn3sim::generate
