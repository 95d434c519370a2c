// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The shapes of fabrics: nodes, links and distances between chips.
#include <filesystem>
#include <fstream>

#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/topology/graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace trn3sim::topology {
namespace {

constexpr std::string_view kLink = R"("link": {"bandwidth": "100 GB/s", "latency": "500 ns"})";

// A system with the fabric of this JSON text, changed by overrides.
config::SystemSpec system_with(const std::string& fabric,
                               const std::vector<std::string>& overrides = {}) {
  const auto file = std::filesystem::temp_directory_path() /
                    fmt::format("trn3sim_fabric_{}.json", static_cast<int>(getpid()));
  std::ofstream(file) << R"({"kind": "system", "name": "t", "chip": "chips/trn3.json", "fabric": )"
                      << fabric << "}";
  config::SystemSpec system = config::load_run(file.string(), overrides).system;
  std::filesystem::remove(file);
  return system;
}

Graph fabric(const std::string& text) {
  return build(system_with(text));
}

std::size_t fabric_links(const Graph& graph) {
  std::size_t n = 0;
  for (const Link& link : graph.links()) n += link.kind == LinkKind::NeuronLink ? 1 : 0;
  return n;
}

// Links of the fabric on the route between two chips.
std::size_t hops(const Graph& graph, std::int64_t a, std::int64_t b) {
  return graph.route(graph.stack(a, 0), graph.stack(b, 0)).size() - 2;  // without the port links
}

// The largest number of fabric links between two chips.
std::size_t diameter(const Graph& graph) {
  std::size_t longest = 0;
  for (std::int64_t a = 0; a < graph.chips(); ++a) {
    const std::vector<Route> routes = graph.routes_from(graph.stack(a, 0));
    for (std::int64_t b = 0; b < graph.chips(); ++b)
      if (a != b)
        longest = std::max(longest, routes[static_cast<std::size_t>(graph.stack(b, 0))].size() - 2);
  }
  return longest;
}

TEST(Fabric, Ring) {
  // N chips, N links of two directions; the farthest chip is half way round.
  const Graph ring = fabric(fmt::format(R"({{"type": "ring", "chips": 7, {}}})", kLink));
  EXPECT_EQ(ring.chips(), 7);
  EXPECT_EQ(ring.nodes().size(), 7U * 5);
  EXPECT_EQ(fabric_links(ring), 14U);
  EXPECT_EQ(diameter(ring), 3U);
  EXPECT_EQ(hops(ring, 0, 6), 1U);
  const Graph two = fabric(fmt::format(R"({{"type": "ring", "chips": 2, {}}})", kLink));
  EXPECT_EQ(fabric_links(two), 2U);  // not joined twice
}

TEST(Fabric, TorusIsARingInEachDimension) {
  // 3 x 4: each of 12 chips has 2 links per dimension, a link belongs to two chips: 24 links.
  const Graph torus = fabric(fmt::format(R"({{"type": "torus", "dims": [3, 4], {}}})", kLink));
  EXPECT_EQ(torus.chips(), 12);
  EXPECT_EQ(fabric_links(torus), 48U);
  EXPECT_EQ(diameter(torus), 1U + 2U);  // floor(3 / 2) + floor(4 / 2)
  EXPECT_EQ(hops(torus, 0, 1), 1U);     // the last dimension varies fastest
  EXPECT_EQ(hops(torus, 0, 3), 1U);     // and closes after 4
  EXPECT_EQ(hops(torus, 0, 4), 1U);     // the first dimension in steps of 4
  EXPECT_EQ(hops(torus, 0, 8), 1U);
  EXPECT_EQ(hops(torus, 3, 4), 2U);  // no neighbours: (0, 3) and (1, 0)
  // A dimension of 2 has one link: the cube has 8 x 3 / 2 = 12; one of 1 has none.
  const Graph cube = fabric(fmt::format(R"({{"type": "torus", "dims": [2, 2, 1, 2], {}}})", kLink));
  EXPECT_EQ(fabric_links(cube), 24U);
  EXPECT_EQ(diameter(cube), 3U);
}

TEST(Fabric, ATorusMayHaveOtherLinksAlongItsFirstDimension) {
  const Graph torus = fabric(fmt::format(
      R"({{"type": "torus", "dims": [4, 3], {}, "outer_link": {{"bandwidth": "40 GB/s", "latency": "1 us"}}}})",
      kLink));
  std::size_t outer = 0;
  for (const Link& link : torus.links())
    outer += link.kind == LinkKind::NeuronLink && link.bandwidth.count() == 40'000'000'000 ? 1 : 0;
  EXPECT_EQ(outer, 3U * 4 * 2);  // three rings of four links of two directions
  EXPECT_EQ(fabric_links(torus), 48U);
  const auto rate = [&](std::int64_t a, std::int64_t b) {
    return torus.bottleneck(torus.route(torus.stack(a, 0), torus.stack(b, 0))).count();
  };
  EXPECT_EQ(rate(0, 3), 40'000'000'000);  // (0, 0) to (1, 0)
  EXPECT_EQ(rate(0, 1), 100'000'000'000);
}

// What leaves a chip in one direction is half of the maker's figure for both.
TEST(Fabric, TrainiumInstances) {
  struct Expected {
    const char* file;
    std::int64_t chips, of_a_chip;
  };
  for (const Expected& e : {Expected{"trn1_32xl.json", 16, 192}, Expected{"trn2_48xl.json", 16, 512},
                            Expected{"trn2_ultraserver64.json", 64, 640}}) {
    const config::SystemSpec system = config::load_run(e.file, {}).system;
    const Graph graph = build(system);
    EXPECT_EQ(graph.chips(), e.chips) << e.file;
    std::int64_t all = 0;
    for (const Link& link : graph.links())
      if (link.kind == LinkKind::NeuronLink) all += link.bandwidth.count();
    EXPECT_EQ(all, e.chips * e.of_a_chip * 1'000'000'000) << e.file;
    EXPECT_EQ(diameter(graph), e.chips == 16 ? 4U : 6U) << e.file;
  }
}

TEST(Fabric, SwitchAndFullyConnected) {
  const config::SystemSpec system = system_with(
      fmt::format(R"({{"type": "switch", "chips": 6, "switch_latency": "200 ns", {}}})", kLink));
  const Graph star = build(system);
  EXPECT_EQ(star.nodes().size(), 6U * 5 + 1);
  EXPECT_EQ(fabric_links(star), 12U);
  EXPECT_EQ(diameter(star), 2U);
  // Port links of 200 ns at both ends, two links of 500 ns, the switch with 200 ns.
  EXPECT_EQ(star.latency(star.route(star.stack(0, 0), star.stack(5, 0))),
            2 * system.chip.on_chip.port_latency + base::nanoseconds(500 + 500 + 200));
  const Graph all = fabric(fmt::format(R"({{"type": "fully_connected", "chips": 6, {}}})", kLink));
  EXPECT_EQ(fabric_links(all), 30U);  // 6 x 5 directions
  EXPECT_EQ(diameter(all), 1U);
}

constexpr const char* kTwoSwitches = R"({"type": "graph", "chips": 4,
  "switches": [{"name": "sw0", "latency": "200 ns"}, {"name": "sw1", "latency": "0 ns"}],
  "links": [{"from": "chip0", "to": "sw0", "bandwidth": "100 GB/s", "latency": "500 ns"},
            {"from": "chip1", "to": "sw0", "bandwidth": "100 GB/s", "latency": "500 ns"},
            {"from": "sw0", "to": "sw1", "bandwidth": "50 GB/s", "latency": "700 ns"},
            {"from": "chip2", "to": "sw1", "bandwidth": "100 GB/s", "latency": "500 ns"},
            {"from": "chip3", "to": "sw1", "bandwidth": "100 GB/s", "latency": "500 ns"},
            {"from": "chip0", "to": "chip3", "bandwidth": "50 GB/s", "latency": "1 ns", "one_way": true}]})";

TEST(Fabric, GraphFollowsItsList) {
  const Graph graph = fabric(kTwoSwitches);
  EXPECT_EQ(graph.chips(), 4);
  EXPECT_EQ(graph.nodes().size(), 4U * 5 + 2);
  EXPECT_EQ(fabric_links(graph), 5U * 2 + 1);
  EXPECT_EQ(hops(graph, 0, 1), 2U);
  EXPECT_EQ(hops(graph, 1, 2), 3U);
  EXPECT_EQ(graph.bottleneck(graph.route(graph.stack(1, 0), graph.stack(2, 0))).count(),
            50'000'000'000);
  // Straight there; back over both switches.
  EXPECT_EQ(hops(graph, 0, 3), 1U);
  EXPECT_EQ(hops(graph, 3, 0), 3U);
}

TEST(Fabric, OverridesReachIntoLists) {
  const config::SystemSpec graph =
      system_with(kTwoSwitches, {"fabric.links.2.bandwidth=60GB/s", "fabric.switches.1.latency=3ns",
                                 "fabric.links.5.one_way=false"});
  EXPECT_EQ(graph.fabric.links[2].link.bandwidth.count(), 60'000'000'000);
  EXPECT_EQ(graph.fabric.switches[1].latency, base::nanoseconds(3));
  EXPECT_FALSE(graph.fabric.links[5].one_way);
  const std::string torus = fmt::format(R"({{"type": "torus", "dims": [4, 4], {}}})", kLink);
  EXPECT_EQ(system_with(torus, {"fabric.dims=[2, 3, 4]"}).chips(), 24);
  EXPECT_EQ(system_with(torus, {"fabric.dims.1=8"}).chips(), 32);
}

TEST(Fabric, DumpLoadsBackToTheSameFabric) {
  for (const std::string& text :
       {std::string(kTwoSwitches), fmt::format(R"({{"type": "torus", "dims": [2, 4], {}}})", kLink),
        fmt::format(R"({{"type": "ring", "chips": 5, {}}})", kLink),
        fmt::format(R"({{"type": "switch", "chips": 5, "switch_latency": "1 ns", {}}})", kLink)}) {
    const auto file = std::filesystem::temp_directory_path() /
                      fmt::format("trn3sim_dump_{}.json", static_cast<int>(getpid()));
    const auto load = [&](const std::string& document) {
      std::ofstream(file) << document;
      return config::load_run(file.string(), {}).resolved_json;
    };
    const std::string dump = load(
        R"({"kind": "system", "name": "t", "chip": "chips/trn3.json", "fabric": )" + text + "}");
    EXPECT_EQ(load(dump), dump);
    std::filesystem::remove(file);
  }
}

TEST(Fabric, ShippedExamples) {
  const Graph ring = build(config::load_run("ring64.json", {}).system);
  EXPECT_EQ(ring.chips(), 64);
  EXPECT_EQ(fabric_links(ring), 128U);
  EXPECT_EQ(diameter(ring), 32U);
  const Graph torus = build(config::load_run("torus16.json", {}).system);
  EXPECT_EQ(torus.chips(), 16);
  EXPECT_EQ(fabric_links(torus), 64U);
  EXPECT_EQ(diameter(torus), 4U);
}

}  // namespace
}  // namespace trn3sim::topology
