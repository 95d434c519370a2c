// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_blocks.hpp"

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;

// `first` and `last`: use of the outer panel.
Block block_of(const GemmMapping& map, const config::ChipSpec& chip, std::int64_t outer,
               std::int64_t inner, bool first, bool last) {
  Block b{outer, inner, first, {}};
  const std::int64_t s = map.outer_stationary ? outer : inner;
  const std::int64_t v = map.outer_stationary ? inner : outer;
  for (const std::int64_t vs : chop(v, map.sub_moving * chip.tensor.moving_max)) {
    for (const std::int64_t ss : chop(s, map.sub_stationary * kLanes)) {
      SubBlock sub;
      sub.stationary = chop(ss, kLanes);
      sub.moving = chop(vs, chip.tensor.moving_max);
      b.subs.push_back(std::move(sub));
    }
  }
  b.subs.front().wait_outer = first;
  b.subs.front().wait_inner = true;
  b.subs.back().free_outer = last;
  b.subs.back().free_inner = true;
  return b;
}

}  // namespace

// `total` in pieces of `size`, the last one smaller.
Sizes chop(std::int64_t total, std::int64_t size) {
  Sizes out(static_cast<std::size_t>(total / size), size);
  if (total % size != 0) out.push_back(total % size);
  return out;
}

std::int64_t sum(const Sizes& sizes) {
  std::int64_t total = 0;
  for (const std::int64_t s : sizes) total += s;
  return total;
}

std::vector<Row> rows_of(const SubBlock& sub) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sub.stationary.size(); ++i) {
    rows.push_back({sub.stationary[i], sub.moving, sub.moving.size() == 1 ? i % 2 : 0});
  }
  return rows;
}

std::vector<std::vector<Block>> plan_blocks(const GemmShape& shape, const GemmMapping& map,
                                            const config::ChipSpec& chip) {
  const bool outer_a = map.stationary_a == map.outer_stationary;
  const Sizes outers = chop(outer_a ? shape.m : shape.n, map.outer_block);
  const Sizes inners = chop(outer_a ? shape.n : shape.m, map.inner_block);
  std::vector<std::vector<Block>> steps;
  for (const std::int64_t outer : outers) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < inners.size(); ++i) {
      const bool first = !map.outer_resident || i == 0;
      const bool last = !map.outer_resident || i + 1 == inners.size();
      blocks.push_back(block_of(map, chip, outer, inners[i], first, last));
    }
    steps.push_back(std::move(blocks));
  }
  return steps;
}

}  // namespace trn3sim::compile
