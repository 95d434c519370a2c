// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Lines of one block of a Llama trace, with the sizes that its ops share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/generate/llama.hpp"
#include "trn3sim/trace/writer.hpp"

namespace trn3sim::generate {

// Sizes per rank and micro-batch. T = mbs x seq tokens, t = tp; activations are bf16 (2 bytes).
struct LlamaSizes {
  explicit LlamaSizes(const LlamaPlan& plan);
  bool gathers;              // sequence parallel over more than one rank
  std::int64_t tokens;       // T
  std::int64_t norm_elems;   // T H / t with sequence parallel, else T H
  std::int64_t shard, full;  // bytes of a hidden state: this rank's part (norm_elems), all of it
  std::int64_t qkv_n, rope_elems, attn_k, gate_up_n, silu_elems, vocab_n;
  std::int64_t qkv_bytes, attn_bytes, lse_bytes, gate_up_bytes, silu_bytes, logits_bytes;
};

using Ids = std::vector<std::string>;

// Fields that most ops leave out.
struct Extra {
  std::int64_t alloc = 0, free = 0;
  std::string_view fuse = "";
  bool recompute = false;
};

class BlockWriter {
 public:
  BlockWriter(const LlamaPlan& plan, std::string_view id, std::string_view phase);

  void vec(std::string_view id, std::string_view fn, std::int64_t elems, const Ids& deps,
           const Extra& extra = {});
  // Forward: activations times weights.
  void gemm(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k, const Ids& deps,
            const Extra& extra = {});
  // Input gradient: output gradient times weights.
  void gemm_dx(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k, const Ids& deps,
               const Extra& extra = {});
  // Weight gradient, added to the fp32 accumulator: output gradient (transposed) times activations.
  void gemm_dw(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k, const Ids& deps,
               const Extra& extra = {});
  void attention(std::string_view id, bool backward, const Ids& deps, const Extra& extra);
  // A sequence-sharded hidden state becomes whole: all-gather over tp; returns the id to depend on,
  // which is `dep` when there is nothing to gather.
  std::string gather(std::string_view id, const std::string& dep, std::int64_t free_after = 0);
  // Partial sums become a hidden state: reduce-scatter (all-reduce without sequence parallel).
  std::string reduce(std::string_view id, const std::string& dep);
  void all_reduce(std::string_view id, std::string_view group, std::int64_t bytes,
                  std::string_view dtype, const Ids& deps);
  void line(const trace::LineWriter& writer) { text_ += writer.line(); }
  void call(std::string_view id, std::string_view block, const Ids& deps);
  void repeat(std::string_view id, std::string_view block, std::int64_t times, const Ids& deps);
  // Whether the ops that follow are work done again.
  void mark_recompute(bool mark) { recompute_ = mark; }
  // The block with its `end`.
  [[nodiscard]] std::string end() const;

 private:
  void finish(trace::LineWriter& writer, const Ids& deps, const Extra& extra);
  const LlamaPlan& plan_;
  LlamaSizes sizes_;
  bool recompute_ = false;
  std::string text_;
};

// Blocks of one micro-batch.
std::string embed_block(const LlamaPlan& plan);
std::string layer_forward_block(const LlamaPlan& plan);
std::string head_block(const LlamaPlan& plan);
std::string head_backward_block(const LlamaPlan& plan);
std::string layer_backward_block(const LlamaPlan& plan);
std::string embed_backward_block(const LlamaPlan& plan);

}  // namespace trn3sim::generate
