// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/attention_backward_plan.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;

}  // namespace

std::int64_t per_partition(std::int64_t rows, std::int64_t d) {
  return (rows + kLanes - 1) / kLanes * d;
}

BackwardPlan backward_plan(const KernelSpec& spec, const config::ChipSpec& chip) {
  BackwardPlan plan;
  const std::int64_t bank = chip.psum.bank_bytes_per_partition.count() / 4;  // fp32 words
  if (spec.d > bank)
    throw base::UserError(spec.label(), fmt::format("head size {} exceeds {}", spec.d, bank));
  // dV of a block is one bank.
  plan.block = std::min(chip.tensor.moving_max, bank / spec.d * kLanes);
  const std::int64_t depth = (spec.d + kLanes - 1) / kLanes;
  const auto bytes = [&](std::int64_t elements) { return base::storage_bytes(spec.in, elements); };
  const auto query = [&](std::int64_t rows) {
    return 2 * bytes(rows * depth) + 3 * bytes(per_partition(rows, spec.d)) +
           per_partition(rows, 1) * 8;
  };
  const std::int64_t key = 2 * bytes(plan.block * depth) + bytes(per_partition(plan.block, spec.d));
  const bool grouped = spec.heads != spec.kv_heads;
  const std::int64_t sums =
      4 * per_partition(spec.sq, spec.d) + (grouped ? 8 * per_partition(spec.skv, spec.d) : 0);
  const std::int64_t tiles = 3 * plan.block * 2 + 2 * plan.block * 2 + 2 * plan.block * 2 +
                             kResults * base::storage_bytes(spec.out, spec.d) +
                             4 * base::storage_bytes(spec.out, per_partition(plan.block, spec.d));
  const std::int64_t chunk = std::min(spec.sq, kQueryChunk * kQueryTile);
  // S runs kAhead tiles ahead of the last use of a tile: heads of one tile need one buffer more.
  const std::int64_t heads = spec.sq <= kQueryTile && spec.skv <= plan.block ? 3 : 2;
  for (const bool resident : {true, false}) {
    plan.resident = resident;
    plan.query_ring = resident ? heads : kQueryRing;
    plan.sbuf = plan.query_ring * query(resident ? spec.sq : chunk) + kKeyRing * key + sums + tiles;
    if (plan.sbuf <= chip.sbuf.usable_per_partition.count()) return plan;
  }
  throw base::UserError(spec.label(),
                        fmt::format("the operands of a head need {} bytes per SBUF partition; {} "
                                    "are usable",
                                    plan.sbuf, chip.sbuf.usable_per_partition.count()));
}

std::int64_t chunks_of(const AttentionShare& share) {
  return (static_cast<std::int64_t>(share.tiles.size()) + kQueryChunk - 1) / kQueryChunk;
}

std::vector<BackwardItem> items_of(const AttentionShare& share, const BackwardPlan& plan,
                                   std::int64_t heads) {
  std::vector<BackwardItem> items;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t k = 0; k < share.keys; k += plan.block) {
      const std::size_t begin = items.size();
      std::int64_t chunk = -1;
      for (std::size_t t = 0; t < share.tiles.size(); ++t) {
        const QueryTile& tile = share.tiles[t];
        if (tile.keys <= k) continue;
        BackwardItem item;
        item.rows = tile.rows;
        item.width = std::min(plan.block, tile.keys - k);
        item.masked = tile.masked && tile.keys <= k + plan.block;
        item.first_block = k == 0;
        const std::int64_t tile_chunk = static_cast<std::int64_t>(t) / kQueryChunk;
        if (tile_chunk != chunk) {
          item.wait_query = k == 0 || !plan.resident;
          if (!plan.resident && chunk >= 0) items.back().free_query = 1;
          chunk = tile_chunk;
        }
        item.query_done = tile.keys <= k + plan.block;
        item.block = std::min(plan.block, share.keys - k);
        item.add_keys = h > 0;
        item.store_keys = h + 1 == heads;
        items.push_back(item);
      }
      items[begin].begin = true;
      items.back().end = true;
      if (!plan.resident) items.back().free_query = 1;
    }
    if (plan.resident) items.back().free_query = chunks_of(share);
  }
  return items;
}

std::vector<BackwardLoad> loads_of_head(const AttentionShare& share, const BackwardPlan& plan) {
  std::vector<BackwardLoad> loads;
  for (std::int64_t k = 0; k < share.keys; k += plan.block) {
    loads.push_back({std::min(plan.block, share.keys - k), 0, false});
    if (k > 0 && plan.resident) continue;
    for (std::int64_t c = 0; c < chunks_of(share); ++c) {
      std::int64_t rows = 0;
      for (std::int64_t t = c * kQueryChunk; t < (c + 1) * kQueryChunk; ++t) {
        if (t >= static_cast<std::int64_t>(share.tiles.size())) break;
        const QueryTile& tile = share.tiles[static_cast<std::size_t>(t)];
        if (tile.keys > k) rows += tile.rows;
      }
      if (rows > 0) loads.push_back({0, rows, k == 0});
    }
  }
  return loads;
}

}  // namespace trn3sim::compile
