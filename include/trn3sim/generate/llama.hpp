// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Training steps of dense Llama-like models as native traces: tensor parallel with sequence
// parallel, ZeRO-1 data parallel, gradient accumulation. The formulas are in docs/trace_format.md,
// section "Llama generator". Not covered: pipeline, context and expert parallelism, replicated KV
// heads (tp above kv_heads).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/base/mesh.hpp"

namespace trn3sim::generate {

struct LlamaDims {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  [[nodiscard]] std::int64_t head_dim() const { return hidden / heads; }
  // Parameters of the whole model (input and output embedding are two matrices, no biases).
  [[nodiscard]] std::int64_t parameters() const;
  // Parameters that one tensor-parallel rank holds; norm weights are on every rank.
  [[nodiscard]] std::int64_t parameters_per_rank(std::int64_t tp) const;
};

// What the backward pass of a layer computes again instead of keeping it.
enum class Recompute : std::uint8_t {
  None,
  Selective,  // SiLU*mul
  Full        // the whole forward pass of the layer, with its collectives
};
// "none", "selective", "full".
std::string_view recompute_name(Recompute recompute);

struct LlamaPlan {
  std::string name = "llama2-7b";
  LlamaDims dims;
  std::int64_t tp = 4, dp = 64;
  std::int64_t seq = 4096;
  std::int64_t mbs = 1;     // sequences per micro-batch and data-parallel rank
  std::int64_t gbs = 1024;  // sequences per optimizer step
  base::RankUnit rank_unit = base::RankUnit::LogicalCore;
  bool sequence_parallel = true;
  Recompute recompute = Recompute::Selective;
  bool zero1 = true;  // optimizer state split over dp
  bool overlap_grad_reduce =
      false;  // last micro-step reduces each layer's gradients behind the next
  // Cap of a gradient bucket (input bytes of the reduce-scatter) and of a weight bucket (output
  // bytes of the all-gather). NeuronX Distributed counts 130 x 2^20.
  std::int64_t bucket_bytes = std::int64_t{130} << 20;
  // Cap of an all-reduce bucket without ZeRO-1.
  std::int64_t all_reduce_bucket_bytes = std::int64_t{512} << 20;
};

// "llama2-7b", "llama2-13b", "llama2-70b", "llama3.1-8b", "llama3.1-70b".
std::vector<std::string> llama_preset_names();
// Dimensions of a preset. Throws base::UserError (did you mean) for an unknown name.
LlamaDims llama_preset(std::string_view name);

// Text of the trace. Throws base::UserError, one problem per rule broken, naming the nearest value
// that works: tp must divide heads, kv_heads, ffn, vocab and seq; dp x mbs must divide gbs.
std::string generate_llama(const LlamaPlan& plan);

}  // namespace trn3sim::generate
