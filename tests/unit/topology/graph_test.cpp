// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/topology/graph.hpp"

#include <set>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <gtest/gtest.h>

namespace trn3sim::topology {
namespace {

config::SystemSpec system_of(const std::string& name) {
  return config::load_run(name, {}).system;
}

std::size_t count(const Graph& graph, LinkKind kind) {
  std::size_t n = 0;
  for (const Link& link : graph.links()) n += link.kind == kind ? 1 : 0;
  return n;
}

// The names of the nodes along a route.
std::vector<std::string> path(const Graph& graph, NodeId from, NodeId to) {
  std::vector<std::string> names{graph.node(from).name};
  for (const LinkId id : graph.route(from, to)) names.push_back(graph.node(graph.link(id).to).name);
  return names;
}

base::Time cost(const Graph& graph, const Route& route) {
  return graph.latency(route) + base::transfer_time(base::Bytes(1 << 20), graph.bottleneck(route));
}

using Path = std::vector<std::string>;

TEST(Topology, OneChip) {
  const Graph graph = build(system_of("chip1.json"));
  // 4 stacks and a hub; ring of 4 x 2 directions, half of it across the dies (1-2 and 3-0).
  EXPECT_EQ(graph.nodes().size(), 5U);
  EXPECT_EQ(count(graph, LinkKind::OnDie), 4U);
  EXPECT_EQ(count(graph, LinkKind::DieCrossing), 4U);
  EXPECT_EQ(count(graph, LinkKind::PortLink), 8U);
  EXPECT_EQ(count(graph, LinkKind::NeuronLink), 0U);
}

TEST(Topology, ServerAndUltraServerCounts) {
  const Graph server = build(system_of("instance16.json"));
  // 16 x 5 nodes and 2 planes; 16 x 16 on-chip links; 8 pairs and 16 switch links, both directions.
  EXPECT_EQ(server.nodes().size(), 16U * 5 + 2);
  EXPECT_EQ(server.links().size(), 16U * 16 + 2 * (8 + 16));
  const Graph ultra = build(system_of("ultraserver64.json"));
  // Two racks of two planes; 32 pairs, 64 switch links and 32 cross-rack links, both directions.
  EXPECT_EQ(ultra.nodes().size(), 64U * 5 + 4);
  EXPECT_EQ(ultra.links().size(), 64U * 16 + 2 * (32 + 64 + 32));
  EXPECT_EQ(ultra.chips(), 64);
  EXPECT_EQ(ultra.stacks_per_chip(), 4);
}

TEST(Topology, FewStacks) {
  config::SystemSpec system = system_of("chip1.json");
  system.chip.stacks = 2;
  system.chip.dies = 2;
  Graph two = build(system);  // one pair of links, across the dies
  EXPECT_EQ(count(two, LinkKind::DieCrossing), 2U);
  EXPECT_EQ(count(two, LinkKind::OnDie), 0U);
  system.chip.stacks = system.chip.dies = 1;
  Graph one = build(system);
  EXPECT_EQ(one.links().size(), 2U);  // only to and from the hub
}

TEST(Topology, DieCrossingIsSlowerAndLonger) {
  const config::SystemSpec system = system_of("chip1.json");
  const Graph graph = build(system);
  const Route inside = graph.route(graph.stack(0, 0), graph.stack(0, 1));
  const Route across = graph.route(graph.stack(0, 1), graph.stack(0, 2));
  EXPECT_EQ(graph.link(inside.at(0)).kind, LinkKind::OnDie);
  EXPECT_EQ(graph.link(across.at(0)).kind, LinkKind::DieCrossing);
  EXPECT_EQ(graph.latency(across),
            graph.latency(inside) + system.chip.on_chip.die_crossing_latency);
  // 128 GB/s x 0.93
  EXPECT_EQ(graph.bottleneck(across).count(), 119'040'000'000);
}

TEST(Routes, NeighboursInAChipAreOneHopOnTheRing) {
  const Graph graph = build(system_of("ultraserver64.json"));
  for (std::int64_t chip : {0, 17, 63})
    for (std::int64_t s = 0; s < 4; ++s)
      EXPECT_EQ(graph.route(graph.stack(chip, s), graph.stack(chip, (s + 1) % 4)).size(), 1U);
  // Opposite stacks: two hops, and the hub is no short cut. Both ways cross the dies once; the one
  // over stack 1 has the smaller link ids.
  EXPECT_EQ(path(graph, graph.stack(0, 0), graph.stack(0, 2)),
            (Path{"chip0.stack0", "chip0.stack1", "chip0.stack2"}));
}

TEST(Routes, PairPartnersAreDirect) {
  const Graph graph = build(system_of("ultraserver64.json"));
  EXPECT_EQ(path(graph, graph.stack(4, 0), graph.stack(5, 3)),
            (Path{"chip4.stack0", "chip4.ports", "chip5.ports", "chip5.stack3"}));
}

TEST(Routes, SamePlanePassesOneSwitch) {
  const config::SystemSpec system = system_of("ultraserver64.json");
  const Graph graph = build(system);
  EXPECT_EQ(path(graph, graph.stack(0, 1), graph.stack(30, 2)),
            (Path{"chip0.stack1", "chip0.ports", "rack0.plane0", "chip30.ports", "chip30.stack2"}));
  EXPECT_EQ(
      path(graph, graph.stack(33, 0), graph.stack(63, 0)),
      (Path{"chip33.stack0", "chip33.ports", "rack1.plane1", "chip63.ports", "chip63.stack0"}));
  // Two port links, two switch links and the switch.
  const Route route = graph.route(graph.stack(0, 1), graph.stack(30, 2));
  EXPECT_EQ(graph.latency(route), 2 * system.chip.on_chip.port_latency +
                                      2 * system.fabric.switched.latency +
                                      system.fabric.switch_latency);
}

TEST(Routes, OtherPlaneGoesOverAPairPartner) {
  const Graph graph = build(system_of("ultraserver64.json"));
  // Over the own partner or over the target's: equal; the smaller link ids win (own pair link
  // first).
  EXPECT_EQ(path(graph, graph.stack(0, 0), graph.stack(3, 0)),
            (Path{"chip0.stack0", "chip0.ports", "chip1.ports", "rack0.plane1", "chip3.ports",
                  "chip3.stack0"}));
}

TEST(Routes, CrossRackIsDirectForTheSamePosition) {
  const Graph graph = build(system_of("ultraserver64.json"));
  EXPECT_EQ(path(graph, graph.stack(5, 0), graph.stack(37, 0)),
            (Path{"chip5.stack0", "chip5.ports", "chip37.ports", "chip37.stack0"}));
  EXPECT_EQ(graph.bottleneck(graph.route(graph.stack(5, 0), graph.stack(37, 0))).count(),
            128'000'000'000);
  // Another position: one switch more, at most three hops between chips plus the pair.
  EXPECT_EQ(graph.route(graph.stack(0, 0), graph.stack(34, 0)).size(), 5U);
}

TEST(Routes, EveryPairIsReachableSymmetricAndStaysOutOfForeignStacks) {
  const Graph graph = build(system_of("ultraserver64.json"));
  std::vector<std::vector<Route>> routes;
  for (std::int64_t chip = 0; chip < graph.chips(); ++chip)
    routes.push_back(graph.routes_from(graph.stack(chip, 0)));
  for (std::int64_t a = 0; a < graph.chips(); ++a)
    for (std::int64_t b = 0; b < graph.chips(); ++b) {
      if (a == b) continue;
      const Route& there =
          routes[static_cast<std::size_t>(a)][static_cast<std::size_t>(graph.stack(b, 0))];
      const Route& back =
          routes[static_cast<std::size_t>(b)][static_cast<std::size_t>(graph.stack(a, 0))];
      ASSERT_FALSE(there.empty());
      ASSERT_EQ(cost(graph, there), cost(graph, back)) << a << " " << b;
      NodeId at = graph.stack(a, 0);
      for (std::size_t i = 0; i < there.size(); ++i) {
        ASSERT_EQ(graph.link(there[i]).from, at);
        at = graph.link(there[i]).to;
        if (i + 1 < there.size()) {
          ASSERT_NE(graph.node(at).kind, NodeKind::Stack);
        }
      }
      ASSERT_EQ(at, graph.stack(b, 0));
    }
}

TEST(Routes, SlowShortLinkLosesToFastLongRoute) {
  Graph graph;
  const auto node = [&](const char* name) {
    return graph.add_node({NodeKind::Switch, name, -1, -1, base::Time(0)});
  };
  const NodeId a = node("a"), b = node("b"), c = node("c");
  const auto link = [&](NodeId from, NodeId to, std::int64_t gbs, std::int64_t ns) {
    return graph.add_link({LinkKind::NeuronLink, "", from, to, base::Rate(gbs * 1'000'000'000),
                           base::nanoseconds(ns)});
  };
  const LinkId slow = link(a, b, 1, 1);
  const LinkId first = link(a, c, 100, 100), second = link(c, b, 100, 100);
  // 1 MiB: 1.05 ms at 1 GB/s against 10.5 us at 100 GB/s.
  EXPECT_EQ(graph.route(a, b), (Route{first, second}));
  // With 100 GB/s too, the direct link is shorter; of two equal ones the smaller id wins.
  Graph other = graph;
  const LinkId fast = other.add_link(
      {LinkKind::NeuronLink, "", a, b, base::Rate(100'000'000'000), base::nanoseconds(150)});
  other.add_link(
      {LinkKind::NeuronLink, "", a, b, base::Rate(100'000'000'000), base::nanoseconds(150)});
  EXPECT_EQ(other.route(a, b), Route{fast});
  EXPECT_EQ(graph.route(b, b), Route{});
  EXPECT_NE(graph.route(a, b).front(), slow);
}

TEST(Routes, UnreachableNamesBothEnds) {
  Graph graph;
  const NodeId a = graph.add_node({NodeKind::Stack, "chip0.stack0", 0, 0, {}});
  const NodeId b = graph.add_node({NodeKind::Stack, "chip1.stack0", 1, 0, {}});
  try {
    static_cast<void>(graph.route(a, b));
    FAIL() << "a route where there is no link";
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "fabric: there is no route from chip0.stack0 to chip1.stack0");
  }
}

TEST(Topology, BuildsTheSameTwice) {
  const config::SystemSpec system = system_of("instance16.json");
  const Graph a = build(system), b = build(system);
  ASSERT_EQ(a.links().size(), b.links().size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < a.links().size(); ++i) {
    EXPECT_EQ(a.links()[i].name, b.links()[i].name);
    EXPECT_TRUE(names.insert(a.links()[i].name).second) << "two links named " << a.links()[i].name;
  }
  for (std::int64_t chip = 0; chip < a.chips(); ++chip)
    EXPECT_EQ(a.routes_from(a.stack(chip, 1)), b.routes_from(b.stack(chip, 1)));
}

}  // namespace
}  // namespace trn3sim::topology
