// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Buffers and division of the element work of forward flash attention.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/kernel/attention_plan.hpp"

namespace trn3sim::compile {

inline constexpr std::int64_t kAhead = 4;      // tiles that scores run ahead of P V, at most
inline constexpr std::int64_t kOutputs = 4;    // SBUF buffers of finished query tiles
inline constexpr std::int64_t kQueryRing = 3;  // query chunks

// Who does what: shares of the exponentials in eighths of a tile.
struct Balance {
  std::int64_t scalar_eighths = 8;
  models::Engine copier = models::Engine::Scalar, rescaler = models::Engine::Vector;
  models::Engine maximum =
      models::Engine::Vector;  // row maximum; ScalarE: it copies the scores too
  // VectorE has work of another tile between the two steps of a tile.
  [[nodiscard]] bool vector_interleaves() const {
    return copier == models::Engine::Vector || rescaler == models::Engine::Vector;
  }
  std::int64_t bound_ps = 0;  // time per tile of the busiest of the three engines, picoseconds
};

// A tile of queries against a tile of keys.
struct ForwardItem {
  std::int64_t rows = 0, width = 0;
  bool masked = false;
  bool wait_query = false, free_query = false;  // first and last use of a query chunk
  bool wait_keys = false, free_keys = false;    // first use of a key chunk, last use of all
  bool first = false, last = false;             // of its query tile
  bool head_end = false;
  bool operator==(const ForwardItem&) const = default;
};

struct ForwardPlan {
  std::int64_t key_tile = 512;
  std::int64_t ahead = kAhead;   // PSUM banks of scores; one without double accumulators
  std::int64_t key_buffers = 2;  // heads whose keys and values fit
  std::int64_t sbuf = 0;
  Balance balance;
};

// Instructions per tile of [rows x width] scores: rescale factor and ScalarE's exponentials (none
// for width 0); row maximum and new running maximum.
std::vector<models::Instruction> scalar_exponentials(std::int64_t rows, std::int64_t width);
models::Instruction row_maximum_of(std::int64_t rows, std::int64_t width);
models::Instruction running_maximum(std::int64_t rows);
// l = l * factor + sum of a tile; and the factor exp(old maximum - new maximum), if not ScalarE's.
models::Instruction running_sum(std::int64_t rows);
models::Instruction rescale_factor(std::int64_t rows);
// ScalarE's two-stage activation: scores to SBUF, with their row maximum.
models::Instruction copy_maximum(std::int64_t rows, std::int64_t width);
// VectorE's exponentials with row sums.
models::Instruction vector_exponentials(const Balance& balance, std::int64_t rows,
                                        std::int64_t width);

// The steps of `heads` heads that share keys, in order.
std::vector<ForwardItem> items_of(const AttentionShare& share, const ForwardPlan& plan,
                                  std::int64_t heads);

// Throws base::UserError if the head does not fit.
ForwardPlan plan_forward(const KernelSpec& spec, const config::ChipSpec& chip);

}  // namespace trn3sim::compile
