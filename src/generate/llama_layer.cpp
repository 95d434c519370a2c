// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of one micro-batch. Saved from a layer's forward pass for its backward pass, and freed
// there: the layer's input, both norms' outputs and the first residual sum (sequence-sharded), q k
// v, the attention's output with its log-sum-exp, the gate and up outputs, and, without
// recompute, SiLU*mul; with full recompute the layer's input alone. `alloc` and `free` follow these
// and every temporary; over a micro-step they sum to zero.
#include "generate/block_writer.hpp"
#include <fmt/format.h>

namespace trn3sim::generate {

std::string embed_block(const LlamaPlan& plan) {
  const LlamaSizes s(plan);
  BlockWriter b(plan, "embed", "forward");
  b.vec("embedding", "embedding", s.tokens * plan.dims.hidden, {"^"}, {.alloc = s.full});
  b.reduce("rs_embed", "embedding");
  return b.end();
}

namespace {

// What becomes of the results of a layer's forward pass.
enum class Pass : std::uint8_t {
  Keep,   // those that the backward pass reads stay
  Drop,   // each ends at its last user, but for the layer's output
  Rerun,  // like Keep, at the start of the backward pass: the layer's output is not needed
};

std::string again(std::string_view id) {
  return fmt::format("{}_again", id);
}

void write_layer_forward(BlockWriter& b, const LlamaPlan& plan, Pass pass) {
  const LlamaSizes s(plan);
  const std::int64_t h = plan.dims.hidden;
  const std::int64_t gathered = s.gathers ? s.full : 0;
  const auto id = [&](std::string_view name) {
    return pass == Pass::Rerun ? again(name) : std::string(name);
  };
  const auto dropped = [&](std::int64_t bytes) { return pass == Pass::Drop ? bytes : 0; };
  // A norm's output ends when it is gathered; without a gather with the gemm that reads it.
  const std::int64_t early = s.gathers ? dropped(s.shard) : 0;
  const std::int64_t late = dropped(s.shard) - early;
  const std::int64_t silu =
      plan.recompute == Recompute::Selective ? s.silu_bytes : dropped(s.silu_bytes);
  const std::string qkv = id("qkv"), gate_up = id("gate_up");
  b.vec(id("norm1"), "rmsnorm", s.norm_elems, {"^"}, {.alloc = s.shard});
  const std::string x1 = b.gather(id("ag1"), id("norm1"), early);
  b.gemm(qkv, s.tokens, s.qkv_n, h, {x1}, {.alloc = s.qkv_bytes, .free = gathered + late});
  b.vec(id("rope"), "rope", s.rope_elems, {qkv}, {.fuse = qkv});
  b.attention(id("attn"), false, {id("rope")},
              {.alloc = s.attn_bytes + s.lse_bytes, .free = dropped(s.qkv_bytes + s.lse_bytes)});
  b.gemm(id("o"), s.tokens, h, s.attn_k, {id("attn")},
         {.alloc = s.full, .free = dropped(s.attn_bytes)});
  const std::string y1 = b.reduce(id("rs1"), id("o"));
  b.vec(id("add1"), "add", s.norm_elems, {y1, "^"}, {.alloc = s.shard, .free = s.shard});
  b.vec(id("norm2"), "rmsnorm", s.norm_elems, {id("add1")}, {.alloc = s.shard});
  const std::string x2 = b.gather(id("ag2"), id("norm2"), early);
  b.gemm(gate_up, s.tokens, s.gate_up_n, h, {x2},
         {.alloc = s.gate_up_bytes, .free = gathered + late});
  b.vec(id("silu"), "silu_mul", s.silu_elems, {gate_up},
        {.alloc = s.silu_bytes, .free = dropped(s.gate_up_bytes), .fuse = gate_up});
  b.gemm(id("down"), s.tokens, h, s.gate_up_n / 2, {id("silu")}, {.alloc = s.full, .free = silu});
  const std::string y2 = b.reduce(id("rs2"), id("down"));
  b.vec(id("add2"), "add", s.norm_elems, {y2, id("add1")},
        {.alloc = s.shard, .free = pass == Pass::Keep ? s.shard : 2 * s.shard});
}

}  // namespace

std::string layer_forward_block(const LlamaPlan& plan) {
  BlockWriter b(plan, "layer_fwd", "forward");
  write_layer_forward(b, plan, plan.recompute == Recompute::Full ? Pass::Drop : Pass::Keep);
  return b.end();
}

std::string head_block(const LlamaPlan& plan) {
  const LlamaSizes s(plan);
  const std::int64_t logits = s.tokens * s.vocab_n;
  BlockWriter b(plan, "head", "forward");
  b.vec("norm", "rmsnorm", s.norm_elems, {"^"}, {.alloc = s.shard});
  const std::string x = b.gather("ag", "norm");
  b.gemm("head", s.tokens, s.vocab_n, plan.dims.hidden, {x},
         {.alloc = s.logits_bytes, .free = s.gathers ? s.full : 0});
  if (plan.tp == 1) {
    b.vec("loss", "cross_entropy", logits, {"head"});
    return b.end();
  }
  // Vocabulary-parallel cross-entropy: three numbers per token cross the ranks.
  const std::int64_t per_token = 4 * s.tokens;
  b.all_reduce("ar_max", "tp", per_token, "fp32", {"head"});
  b.vec("loss", "cross_entropy", logits, {"ar_max"});
  b.all_reduce("ar_target", "tp", per_token, "fp32", {"loss"});
  b.all_reduce("ar_sum", "tp", per_token, "fp32", {"loss"});
  return b.end();
}

std::string head_backward_block(const LlamaPlan& plan) {
  const LlamaSizes s(plan);
  const std::int64_t h = plan.dims.hidden;
  const std::int64_t gathered = s.gathers ? s.full : 0;
  // Gathered again, the saved shard is no longer needed; without a gather the gemm is its last
  // user.
  const std::int64_t early = s.gathers ? s.shard : 0;
  BlockWriter b(plan, "head_bwd", "backward");
  b.vec("loss_bwd", "cross_entropy_bwd", s.tokens * s.vocab_n, {"^"});  // in place of the logits
  b.gemm_dx("head_dx", s.tokens, h, s.vocab_n, {"loss_bwd"}, {.alloc = s.full});
  const std::string x = b.gather("ag", "^", s.shard);
  b.gemm_dw("head_dw", s.vocab_n, h, s.tokens, s.gathers ? Ids{"loss_bwd", x} : Ids{"loss_bwd"},
            {.free = gathered + s.logits_bytes + s.shard - early});
  const std::string y = b.reduce("rs", "head_dx");
  b.vec("norm_bwd", "rmsnorm_bwd", s.norm_elems, {y}, {.alloc = s.shard, .free = 2 * s.shard});
  return b.end();
}

std::string layer_backward_block(const LlamaPlan& plan) {
  const LlamaSizes s(plan);
  const std::int64_t h = plan.dims.hidden;
  const std::int64_t f = s.gate_up_n / 2;
  const std::int64_t gathered = s.gathers ? s.full : 0;
  const std::int64_t late = s.gathers ? 0 : s.shard;  // see head_backward_block
  BlockWriter b(plan, "layer_bwd", "backward");
  const bool full = plan.recompute == Recompute::Full;
  // The op whose result of the forward pass is read: what came before the block, or its rerun.
  const auto saved = [&](std::string_view id) { return full ? again(id) : std::string("^"); };
  const auto with = [](const std::string& first, const std::string& second) {
    return second == "^" ? Ids{first} : Ids{first, second};
  };
  if (full) {
    b.mark_recompute(true);
    write_layer_forward(b, plan, Pass::Rerun);
    b.mark_recompute(false);
  }
  // MLP. The recomputed SiLU*mul is down's input, so it comes before down's weight gradient.
  const std::string dy2 = b.gather("ag_dy2", "^");
  b.gemm_dx("down_dx", s.tokens, f, h, {dy2}, {.alloc = s.silu_bytes});
  Ids down_inputs = with(dy2, saved("silu"));
  if (plan.recompute == Recompute::Selective) {
    b.vec("silu_again", "silu_mul", s.silu_elems, {"^"},
          {.alloc = s.silu_bytes, .recompute = true});
    down_inputs.emplace_back("silu_again");
  }
  b.gemm_dw("down_dw", h, f, s.tokens, down_inputs, {.free = gathered + s.silu_bytes});
  b.vec("silu_bwd", "silu_mul_bwd", s.silu_elems, with("down_dx", saved("gate_up")),
        {.alloc = s.gate_up_bytes, .free = s.silu_bytes + s.gate_up_bytes, .fuse = "down_dx"});
  const std::string x2 = b.gather("ag_x2", saved("norm2"), s.shard);
  b.gemm_dx("gate_up_dx", s.tokens, h, s.gate_up_n, {"silu_bwd"}, {.alloc = s.full});
  b.gemm_dw("gate_up_dw", s.gate_up_n, h, s.tokens, with("silu_bwd", x2),
            {.free = gathered + s.gate_up_bytes + late});
  const std::string dx2 = b.reduce("rs_dx2", "gate_up_dx");
  b.vec("norm2_bwd", "rmsnorm_bwd", s.norm_elems, with(dx2, saved("add1")),
        {.alloc = s.shard, .free = s.shard});
  b.vec("add2_bwd", "add", s.norm_elems, {"norm2_bwd", "^"},
        {.alloc = s.shard, .free = 3 * s.shard});
  // Attention.
  const std::string dy1 = b.gather("ag_dy1", "add2_bwd");
  b.gemm_dx("o_dx", s.tokens, s.attn_k, h, {dy1}, {.alloc = s.attn_bytes});
  b.gemm_dw("o_dw", h, s.attn_k, s.tokens, with(dy1, saved("attn")), {.free = gathered});
  b.attention("attn_bwd", true, with("o_dx", saved("attn")),
              {.alloc = s.qkv_bytes, .free = 2 * s.attn_bytes + s.lse_bytes + s.qkv_bytes});
  b.vec("rope_bwd", "rope_bwd", s.rope_elems, {"attn_bwd"});
  const std::string x1 = b.gather("ag_x1", saved("norm1"), s.shard);
  b.gemm_dx("qkv_dx", s.tokens, h, s.qkv_n, {"rope_bwd"}, {.alloc = s.full});
  b.gemm_dw("qkv_dw", s.qkv_n, h, s.tokens, with("rope_bwd", x1),
            {.free = gathered + s.qkv_bytes + late});
  const std::string dx1 = b.reduce("rs_dx1", "qkv_dx");
  b.vec("norm1_bwd", "rmsnorm_bwd", s.norm_elems, {dx1}, {.alloc = s.shard, .free = s.shard});
  b.vec("add1_bwd", "add", s.norm_elems, {"norm1_bwd", "add2_bwd"},
        {.alloc = s.shard, .free = 3 * s.shard});
  return b.end();
}

std::string embed_backward_block(const LlamaPlan& plan) {
  const LlamaSizes s(plan);
  const std::int64_t elems = s.tokens * plan.dims.hidden;
  BlockWriter b(plan, "embed_bwd", "backward");
  const std::string dy = b.gather("ag", "^");
  // Scatter-add of bf16 rows into fp32 gradients.
  trace::LineWriter writer("vec");
  writer.text("id", "embedding_bwd")
      .text("fn", "embedding_bwd")
      .number("elems", elems)
      .number("rd", (2 + 4) * elems)
      .number("wr", 4 * elems)
      .texts("deps", {dy})
      .number("free", s.shard + (s.gathers ? s.full : 0));
  b.line(writer);
  return b.end();
}

}  // namespace trn3sim::generate
