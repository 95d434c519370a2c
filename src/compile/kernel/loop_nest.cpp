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
      : free_(free),
        low_{region.low[kK], region.low[free]},
        size_{region.size[kK], region.size[free]},
        step_{std::min(operand.transfer_k, size_[0]), std::min(operand.transfer_width, size_[1])},
        across_(ceil_divide(size_[1], step_[1])),
        uses_(static_cast<std::size_t>(ceil_divide(size_[0], step_[0]) * across_)) {}

  // Matmul `index` uses `box`. Returns how many transfers it is the first to use; they are
  // appended.
  std::size_t use(const Box& box, std::size_t index, bool new_tile,
                  std::vector<LoadPlan::Transfer>& transfers) {
    const auto [k_begin, k_end] = cells(box, kK, 0);
    const auto [w_begin, w_end] = cells(box, free_, 1);
    const std::size_t before = transfers.size();
    for (std::int64_t k = k_begin; k < k_end; ++k)
      for (std::int64_t w = w_begin; w < w_end; ++w) {
        Use& u = uses_[static_cast<std::size_t>(k * across_ + w)];
        if (!u.used)
          transfers.push_back({std::min(step_[0], size_[0] - k * step_[0]),
                               std::min(step_[1], size_[1] - w * step_[1])});
        u.used = true;
        u.last = index;
        if (new_tile) u.last_new_tile = index;
      }
    return transfers.size() - before;
  }
  // The region is over.
  void finish(LoadPlan& plan) const {
    for (const Use& u : uses_) {
      ++plan.freed[u.last];
      ++plan.taken[u.last_new_tile];
    }
  }

 private:
  struct Use {
    bool used = false;
    std::size_t last = 0, last_new_tile = 0;
  };

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> cells(const Box& box, std::size_t d,
                                                            std::size_t axis) const {
    const std::int64_t begin = box.low[d] - low_[axis];
    return {begin / step_[axis], ceil_divide(begin + box.size[d], step_[axis])};
  }

  std::size_t free_;
  std::array<std::int64_t, 2> low_, size_, step_;
  std::int64_t across_;
  std::vector<Use> uses_;
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

std::int64_t LoadPlan::most() const {
  std::size_t most = 0;
  for (const auto& region : regions) most = std::max(most, region.size());
  return static_cast<std::int64_t>(most);
}

LoadPlan plan_loads(const LoopNest& nest, RegionKind kind, const config::OperandMapping& operand) {
  const std::size_t free = kind == kLoadA ? kM : kN;
  const auto& region_of = nest.region_of[kind];
  const std::size_t count = nest.matmuls.size();
  LoadPlan plan;
  plan.regions.resize(nest.regions[kind].size());
  plan.first.assign(count, false);
  plan.new_tile = plan.dead_tile = plan.first;
  plan.fresh.assign(count, 0);
  plan.freed = plan.taken = plan.fresh;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const auto region = static_cast<std::size_t>(region_of[begin]);
    plan.first[begin] = true;
    Grid grid(nest.regions[kind][region], free, operand);
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> last_use;  // of tiles
    for (end = begin; end < count && region_of[end] == region_of[begin]; ++end) {
      const Box& box = nest.matmuls[end];
      const auto [it, added] = last_use.try_emplace({box.low[kK], box.low[free]}, end);
      it->second = end;
      plan.new_tile[end] = added;
      plan.fresh[end] = static_cast<std::uint16_t>(grid.use(box, end, added, plan.regions[region]));
    }
    grid.finish(plan);
    for (const auto& [tile, last] : last_use) plan.dead_tile[last] = true;
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
