// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

struct Placed {
  config::RunSpec run;
  topology::Graph graph;
  trace::Program program;
  Plan plan;
};

Placed placed(const std::string& config, const std::string& trace,
              const std::vector<std::string>& sets = {}) {
  Placed p;
  const std::string root = std::string(TRN3SIM_SOURCE_DIR) + "/configs/";
  p.run = config::load_run(root + config, sets);
  p.graph = topology::build(p.run.system);
  p.program = trace::read(root + "traces/" + trace);
  p.plan = place(p.program, p.graph, p.run);
  return p;
}

const GroupSet& set_of(const Plan& plan, const std::string& name) {
  return *std::find_if(plan.group_sets.begin(), plan.group_sets.end(),
                       [&](const GroupSet& s) { return s.name == name; });
}

TEST(Place, TensorParallelNeighboursShareAChip) {
  const Placed p = placed("ultraserver64.json", "llama7b.trace");
  ASSERT_EQ(p.plan.places.size(), 256U);
  for (const GroupPlan& g : set_of(p.plan, "tp").groups) {
    std::set<std::int64_t> chips, stacks;
    for (std::int64_t r : g.members) {
      chips.insert(p.plan.places[static_cast<std::size_t>(r)].chip);
      stacks.insert(p.plan.places[static_cast<std::size_t>(r)].first_stack);
    }
    EXPECT_EQ(chips.size(), 1U);
    EXPECT_EQ(stacks.size(), 4U);
    // Around the package: one hop each.
    for (const topology::Route& hop : g.rings.front().hops) EXPECT_EQ(hop.size(), 1U);
  }
}

TEST(Place, RingsVisitEveryMemberOnceAndCloseUp) {
  const Placed p = placed("ultraserver64.json", "llama7b.trace");
  for (const GroupSet& set : p.plan.group_sets)
    for (const GroupPlan& g : set.groups) {
      EXPECT_EQ(g.rings.size(), 1U);  // both directions are busy already
      std::vector<std::int64_t> order = g.rings.front().order;
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < order.size(); ++i)
        EXPECT_EQ(order[i], static_cast<std::int64_t>(i));
      EXPECT_EQ(g.rings.front().hops.size(), g.members.size());
      EXPECT_FALSE(g.worst_link.empty());
    }
}

TEST(Place, DataParallelRingsCrossTheRacksOnlyTwice) {
  const Placed p = placed("ultraserver64.json", "llama7b.trace");
  // A ring through 64 chips in two racks must cross twice; each crossing is a direct link of 128
  // GB/s.
  for (const GroupPlan& g : set_of(p.plan, "dp").groups) {
    int crossings = 0;
    for (const topology::Route& hop : g.rings.front().hops)
      for (topology::LinkId id : hop)
        if (p.graph.link(id).bandwidth == p.run.system.fabric.cross_rack.bandwidth) ++crossings;
    EXPECT_EQ(crossings, 2);
  }
}

TEST(Place, EpiloguesFuseOnlyWhenSwitchedOn) {
  const Placed on = placed("chip1.json", "llama7b_chip1.trace");
  const Placed off = placed("chip1.json", "llama7b_chip1.trace", {"compile.fusion=false"});
  const Placed none = placed("chip1.json", "llama7b_chip1.trace",
                             {"compile.fusion=false", "compile.memory_reuse=false"});
  EXPECT_GT(off.plan.kernels.size(), on.plan.kernels.size());
  const auto fused = [](const Plan& plan) {
    std::size_t n = 0;
    for (const auto& block : plan.ops)
      for (const OpPlan& op : block) n += op.fused ? 1 : 0;
    return n;
  };
  EXPECT_GT(fused(on.plan), fused(off.plan));
  EXPECT_GT(fused(off.plan), 0U);  // vector ops that take results from SBUF
  EXPECT_EQ(fused(none.plan), 0U);
}

}  // namespace
}  // namespace trn3sim::compile
