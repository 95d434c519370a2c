// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Meshes and several rings at once on small fabrics, against times worked out by hand.
#include <filesystem>
#include <fstream>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/share_weights.hpp"
#include "trn3sim/sim/simulation.hpp"

#include "support/kernel_test.hpp"
#include <fmt/format.h>

namespace trn3sim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class CollectiveTest : public test::KernelTest {
 protected:
  // One collective on `chips` chips, a rank each.
  stats::Results run(const std::string& fabric, int chips, const std::string& kind, std::int64_t in,
                     std::int64_t out, const std::vector<std::string>& sets = {},
                     const std::string& unit = "chip") {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                         ("trn3sim_machine_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "s.json") << fmt::format(
        R"({{"kind":"system","name":"s","chip":"{}/configs/chips/trn3.json","fabric":{}}})",
        TRN3SIM_SOURCE_DIR, fabric);
    std::ofstream(folder / "t.trace")
        << fmt::format(
               R"({{"trace":"trn3sim","v":1,"name":"t","rank_unit":"{}","mesh":[["g",{}]],)", unit,
               chips)
        << R"("defaults":{"dtype":"bf16"},"tokens_per_step":1,"memory":[]})"
        << "\n"
        << fmt::format(R"({{"op":"coll","id":"c","kind":"{}","group":"g","in":{},"out":{}}})", kind,
                       in, out)
        << "\n";
    spec = config::load_run((folder / "s.json").string(), sets);
    const topology::Graph graph = topology::build(spec.system);
    const trace::Program program = trace::read(folder / "t.trace");
    std::filesystem::remove_all(folder);
    const compile::Plan plan = compile::place(program, graph, spec);
    sim::Simulation machine(spec, graph, program, plan);
    stats::Results r = machine.run();
    for (const stats::CheckResult& c : r.checks) EXPECT_TRUE(c.passed) << c.name << c.detail;
    EXPECT_EQ(r.bytes_sent, r.bytes_received);
    return r;
  }

  [[nodiscard]] base::Time start() const {
    return spec.system.chip.collectives.start_overhead + spec.system.chip.dma.start_latency;
  }
  [[nodiscard]] base::Time end() const { return spec.system.chip.dma.completion; }
  [[nodiscard]] base::Time between() const {
    return spec.system.chip.dma.completion + spec.system.chip.dma.start_latency +
           spec.system.chip.collectives.step_overhead;
  }
  // Data rate of a flow that touches HBM so often per byte: what the stack and its DMA engines move
  // of such a mix of reads and writes.
  [[nodiscard]] base::Rate stack_rate(std::int64_t touches) const {
    const config::ChipSpec& chip = spec.system.chip;
    const base::Rate dma(chip.dma.plateau_rate.count() * chip.dma.engines *
                         chip.cores_per_stack());
    const base::Rate capacity = std::min(models::streaming_rate(chip.hbm, chip.stacks), dma);
    const std::int64_t weight = models::ShareWeights(chip, capacity).of_flow(touches).stack;
    return base::Rate(capacity.count() * models::kUnitWeight / weight / touches);
  }
  // A message's time at the port of its sender, who has `routes` links to feed.
  [[nodiscard]] base::Time turn(std::int64_t bytes, std::int64_t routes,
                                std::int64_t touches = 2) const {
    return base::transfer_time(base::Bytes(bytes),
                               std::min({spec.system.chip.on_chip.port_link, stack_rate(touches),
                                         base::Rate(spec.system.fabric.link.bandwidth * routes)}));
  }
  [[nodiscard]] base::Time port(std::int64_t bytes) const {
    return base::transfer_time(base::Bytes(bytes), spec.system.chip.on_chip.port_link);
  }
  // Stack to hub, over the link, hub to stack; the link is the slowest.
  [[nodiscard]] base::Time hop(std::int64_t bytes) const {
    return 2 * spec.system.chip.on_chip.port_latency + spec.system.fabric.link.latency +
           base::transfer_time(base::Bytes(bytes), spec.system.fabric.link.bandwidth);
  }
  config::RunSpec spec;
};

std::string fabric(const std::string& type, const std::string& size) {
  return fmt::format(R"({{"type":"{}",{},"link":{{"bandwidth":"100 GB/s","latency":"500 ns"}}}})",
                     type, size);
}
const std::string kFull4 = fabric("fully_connected", "\"chips\":4");
const std::vector<std::string> kMesh = {"collectives.algorithm=mesh"};

// The messages of a member leave its port one after another, each over a link of its own; the last
// one to arrive left two messages late.
TEST_F(CollectiveTest, AMeshAllGatherIsOneHopAndTheTurnsAtThePort) {
  const auto r = run(kFull4, 4, "all_gather", kMiB, 4 * kMiB, kMesh);
  EXPECT_EQ(r.step_fs, (start() + hop(kMiB) + 2 * turn(kMiB, 3) + end()).count());
  EXPECT_EQ(r.bytes_sent, 4 * 3 * kMiB);
  EXPECT_EQ(r.hbm_read_bytes, r.bytes_sent);
  EXPECT_EQ(r.hbm_write_bytes, r.bytes_sent);
  EXPECT_EQ(r.collectives.at(0).algorithm, "mesh, asked for");
  EXPECT_EQ(r.bounds.critical_path_fs,
            (start() +
             std::max(hop(kMiB), hop(kMiB) -
                                     base::transfer_time(base::Bytes(kMiB),
                                                         spec.system.fabric.link.bandwidth) +
                                     3 * port(kMiB)) +
             end())
                .count());
}

TEST_F(CollectiveTest, AMeshReduceScatterReadsItsOperandsToo) {
  const auto r = run(kFull4, 4, "reduce_scatter", 4 * kMiB, kMiB, kMesh);
  EXPECT_EQ(r.step_fs, (start() + hop(kMiB) + 2 * turn(kMiB, 3, 3) + end()).count());
  EXPECT_EQ(r.hbm_read_bytes, 2 * r.bytes_sent);
}

TEST_F(CollectiveTest, AMeshAllToAllSendsEachItsPart) {
  const auto r = run(kFull4, 4, "all_to_all", 4 * kMiB, 4 * kMiB, kMesh);
  EXPECT_EQ(r.step_fs, (start() + hop(kMiB) + 2 * turn(kMiB, 3) + end()).count());
  EXPECT_EQ(r.bytes_sent, 4 * 3 * kMiB);
}

TEST_F(CollectiveTest, AMeshAllReduceIsTwoSuchSteps) {
  const auto r = run(kFull4, 4, "all_reduce", 256 * kMiB, 256 * kMiB, kMesh);
  // A byte costs three accesses of HBM while reducing and two after it; what the stack and
  // the links grant to the first step is 3/2 of that for the second one.
  const std::int64_t links = 3 * spec.system.fabric.link.bandwidth.count();
  const base::Rate second(std::min(stack_rate(3).count(), links) * 3 / 2);
  EXPECT_NEAR(static_cast<double>(r.step_fs),
              static_cast<double>((start() + hop(64 * kMiB) + 2 * turn(64 * kMiB, 3, 3) +
                                   between() + hop(64 * kMiB) +
                                   2 * base::transfer_time(base::Bytes(64 * kMiB), second) + end())
                                      .count()),
              1e3);
  EXPECT_EQ(r.bytes_sent, 4 * 2 * 3 * 64 * kMiB);
}

TEST_F(CollectiveTest, ASmallAllReduceTakesOneStep) {
  const auto r = run(kFull4, 4, "all_reduce", 4, 4);
  EXPECT_EQ(r.collectives.at(0).algorithm, "one-step mesh, up to mesh_limit");
  EXPECT_EQ(r.step_fs, (start() + hop(4) + 2 * turn(4, 3, 3) + end()).count());
  EXPECT_EQ(r.bytes_sent, 4 * 3 * 4);
  EXPECT_EQ(r.hbm_read_bytes, 2 * r.bytes_sent);
}

TEST_F(CollectiveTest, AMeshOfTwo) {
  const auto r = run(fabric("ring", "\"chips\":2"), 2, "all_gather", kMiB, 2 * kMiB, kMesh);
  EXPECT_EQ(r.step_fs, (start() + hop(kMiB) + end()).count());
}

TEST_F(CollectiveTest, AMeshOfThree) {
  const auto r = run(fabric("ring", "\"chips\":3"), 3, "all_gather", kMiB, 3 * kMiB, kMesh);
  EXPECT_EQ(r.step_fs, (start() + hop(kMiB) + turn(kMiB, 2) + end()).count());
}

// Both halves leave by one port, so the second one follows the first by its time there.
TEST_F(CollectiveTest, TwoRingsTakeHalfTheDataEach) {
  const auto r = run(fabric("ring", "\"chips\":4"), 4, "all_gather", 64 * kMiB, 256 * kMiB);
  EXPECT_EQ(r.collectives.at(0).algorithm, "2 rings, above mesh_limit");
  EXPECT_EQ(r.step_fs,
            (start() + 3 * hop(32 * kMiB) + 2 * between() + turn(32 * kMiB, 2) + end()).count());
  EXPECT_EQ(r.bytes_sent, 4 * 3 * 64 * kMiB);
  EXPECT_EQ(r.bounds.critical_path_fs,
            (start() + 3 * hop(32 * kMiB) + 2 * between() + end()).count());
}

TEST_F(CollectiveTest, FourRingsOnATorus) {
  const auto r = run(fabric("torus", "\"dims\":[4,4]"), 16, "all_gather", 64 * kMiB, 1024 * kMiB);
  EXPECT_EQ(r.collectives.at(0).algorithm, "4 rings, above mesh_limit");
  EXPECT_EQ(
      r.step_fs,
      (start() + 15 * hop(16 * kMiB) + 14 * between() + 3 * turn(16 * kMiB, 4) + end()).count());
  EXPECT_EQ(r.bytes_sent, 16 * 15 * 64 * kMiB);
}

// Three accesses of HBM for each byte of four links are more than the DMA engines of a stack move,
// so the four messages of a step take turns at a third of their rate, one step after another.
TEST_F(CollectiveTest, FourRingsThatReduceWaitForTheirStack) {
  const auto r =
      run(fabric("torus", "\"dims\":[4,4]"), 16, "reduce_scatter", 1024 * kMiB, 64 * kMiB);
  const base::Time turn = base::transfer_time(base::Bytes(16 * kMiB), stack_rate(3));
  EXPECT_GT(4 * turn, hop(16 * kMiB) + between());
  EXPECT_EQ(r.step_fs, (start() + (14 * 4 + 3) * turn + hop(16 * kMiB) + end()).count());
}

// The stacks of a chip are a ring. The two opposite ones of each pair go around in different ways,
// so every link carries two messages; the last one leaves behind another and passes two links.
TEST_F(CollectiveTest, AMeshOfStacksUsesAllLinksEqually) {
  constexpr std::int64_t kBytes = 128 * 1024;
  const auto r =
      run(R"({"type":"none"})", 4, "all_gather", kBytes, 4 * kBytes,
          {"chip.on_chip.die_crossing_bandwidth=1.0", "chip.on_chip.die_crossing_latency=0ns"},
          "logical_core");
  EXPECT_EQ(r.collectives.at(0).algorithm, "mesh, up to mesh_limit");
  const auto& links = spec.system.chip.on_chip;
  EXPECT_EQ(r.step_fs, (start() + 2 * base::transfer_time(base::Bytes(kBytes), links.stack_link) +
                        2 * links.stack_latency + end())
                           .count());
  for (const stats::LinkResult& link : r.links) EXPECT_EQ(link.bytes, 2 * kBytes) << link.name;
  EXPECT_EQ(r.links.size(), 8U);
}

// Members on one stack copy through its memory, whose DMA engines each of the two flows shares:
// three accesses of every byte. That is as much as the stack moves, where one write of three costs
// turnarounds: up to a third more.
TEST_F(CollectiveTest, TwoCoresOfAStackExchangeThroughItsMemory) {
  const auto r = run(R"({"type":"none"})", 2, "all_reduce", 65536, 65536, {}, "core");
  EXPECT_EQ(r.collectives.at(0).algorithm.rfind("one-step mesh", 0), 0U);
  const config::ChipSpec& chip = spec.system.chip;
  const base::Rate dma(chip.dma.plateau_rate.count() * chip.dma.engines / 3);
  const base::Time copy = base::transfer_time(base::Bytes(65536), dma);
  EXPECT_GT(r.step_fs, (start() + copy + end()).count());
  EXPECT_LT(3 * r.step_fs, (3 * start() + 4 * copy + 3 * end()).count());
}

}  // namespace
}  // namespace trn3sim
