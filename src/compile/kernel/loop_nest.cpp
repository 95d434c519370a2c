// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/loop_nest.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace trn3sim::compile {
namespace {

std::size_t dimension_of(const config::LoopLevel& level) {
  return level.over == "m" ? kM : level.over == "n" ? kN : kK;
}

std::array<std::int64_t, kRegionKinds> depths_of(const config::LoopMapping& mapping) {
  return {mapping.a.inside, mapping.b.inside, mapping.c.psum_inside, mapping.c.store_inside};
}

class Walk {
 public:
  Walk(const config::LoopMapping& mapping, LoopNest& nest)
      : mapping_(mapping), depths_(depths_of(mapping)), nest_(nest) {}

  void body(std::size_t depth, const Box& box) {
    for (std::size_t kind = 0; kind < kRegionKinds; ++kind)
      if (depths_[kind] == static_cast<std::int64_t>(depth)) nest_.regions[kind].push_back(box);
    if (depth == mapping_.loops.size()) return matmul(box);
    const config::LoopLevel& level = mapping_.loops[depth];
    const std::size_t d = dimension_of(level);
    for (std::int64_t at = 0; at < box.size[d]; at += level.step) {
      Box part = box;
      part.low[d] += at;
      part.size[d] = std::min(level.step, box.size[d] - at);
      body(depth + 1, part);
    }
  }

 private:
  void matmul(const Box& box) {
    nest_.matmuls.push_back(box);
    for (std::size_t kind = 0; kind < kRegionKinds; ++kind)
      nest_.region_of[kind].push_back(static_cast<std::int32_t>(nest_.regions[kind].size()) - 1);
  }

  const config::LoopMapping& mapping_;
  std::array<std::int64_t, kRegionKinds> depths_;
  LoopNest& nest_;
};

// The transfers of one region: a grid over its k and its free dimension.
class Grid {
 public:
  Grid(const Box& region, std::size_t free, const config::OperandMapping& operand)
      : low_{region.low[kK], region.low[free]},
        size_{region.size[kK], region.size[free]},
        step_{std::min(operand.transfer_k, size_[0]), std::min(operand.transfer_width, size_[1])},
        across_(ceil_divide(size_[1], step_[1])),
        used_(static_cast<std::size_t>(ceil_divide(size_[0], step_[0]) * across_), false) {}

  // Appends the transfers that `box` is the first to use.
  void use(const Box& box, std::size_t free, std::vector<LoadPlan::Transfer>& transfers) {
    const auto cells = [&](std::size_t d, std::size_t axis) {
      const std::int64_t begin = box.low[d] - low_[axis];
      return std::pair{begin / step_[axis], ceil_divide(begin + box.size[d], step_[axis])};
    };
    const auto [k_begin, k_end] = cells(kK, 0);
    const auto [w_begin, w_end] = cells(free, 1);
    for (std::int64_t k = k_begin; k < k_end; ++k)
      for (std::int64_t w = w_begin; w < w_end; ++w) {
        const auto cell = static_cast<std::size_t>(k * across_ + w);
        if (used_[cell]) continue;
        used_[cell] = true;
        transfers.push_back({std::min(step_[0], size_[0] - k * step_[0]),
                             std::min(step_[1], size_[1] - w * step_[1])});
      }
  }

 private:
  std::array<std::int64_t, 2> low_, size_, step_;
  std::int64_t across_;
  std::vector<bool> used_;
};

}  // namespace

LoopNest make_nest(const config::LoopMapping& mapping, const GemmShape& shape) {
  LoopNest nest;
  Walk walk(mapping, nest);
  for (std::int64_t b = 0; b < shape.batch; ++b)
    walk.body(0, {{0, 0, 0}, {shape.m, shape.n, shape.k}});
  return nest;
}

std::array<std::int64_t, 3> extent_inside(const config::LoopMapping& mapping,
                                          const GemmShape& shape, std::int64_t inside) {
  std::array<std::int64_t, 3> extent{shape.m, shape.n, shape.k};
  for (std::int64_t i = 0; i < inside; ++i) {
    const config::LoopLevel& level = mapping.loops[static_cast<std::size_t>(i)];
    std::int64_t& size = extent[dimension_of(level)];
    size = std::min(size, level.step);
  }
  return extent;
}

LoadPlan plan_loads(const LoopNest& nest, RegionKind kind, const config::OperandMapping& operand) {
  const std::size_t free = kind == kLoadA ? kM : kN;
  const auto& region_of = nest.region_of[kind];
  const std::size_t count = nest.matmuls.size();
  LoadPlan plan;
  plan.regions.resize(nest.regions[kind].size());
  std::map<std::pair<std::int64_t, std::int64_t>, bool> tiles;
  std::vector<Grid> grid;  // of the region at hand
  for (std::size_t i = 0; i < count; ++i) {
    const Box& box = nest.matmuls[i];
    const auto region = static_cast<std::size_t>(region_of[i]);
    plan.first.push_back(i == 0 || region_of[i - 1] != region_of[i]);
    plan.last.push_back(i + 1 == count || region_of[i + 1] != region_of[i]);
    if (plan.first.back()) {
      grid.assign(1, Grid(nest.regions[kind][region], free, operand));
      tiles.clear();
    }
    const std::size_t before = plan.regions[region].size();
    grid[0].use(box, free, plan.regions[region]);
    plan.fresh.push_back(static_cast<std::uint16_t>(plan.regions[region].size() - before));
    plan.new_tile.push_back(tiles.try_emplace({box.low[kK], box.low[free]}, true).second);
  }
  return plan;
}

std::vector<Accumulation> plan_accumulations(const LoopNest& nest, std::int64_t k) {
  std::vector<Accumulation> all;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> open;  // of the region at hand
  for (std::size_t i = 0; i < nest.matmuls.size(); ++i) {
    const auto& region_of = nest.region_of[kAccumulate];
    if (i == 0 || region_of[i] != region_of[i - 1]) open.clear();
    const Box& box = nest.matmuls[i];
    const auto [it, added] = open.try_emplace({box.low[kM], box.low[kN]}, all.size());
    if (added) {
      const Box& region = nest.regions[kAccumulate][static_cast<std::size_t>(region_of[i])];
      Accumulation a;
      a.first = i;
      a.box = box;
      a.store = nest.region_of[kStore][i];
      a.adds = region.low[kK] > 0;
      a.final = region.low[kK] + region.size[kK] == k;
      all.push_back(a);
    }
    all[it->second].last = i;
  }
  return all;
}

}  // namespace trn3sim::compile
