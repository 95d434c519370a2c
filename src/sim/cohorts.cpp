// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>

#include "loop_skipper.hpp"

namespace trn3sim::sim {
namespace {

// Disjoint sets of ranks; the lowest rank stands for its set.
class UnionFind {
 public:
  explicit UnionFind(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

// Everything one group of ranks moves data over.
struct Traffic {
  std::vector<std::int64_t> ranks;
  std::vector<std::size_t> links;
};

class CohortFinder {
 public:
  explicit CohortFinder(const MachineState& state) : state_(state) {
    for (const compile::GroupSet& set : state.plan->group_sets) {
      std::vector<Traffic> groups;
      for (const compile::GroupPlan& g : set.groups) groups.push_back(traffic_of(g));
      set_traffic_.push_back(std::move(groups));
    }
  }

  LoopUse use_of(std::int32_t block) {
    LoopUse use;
    use.sets.assign(state_.plan->group_sets.size(), false);
    messages_ = host_ = false;
    std::set<std::int32_t> seen;
    visit(block, use, seen);
    join(use);
    return use;
  }

 private:
  Traffic traffic_of(const compile::GroupPlan& g) const {
    Traffic t;
    t.ranks = g.members;
    std::set<std::size_t> links;
    for (const compile::Ring& ring : g.rings)
      for (const topology::Route& hop : ring.hops)
        for (topology::LinkId id : hop) links.insert(static_cast<std::size_t>(id));
    for (const topology::Route& route : g.pair_routes)
      for (topology::LinkId id : route) links.insert(static_cast<std::size_t>(id));
    for (std::int64_t r : g.members)
      for (topology::LinkId id : state_.network.local[static_cast<std::size_t>(r)])
        links.insert(static_cast<std::size_t>(id));
    t.links.assign(links.begin(), links.end());
    return t;
  }

  void visit(std::int32_t block, LoopUse& use, std::set<std::int32_t>& seen) {
    if (!seen.insert(block).second) return;
    const trace::Block& b = state_.program->blocks[static_cast<std::size_t>(block)];
    for (std::size_t i = 0; i < b.ops.size(); ++i) {
      const trace::Op& op = b.ops[i];
      const std::int32_t set = state_.plan->ops[static_cast<std::size_t>(block)][i].collective;
      if (set >= 0) use.sets[static_cast<std::size_t>(set)] = true;
      messages_ = messages_ || std::holds_alternative<trace::PointToPoint>(op.body);
      host_ = host_ || std::holds_alternative<trace::Memory>(op.body);
      if (const auto* c = std::get_if<trace::Call>(&op.body)) visit(c->block, use, seen);
      if (const auto* r = std::get_if<trace::Repeat>(&op.body)) visit(r->block, use, seen);
    }
  }

  // Traffic of the loop: its group sets, and all messages and host transfers if it has any.
  [[nodiscard]] std::vector<Traffic> traffic_of(const LoopUse& use) const {
    std::vector<Traffic> all;
    for (std::size_t s = 0; s < use.sets.size(); ++s)
      if (use.sets[s]) all.insert(all.end(), set_traffic_[s].begin(), set_traffic_[s].end());
    if (messages_)
      for (const auto& [ranks, route] : state_.plan->message_routes) {
        Traffic t{{ranks.first, ranks.second}, {}};
        for (topology::LinkId id : route) t.links.push_back(static_cast<std::size_t>(id));
        all.push_back(t);
      }
    if (host_)
      for (std::size_t r = 0; r < state_.host_routes.size(); ++r)
        for (const topology::Route& route : state_.host_routes[r]) {
          Traffic t{{static_cast<std::int64_t>(r)}, {}};
          for (topology::LinkId id : route) t.links.push_back(static_cast<std::size_t>(id));
          all.push_back(t);
        }
    return all;
  }

  void join(LoopUse& use) const {
    const std::size_t ranks = state_.plan->places.size();
    const std::int64_t stacks = state_.run->system.chip.stacks;
    UnionFind sets(ranks);
    std::map<std::int64_t, std::size_t> by_stack;
    std::map<std::size_t, std::size_t> by_link;
    for (std::size_t r = 0; r < ranks; ++r) {
      const compile::RankPlace& p = state_.plan->places[r];
      for (std::int64_t s = 0; s < p.stacks; ++s) {
        const auto [it, added] = by_stack.try_emplace(p.chip * stacks + p.first_stack + s, r);
        if (!added) sets.join(it->second, r);
      }
    }
    const std::vector<Traffic> traffic = traffic_of(use);
    for (const Traffic& t : traffic) {
      for (std::int64_t r : t.ranks)
        sets.join(static_cast<std::size_t>(t.ranks.front()), static_cast<std::size_t>(r));
      for (std::size_t l : t.links) {
        const auto [it, added] = by_link.try_emplace(l, static_cast<std::size_t>(t.ranks.front()));
        if (!added) sets.join(it->second, static_cast<std::size_t>(t.ranks.front()));
      }
    }
    // Groups outside the loop that would use its links join their ranks too.
    for (const std::vector<Traffic>& groups : set_traffic_)
      for (const Traffic& t : groups)
        for (std::size_t l : t.links)
          if (const auto it = by_link.find(l); it != by_link.end())
            for (std::int64_t r : t.ranks) sets.join(it->second, static_cast<std::size_t>(r));
    use.cohort_of_rank.assign(ranks, -1);
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t lead = sets.find(r);
      if (lead == r) {
        use.cohort_of_rank[r] = static_cast<std::int32_t>(use.cohorts.size());
        use.cohorts.emplace_back();
      }
      use.cohort_of_rank[r] = use.cohort_of_rank[lead];
      Cohort& c = use.cohorts[static_cast<std::size_t>(use.cohort_of_rank[r])];
      c.ranks.push_back(static_cast<std::int64_t>(r));
    }
    for (const auto& [stack, rank] : by_stack)
      use.cohorts[static_cast<std::size_t>(use.cohort_of_rank[rank])].shares.push_back(
          static_cast<std::size_t>(stack));
    for (const auto& [link, rank] : by_link)
      use.cohorts[static_cast<std::size_t>(use.cohort_of_rank[rank])].links.push_back(link);
  }

  const MachineState& state_;
  std::vector<std::vector<Traffic>> set_traffic_;
  bool messages_ = false, host_ = false;
};

}  // namespace

std::map<std::pair<std::int32_t, std::int32_t>, LoopUse> find_cohorts(const MachineState& state) {
  CohortFinder finder(state);
  std::map<std::pair<std::int32_t, std::int32_t>, LoopUse> uses;
  for (std::size_t b = 0; b < state.program->blocks.size(); ++b) {
    const trace::Block& block = state.program->blocks[b];
    for (std::size_t i = 0; i < block.ops.size(); ++i)
      if (const auto* r = std::get_if<trace::Repeat>(&block.ops[i].body);
          r != nullptr && r->times > 1)
        uses[{static_cast<std::int32_t>(b), static_cast<std::int32_t>(i)}] =
            finder.use_of(r->block);
  }
  return uses;
}

}  // namespace trn3sim::sim
