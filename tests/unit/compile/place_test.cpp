// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "trn3sim/compile/collective.hpp"
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

TEST(CollectivePrograms, MoveWhatTheyPromise) {
  trace::Collective c;
  c.kind = trace::CollectiveKind::AllReduce;
  c.in = c.out = 1000;
  // 2 (n-1) steps of ceil(1000 / 8) = 125.
  CollectiveProgram p = collective_program(c, 8, 3);
  EXPECT_EQ(p.sends, 14);
  EXPECT_EQ(p.reduce_receives, 7);
  EXPECT_EQ(p.bytes, base::Bytes(125));
  c.kind = trace::CollectiveKind::AllGather;
  c.in = 10;
  c.out = 80;
  p = collective_program(c, 8, 0);
  EXPECT_EQ(p.sends, 7);
  EXPECT_EQ(p.reduce_receives, 0);
  EXPECT_EQ(p.bytes, base::Bytes(10));
  EXPECT_EQ(collective_program(c, 1, 0).sends, 0);
}

TEST(CollectivePrograms, BroadcastFlowsFromTheRoot) {
  trace::Collective c;
  c.kind = trace::CollectiveKind::Broadcast;
  c.in = c.out = 800;
  EXPECT_EQ(collective_program(c, 4, 0).receives, 0);
  EXPECT_EQ(collective_program(c, 4, 0).sends, 8);  // chunks
  EXPECT_EQ(collective_program(c, 4, 3).sends, 0);
  EXPECT_EQ(collective_program(c, 4, 1).need_offset, 1);
}

TEST(CollectivePrograms, EachSendWaitsForItsArrivals) {
  trace::Collective c;
  c.kind = trace::CollectiveKind::ReduceScatter;
  c.in = 40;
  c.out = 10;
  const CollectiveProgram p = collective_program(c, 4, 0);
  // Send k of a ring needs k arrivals; three of each and it is done.
  EXPECT_TRUE(may_send(p, 0, 0));
  EXPECT_FALSE(may_send(p, 1, 0));
  EXPECT_TRUE(may_send(p, 1, 1));
  EXPECT_FALSE(may_send(p, 3, 3));
  EXPECT_FALSE(is_done(p, 3, 2));
  EXPECT_TRUE(is_done(p, 3, 3));
  // Read to send, write to receive, read of the local operand to reduce.
  EXPECT_EQ(hbm_touches(p, 0), 3);
  const config::ChipSpec chip = placed("chip1.json", "residual_add.trace").run.system.chip;
  EXPECT_EQ(arrival_delay(p, 2, chip), chip.dma.completion);
  EXPECT_EQ(arrival_delay(p, 1, chip),
            chip.dma.completion + chip.dma.start_latency + chip.collectives.step_overhead);
}

}  // namespace
}  // namespace trn3sim::compile
