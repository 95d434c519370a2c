// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "generate/block_writer.hpp"

namespace trn3sim::generate {
namespace {

using trace::LineWriter;

constexpr std::int64_t kActivation = 2;  // bytes of bf16
constexpr std::int64_t kFloat = 4;       // bytes of fp32

LineWriter start(std::string_view op, std::string_view id) {
  LineWriter writer(op);
  writer.text("id", id);
  return writer;
}

LineWriter start_gemm(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k) {
  LineWriter writer = start("gemm", id);
  writer.number("m", m).number("n", n).number("k", k);
  return writer;
}

LineWriter start_coll(std::string_view id, std::string_view kind, std::string_view group,
                      std::int64_t in, std::int64_t out) {
  LineWriter writer = start("coll", id);
  writer.text("kind", kind).text("group", group).number("in", in).number("out", out);
  return writer;
}

}  // namespace

LlamaSizes::LlamaSizes(const LlamaPlan& plan) {
  const LlamaDims& d = plan.dims;
  gathers = plan.sequence_parallel && plan.tp > 1;
  tokens = plan.mbs * plan.seq;
  norm_elems = tokens / (gathers ? plan.tp : 1) * d.hidden;
  shard = norm_elems * kActivation;
  full = tokens * d.hidden * kActivation;
  const std::int64_t head_dim = d.head_dim();
  qkv_n = (d.heads + 2 * d.kv_heads) / plan.tp * head_dim;
  rope_elems = tokens * ((d.heads + d.kv_heads) / plan.tp) * head_dim;
  attn_k = d.heads / plan.tp * head_dim;
  gate_up_n = 2 * (d.ffn / plan.tp);
  silu_elems = tokens * (d.ffn / plan.tp);
  vocab_n = d.vocab / plan.tp;
  qkv_bytes = tokens * qkv_n * kActivation;
  attn_bytes = tokens * attn_k * kActivation;
  lse_bytes = tokens * (d.heads / plan.tp) * kFloat;
  gate_up_bytes = tokens * gate_up_n * kActivation;
  silu_bytes = silu_elems * kActivation;
  logits_bytes = tokens * vocab_n * kActivation;
}

BlockWriter::BlockWriter(const LlamaPlan& plan, std::string_view id, std::string_view phase)
    : plan_(plan), sizes_(plan) {
  LineWriter writer = start("block", id);
  if (!phase.empty()) writer.text("phase", phase);
  line(writer);
}

void BlockWriter::finish(LineWriter& writer, const Ids& deps, const Extra& extra) {
  if (!extra.fuse.empty()) writer.text("fuse", extra.fuse);
  writer.texts("deps", deps);
  if (extra.alloc > 0) writer.number("alloc", extra.alloc);
  if (extra.free > 0) writer.number("free", extra.free);
  if (extra.recompute || recompute_) writer.flag("recompute", true);
  line(writer);
}

void BlockWriter::vec(std::string_view id, std::string_view fn, std::int64_t elems, const Ids& deps,
                      const Extra& extra) {
  LineWriter writer = start("vec", id);
  writer.text("fn", fn).number("elems", elems);
  finish(writer, deps, extra);
}

void BlockWriter::gemm(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k,
                       const Ids& deps, const Extra& extra) {
  LineWriter writer = start_gemm(id, m, n, k);
  finish(writer, deps, extra);
}

void BlockWriter::gemm_dx(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k,
                          const Ids& deps, const Extra& extra) {
  LineWriter writer = start_gemm(id, m, n, k);
  writer.text("a", "grad").text("b", "weight");
  finish(writer, deps, extra);
}

void BlockWriter::gemm_dw(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k,
                          const Ids& deps, const Extra& extra) {
  LineWriter writer = start_gemm(id, m, n, k);
  writer.text("out", "fp32").flag("accumulate", true).text("a", "grad").text("b", "act");
  finish(writer, deps, extra);
}

void BlockWriter::attention(std::string_view id, bool backward, const Ids& deps,
                            const Extra& extra) {
  LineWriter writer = start("attn", id);
  writer.number("b", plan_.mbs)
      .number("heads", plan_.dims.heads / plan_.tp)
      .number("kv_heads", plan_.dims.kv_heads / plan_.tp)
      .number("sq", plan_.seq)
      .number("skv", plan_.seq)
      .number("d", plan_.dims.head_dim())
      .flag("causal", true)
      .text("pass", backward ? "bwd" : "fwd");
  finish(writer, deps, extra);
}

std::string BlockWriter::gather(std::string_view id, const std::string& dep,
                                std::int64_t free_after) {
  if (!sizes_.gathers) return dep;
  LineWriter writer = start_coll(id, "all_gather", "tp", sizes_.shard, sizes_.full);
  finish(writer, {dep}, {.alloc = sizes_.full, .free = free_after});
  return std::string(id);
}

std::string BlockWriter::reduce(std::string_view id, const std::string& dep) {
  if (plan_.tp == 1) return dep;
  if (!sizes_.gathers) {  // in place
    all_reduce(id, "tp", sizes_.full, "", {dep});
    return std::string(id);
  }
  LineWriter writer = start_coll(id, "reduce_scatter", "tp", sizes_.full, sizes_.shard);
  finish(writer, {dep}, {.alloc = sizes_.shard, .free = sizes_.full});
  return std::string(id);
}

void BlockWriter::all_reduce(std::string_view id, std::string_view group, std::int64_t bytes,
                             std::string_view dtype, const Ids& deps) {
  LineWriter writer = start_coll(id, "all_reduce", group, bytes, bytes);
  if (!dtype.empty()) writer.text("dtype", dtype);
  finish(writer, deps, {});
}

void BlockWriter::call(std::string_view id, std::string_view block, const Ids& deps) {
  LineWriter writer = start("call", id);
  writer.text("block", block);
  finish(writer, deps, {});
}

void BlockWriter::repeat(std::string_view id, std::string_view block, std::int64_t times,
                         const Ids& deps) {
  LineWriter writer = start("repeat", id);
  writer.text("block", block).number("times", times);
  finish(writer, deps, {});
}

std::string BlockWriter::end() const {
  return text_ + LineWriter("end").line();
}

}  // namespace trn3sim::generate
