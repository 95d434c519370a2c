// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks, buffers and the order of work of flash attention's backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/kernel/attention_plan.hpp"

namespace trn3sim::compile {

inline constexpr std::int64_t kQueryRing = 3;  // query chunks, if they stream
inline constexpr std::int64_t kKeyRing = 4;    // key blocks
inline constexpr std::int64_t kResults = 4;    // SBUF buffers of finished dQ tiles

// A tile of queries against a block of keys.
struct BackwardItem {
  std::int64_t rows = 0, width = 0;
  bool masked = false;
  bool wait_query = false;      // first use of a query chunk of this head
  std::int64_t free_query = 0;  // query chunks that are dead after this item
  bool first_block = false;     // dQ starts
  bool query_done = false;      // dQ is complete
  bool wait_keys = false;
  bool begin = false, end = false;            // of a block of keys: dV and dK start, are complete
  bool add_keys = false, store_keys = false;  // heads of a group: add to earlier, last of the group
  std::int64_t block = 0;                     // keys of the block
  bool operator==(const BackwardItem&) const = default;
};

// A load on the way of a head: a block of keys, or a chunk of queries.
struct BackwardLoad {
  std::int64_t keys = 0, queries = 0;
  bool outputs = false;  // with O and the statistics
  bool operator==(const BackwardLoad&) const = default;
};

struct BackwardPlan {
  std::int64_t block = 512;     // keys
  bool resident = true;         // queries of a head stay in SBUF
  std::int64_t query_ring = 2;  // heads, or chunks if they do not stay
  std::int64_t sbuf = 0;
};

// Throws base::UserError if the operands of a head do not fit.
BackwardPlan backward_plan(const KernelSpec& spec, const config::ChipSpec& chip);

// SBUF elements per partition of `rows` rows of `d`.
std::int64_t per_partition(std::int64_t rows, std::int64_t d);
// Query chunks of a head.
std::int64_t chunks_of(const AttentionShare& share);
// The steps of `heads` heads that share keys, in order.
std::vector<BackwardItem> items_of(const AttentionShare& share, const BackwardPlan& plan,
                                   std::int64_t heads);
// The loads of one head in the order in which TensorE needs them.
std::vector<BackwardLoad> loads_of_head(const AttentionShare& share, const BackwardPlan& plan);

}  // namespace trn3sim::compile
