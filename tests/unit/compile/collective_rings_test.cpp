// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Over which rings and links collectives go, which algorithm is chosen, and what bounds its time.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "trn3sim/compile/collective.hpp"
#include "trn3sim/config/run_spec.hpp"

#include "support/collectives.hpp"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace trn3sim::compile {
namespace {

using test::collective;
using test::shape;
using trace::CollectiveKind;

// A workload of collectives on a system of the given fabric.
struct Placed {
  config::RunSpec run;
  topology::Graph graph;
  Plan plan;
  [[nodiscard]] const GroupSet& set(const std::string& name) const {
    return *std::find_if(plan.group_sets.begin(), plan.group_sets.end(),
                         [&](const GroupSet& s) { return s.name == name; });
  }
  [[nodiscard]] const OpPlan& op(std::size_t i) const { return plan.ops.front()[i]; }
};

Placed placed(const std::string& fabric, const std::string& unit, const std::string& mesh,
              const std::string& ops, const std::vector<std::string>& sets = {}) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("trn3sim_coll_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "s.json") << fmt::format(
      R"({{"kind":"system","name":"s","chip":"{}/configs/chips/trn3.json","fabric":{}}})",
      TRN3SIM_SOURCE_DIR, fabric);
  std::ofstream(folder / "t.trace")
      << fmt::format(R"({{"trace":"trn3sim","v":1,"name":"t","rank_unit":"{}","mesh":{},)", unit,
                     mesh)
      << R"("defaults":{"dtype":"bf16"},"tokens_per_step":1,"memory":[]})"
      << "\n"
      << ops;
  Placed p;
  p.run = config::load_run((folder / "s.json").string(), sets);
  p.graph = topology::build(p.run.system);
  p.plan = place(trace::read(folder / "t.trace"), p.graph, p.run);
  std::filesystem::remove_all(folder);
  return p;
}

std::string gather(const std::string& group, std::int64_t in, std::int64_t n) {
  return fmt::format(
             R"({{"op":"coll","id":"{}{}","kind":"all_gather","group":"{}","in":{},"out":{}}})",
             group, in, group, in, n * in) +
         "\n";
}

std::string reduce(std::int64_t bytes) {
  return fmt::format(
             R"({{"op":"coll","id":"a{}","kind":"all_reduce","group":"g","in":{},"out":{}}})",
             bytes, bytes, bytes) +
         "\n";
}

constexpr std::int64_t kMiB = 1 << 20;
const char* const kLink = R"("link":{"bandwidth":"100 GB/s","latency":"500 ns"})";

std::string fabric(const std::string& type, const std::string& size) {
  return fmt::format(R"({{"type":"{}",{},{}}})", type, size, kLink);
}

// Each ring visits everyone, and no two share a link of the fabric.
void expect_disjoint(const Placed& p, const GroupPlan& g) {
  std::set<topology::LinkId> used;
  for (const Ring& ring : g.rings) {
    EXPECT_EQ(std::set<std::int64_t>(ring.order.begin(), ring.order.end()).size(),
              g.members.size());
    for (std::size_t i = 0; i < ring.order.size(); ++i)
      EXPECT_EQ(ring.place[static_cast<std::size_t>(ring.order[i])], static_cast<std::int64_t>(i));
    for (const topology::Route& hop : ring.hops)
      for (topology::LinkId id : hop) {
        if (p.graph.link(id).kind != topology::LinkKind::NeuronLink) continue;
        EXPECT_TRUE(used.insert(id).second) << p.graph.link(id).name;
      }
  }
}

TEST(Rings, BothWaysAroundARingOfChips) {
  const std::string ops = gather("g", 64 * kMiB, 8);
  const Placed p = placed(fabric("ring", "\"chips\":8"), "chip", R"([["g",8]])", ops);
  const GroupPlan& g = p.set("g").groups.front();
  ASSERT_EQ(g.rings.size(), 2U);
  expect_disjoint(p, g);
  EXPECT_EQ(p.set("g").ring.rate, base::Rate(100'000'000'000));
  EXPECT_EQ(p.set("g").ring.exits, 1);  // both leave by the port of the same stack
  const Placed one =
      placed(fabric("ring", "\"chips\":8"), "chip", R"([["g",8]])", ops, {"collectives.rings=1"});
  EXPECT_EQ(one.set("g").groups.front().rings.size(), 1U);
}

TEST(Rings, TwoHamiltonianCyclesOnATorus) {
  for (const auto& [dims, chips] : {std::pair("[4,4]", 16),
                                    {"[3,3]", 9},
                                    {"[5,3]", 15},
                                    {"[4,6]", 24},
                                    {"[8,4]", 32},
                                    {"[8,8]", 64}}) {
    const Placed p = placed(fabric("torus", fmt::format("\"dims\":{}", dims)), "chip",
                            fmt::format("[[\"g\",{}]]", chips), gather("g", 64 * kMiB, chips));
    const GroupPlan& g = p.set("g").groups.front();
    ASSERT_EQ(g.rings.size(), 4U) << dims;
    expect_disjoint(p, g);
    for (const Ring& ring : g.rings)
      for (const topology::Route& hop : ring.hops) EXPECT_EQ(hop.size(), 3U);  // port, link, port
  }
}

TEST(Rings, OneWhereTwoWouldShareTheirLinks) {
  const std::string ops = gather("g", 64 * kMiB, 8);
  // Every chip has one link to the switch; two chips have one link; inside a chip there is one
  // ring.
  const Placed star =
      placed(R"({"type":"switch","chips":8,"switch_latency":"100 ns",)" + std::string(kLink) + "}",
             "chip", R"([["g",8]])", ops);
  EXPECT_EQ(star.set("g").groups.front().rings.size(), 1U);
  const Placed pair =
      placed(fabric("ring", "\"chips\":2"), "chip", R"([["g",2]])", gather("g", 64 * kMiB, 2));
  EXPECT_EQ(pair.set("g").groups.front().rings.size(), 1U);
  const Placed chip =
      placed(R"({"type":"none"})", "logical_core", R"([["g",4]])", gather("g", 64 * kMiB, 4));
  EXPECT_EQ(chip.set("g").groups.front().rings.size(), 1U);
}

TEST(Rings, GroupsThatCrowdOneDirectionTakeBoth) {
  // Four groups, one per stack, whose tours go three times forwards and once backwards: 33 GB/s for
  // each. In both directions each of eight rings has 25 GB/s for half the data.
  const std::string ops = gather("g", 64 * kMiB, 8);
  const char* const mesh = R"([["g",8],["t",4]])";
  const Placed p = placed(fabric("ring", "\"chips\":8"), "logical_core", mesh, ops);
  EXPECT_EQ(p.set("g").groups.front().rings.size(), 2U);
  EXPECT_EQ(p.set("g").ring.rate, base::Rate(25'000'000'000));
  const Placed one =
      placed(fabric("ring", "\"chips\":8"), "logical_core", mesh, ops, {"collectives.rings=1"});
  EXPECT_EQ(one.set("g").ring.rate, base::Rate(33'333'333'333));
}

TEST(Rings, ChipsAreFinishedOneByOne) {
  // Links between chips are faster than those between stacks, so the nearest member is on another
  // chip; but then the four tours through a pair of chips would share its link.
  const Placed p = placed(fabric("ring", "\"chips\":4"), "logical_core", R"([["g",16]])",
                          gather("g", 64 * kMiB, 16), {"fabric.link.bandwidth=512 GB/s"});
  const GroupPlan& g = p.set("g").groups.front();
  ASSERT_EQ(g.rings.size(), 2U);
  expect_disjoint(p, g);
  EXPECT_EQ(p.set("g").ring.rate, base::Rate(119'040'000'000));  // 128 GB/s x 0.93 across dies
  EXPECT_EQ(g.rings.front().order,
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Rings, StridedGroupsAndGroupsOfThree) {
  const Placed p = placed(fabric("ring", "\"chips\":6"), "chip", R"([["g",3],["h",2]])",
                          gather("g", 64 * kMiB, 3) + gather("h", 64 * kMiB, 2));
  for (const char* name : {"g", "h"})
    for (const GroupPlan& g : p.set(name).groups) expect_disjoint(p, g);
}

TEST(Ways, SmallCollectivesAreMeshesAndSayWhy) {
  const std::string ops = gather("g", 256, 4) + gather("g", 8 * kMiB, 4) + reduce(4) +
                          reduce(kMiB) +
                          R"({"op":"coll","id":"b","kind":"broadcast","group":"g","in":4,"out":4})"
                          "\n";
  const auto ways = [&](const std::vector<std::string>& sets) {
    const Placed p = placed(R"({"type":"none"})", "logical_core", R"([["g",4]])", ops, sets);
    std::string text;
    for (std::size_t i = 0; i < 5; ++i)
      text += fmt::format("{} {}; ", static_cast<int>(p.op(i).way), p.op(i).reason);
    return text;
  };
  EXPECT_EQ(ways({}),
            "1 up to mesh_limit; 0 above mesh_limit; 2 up to mesh_limit; 1 up to mesh_limit; 0 ; ");
  EXPECT_EQ(ways({"collectives.algorithm=ring"}),
            "0 asked for; 0 asked for; 0 asked for; 0 asked for; 0 ; ");
  EXPECT_EQ(ways({"collectives.algorithm=mesh"}),
            "1 asked for; 1 asked for; 2 asked for; 1 asked for; 0 ; ");
  EXPECT_EQ(ways({"chip.collectives.mesh_ranks=2"}),
            "0 group above mesh_ranks; 0 group above mesh_ranks; 0 group above mesh_ranks; 0 group "
            "above mesh_ranks; 0 ; ");
  EXPECT_EQ(ways({"chip.collectives.mesh_limit=4 B"}),
            "0 above mesh_limit; 0 above mesh_limit; 2 up to mesh_limit; 0 above mesh_limit; 0 ; ");
}

TEST(Pairs, EquallyGoodRoutesShareTheLoad) {
  // 8 chips on a ring: 1 + 2 + 3 messages over each link for the nearer ones, and 2 for the
  // opposite ones if half of them go each way; all in one direction would be 4.
  const Placed p =
      placed(fabric("ring", "\"chips\":8"), "chip", R"([["g",8]])", gather("g", 16, 8));
  EXPECT_EQ(p.set("g").mesh.rate, base::Rate(100'000'000'000 / 8));
  EXPECT_EQ(p.set("g").mesh.exits, 1);
  const Placed chip = placed(R"({"type":"none"})", "logical_core", R"([["g",4]])",
                             gather("g", 16, 4), {"chip.on_chip.die_crossing_bandwidth=1.0"});
  EXPECT_EQ(chip.set("g").mesh.rate, base::Rate(64'000'000'000));
  EXPECT_EQ(chip.set("g").mesh.exits, 2);
}

TEST(Ways, AMeshThatCrowdsItsLinksIsNotChosen) {
  // Each chip has 0.1 GB/s to its neighbours: 64 chips of a ring send 1024 messages over each link.
  const Placed p =
      placed(fabric("ring", "\"chips\":64"), "chip", R"([["g",64]])",
             gather("g", 16384, 64) + gather("g", 16, 64), {"fabric.link.bandwidth=0.1 GB/s"});
  EXPECT_EQ(p.op(0).way, Way::Ring);
  EXPECT_STREQ(p.op(0).reason, "faster than mesh");
  EXPECT_EQ(p.op(1).way, Way::Mesh);
}

// Bounds and expectations of every program keep their order.
TEST(Times, TheLeastIsNoMoreThanTheExpected) {
  for (const char* unit : {"chip", "logical_core", "core"})
    for (const char* type : {"ring", "fully_connected"}) {
      const std::int64_t n = 8;
      const Placed p = placed(fabric(type, "\"chips\":8"), unit, R"([["g",8]])",
                              gather("g", kMiB, n), {"collectives.algorithm=mesh"});
      const config::ChipSpec& chip = p.run.system.chip;
      const GroupSet& set = p.set("g");
      const base::Rate cap = dma_rate(chip, p.plan.places.front(), false);
      for (const Way way : {Way::Ring, Way::Mesh, Way::OneStep})
        for (const std::int64_t bytes : {std::int64_t{8}, kMiB, 64 * kMiB}) {
          const CollectiveProgram program = collective_program(
              collective(CollectiveKind::AllReduce, bytes, bytes), shape_of(set, 0, way));
          const base::Time least = least_time(program, set.groups.front(), p.graph, chip, cap);
          const base::Time expected =
              expected_time(program, way == Way::Ring ? set.ring : set.mesh, chip, cap);
          EXPECT_GT(least, start_delay(program, chip));
          // Both round up each transfer to a femtosecond.
          EXPECT_LE(least, expected + base::Time(2 * n))
              << unit << " " << type << " " << program.algorithm;
        }
    }
}

// When the last of four members starts 1 s late: the dependent steps after it.
class LateMember : public testing::Test {
 protected:
  LateMember() {
    chip_.dma.start_latency = base::Time(6);
    chip_.dma.completion = base::Time(4);  // a step later: 10
    topology::Node node;
    for (int i = 0; i < 2; ++i) graph_.add_node(node);
    const topology::LinkId link =
        graph_.add_link({topology::LinkKind::OnDie, "l", topology::NodeId{0}, topology::NodeId{1},
                         base::Rate(base::kFemtosPerSecond), base::Time(0)});
    group_.members = {0, 1, 2, 3};
    group_.rings = {{{0, 1, 2, 3}, {4, {link}}, {0, 1, 2, 3}}};
    group_.pairs.hops = {{base::Time(0), base::Rate(base::kFemtosPerSecond)}};
    group_.pairs.entries = {{1, base::Rate(base::kFemtosPerSecond)}};
  }
  // How long after the start of the late member 0 each member ends at least.
  std::vector<std::int64_t> after(CollectiveKind kind, std::int64_t in, std::int64_t out,
                                  Way way = Way::Ring) {
    std::vector<std::int64_t> ends;
    for (std::int64_t p = 0; p < 4; ++p) {
      CollectiveShape s = shape(4, way);
      s.ring_place = p;
      const CollectiveProgram program = collective_program(collective(kind, in, out), s);
      const base::Time end = least_end(program, group_, graph_, chip_, base::Rate(INT64_MAX),
                                       {kLate, base::Time(0), base::Time(0), base::Time(0)}, p);
      ends.push_back((end - kLate).count());
    }
    return ends;
  }
  const base::Time kLate{base::kFemtosPerSecond};
  config::ChipSpec chip_;
  topology::Graph graph_;
  GroupPlan group_;
};

TEST_F(LateMember, ARingDelaysTheNextOnesByTheirDistance) {
  // Start 6, d hops of 1, each 4 until it counts. What the late one waits for is there; it sends
  // all its messages in a burst.
  const std::vector<std::int64_t> expected = {6, 6 + 1 + 4, 6 + 2 + 8, 6 + 3 + 12};
  EXPECT_EQ(after(CollectiveKind::AllGather, 1, 4), expected);
  EXPECT_EQ(after(CollectiveKind::ReduceScatter, 4, 1), expected);
}

TEST_F(LateMember, AnAllReduceComesBackToIt) {
  // Six messages: those that started at the late one come by again after four.
  EXPECT_EQ(after(CollectiveKind::AllReduce, 4, 4),
            (std::vector<std::int64_t>{6 + 4 * 5, 6 + 5 * 5, 6 + 6 * 5, 6 + 3 * 5}));
}

TEST_F(LateMember, ARootDelaysAllAndNobodyDelaysTheRoot) {
  // Chunks of ceil(8 / 8) = 1 byte.
  EXPECT_EQ(after(CollectiveKind::Broadcast, 8, 8),
            (std::vector<std::int64_t>{6, 6 + 1 + 4, 6 + 2 + 10 + 4, 6 + 3 + 20 + 4}));
}

TEST_F(LateMember, AMeshIsOneMessageAway) {
  EXPECT_EQ(after(CollectiveKind::AllGather, 1, 4, Way::Mesh),
            (std::vector<std::int64_t>{6, 11, 11, 11}));
  // Two steps: everyone's second message waits for the late one.
  EXPECT_EQ(after(CollectiveKind::AllReduce, 4, 4, Way::Mesh),
            (std::vector<std::int64_t>{22, 22, 22, 22}));
}

}  // namespace
}  // namespace trn3sim::compile
