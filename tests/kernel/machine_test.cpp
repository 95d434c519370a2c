// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives on the machine against closed forms.
#include <cstdio>
#include <fstream>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/sim/simulation.hpp"

#include "support/kernel_test.hpp"

namespace trn3sim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class MachineTest : public test::KernelTest {
 protected:
  // Runs a trace of the given op lines on one chip, four logical cores.
  stats::Results run(const std::string& ops, const std::vector<std::string>& sets = {},
                     const std::string& config = "chip1.json", int ranks = 4) {
    const std::string path =
        ::testing::TempDir() + "/machine_test_" + std::to_string(getpid()) + ".trace";
    std::ofstream(path)
        << R"({"trace":"trn3sim","v":1,"name":"t","rank_unit":"logical_core","mesh":[["tp",)"
        << ranks << R"(]],"defaults":{"dtype":"bf16"},"tokens_per_step":1,"memory":[]})"
        << "\n"
        << ops;
    spec = config::load_run(std::string(TRN3SIM_SOURCE_DIR) + "/configs/" + config, sets);
    const topology::Graph graph = topology::build(spec.system);
    const trace::Program program = compile::rewrite(trace::read(path), spec.compile);
    std::remove(path.c_str());
    const compile::Plan plan = compile::place(program, graph, spec);
    sim::Simulation machine(spec, graph, program, plan);
    return machine.run();
  }
  // Ring of the four stacks: every step waits for the slowest hop, which crosses the dies.
  [[nodiscard]] std::int64_t ring(std::int64_t steps, std::int64_t bytes) const {
    const config::ChipSpec& c = spec.system.chip;
    const auto crossing = static_cast<std::int64_t>(
        static_cast<double>(c.on_chip.stack_link.count()) * c.on_chip.die_crossing_bandwidth);
    const base::Time hop = base::transfer_time(base::Bytes(bytes), base::Rate(crossing)) +
                           c.on_chip.stack_latency + c.on_chip.die_crossing_latency;
    const base::Time start = c.collectives.start_overhead + c.dma.start_latency;
    const base::Time between = c.dma.completion + c.dma.start_latency + c.collectives.step_overhead;
    return (start + hop * steps + between * (steps - 1) + c.dma.completion).count();
  }
  config::RunSpec spec;
};

TEST_F(MachineTest, RingAllReduceTakesItsSteps) {
  const auto r =
      run(R"({"op":"coll","id":"c","kind":"all_reduce","group":"tp","in":67108864,"out":67108864})"
          "\n");
  // A chunk that starts behind a die crossing sees 2 crossings in 4 hops; the steps of a ring are
  // not in lockstep, so the slowest chain has the fast hops in between: at most 2(n-1) slow hops.
  EXPECT_LE(r.step_fs, ring(6, 16 * kMiB));
  EXPECT_GE(r.step_fs, ring(6, 16 * kMiB) * 90 / 100);
  EXPECT_EQ(r.bytes_sent, 4 * 6 * 16 * kMiB);
  EXPECT_EQ(r.bytes_sent, r.bytes_received);
}

TEST_F(MachineTest, EqualLinksGiveTheClosedFormExactly) {
  const auto r =
      run(R"({"op":"coll","id":"c","kind":"all_gather","group":"tp","in":8388608,"out":33554432})"
          "\n",
          {"chip.on_chip.die_crossing_bandwidth=1.0", "chip.on_chip.die_crossing_latency=0ns"});
  EXPECT_EQ(r.step_fs, ring(3, 8 * kMiB));
}

TEST_F(MachineTest, ReduceScatterMovesItsShards) {
  const auto r = run(
      R"({"op":"coll","id":"c","kind":"reduce_scatter","group":"tp","in":33554432,"out":8388608})"
      "\n",
      {"chip.on_chip.die_crossing_bandwidth=1.0", "chip.on_chip.die_crossing_latency=0ns"});
  EXPECT_EQ(r.step_fs, ring(3, 8 * kMiB));
  EXPECT_EQ(r.bytes_sent, 4 * 3 * 8 * kMiB);
  // Per message: read by the sender, local operand read and result written by the receiver.
  EXPECT_EQ(r.hbm_read_bytes, 2 * r.bytes_sent);
  EXPECT_EQ(r.hbm_write_bytes, r.bytes_sent);
}

TEST_F(MachineTest, AllToAllAndBroadcastFinish) {
  const auto r = run(
      R"({"op":"coll","id":"a","kind":"all_to_all","group":"tp","in":4194304,"out":4194304})"
      "\n"
      R"({"op":"coll","id":"b","kind":"broadcast","group":"tp","in":4194304,"out":4194304,"deps":["a"]})"
      "\n"
      R"({"op":"coll","id":"c","kind":"barrier","group":"tp","in":0,"out":0,"deps":["b"]})"
      "\n");
  EXPECT_EQ(r.bytes_sent, r.bytes_received);
  // 3 rounds of 1 MiB per rank, 3 hops of 4 MiB down the ring, and 3 semaphores per rank.
  EXPECT_EQ(r.bytes_sent, 4 * 3 * kMiB + 3 * 4 * kMiB + 4 * 3 * 4);
}

TEST_F(MachineTest, ABroadcastAloneObeysItsBounds) {
  const auto r =
      run(R"({"op":"coll","id":"b","kind":"broadcast","group":"tp","in":1000,"out":1000})"
          "\n");
  EXPECT_EQ(r.bytes_sent, 3 * 1000);
  for (const stats::CheckResult& c : r.checks) EXPECT_TRUE(c.passed) << c.name << ": " << c.detail;
}

TEST_F(MachineTest, SendAndReceiveMeet) {
  const auto r =
      run(R"({"op":"send","id":"s","peer":"tp+1","bytes":1048576,"tag":3,"when":{"tp":0}})"
          "\n"
          R"({"op":"recv","id":"r","peer":"tp-1","bytes":1048576,"tag":3,"when":{"tp":1}})"
          "\n");
  EXPECT_EQ(r.bytes_sent, kMiB);
  const config::ChipSpec& c = spec.system.chip;
  EXPECT_EQ(r.step_fs, (base::transfer_time(base::Bytes(kMiB), c.on_chip.stack_link) +
                        c.on_chip.stack_latency + c.dma.start_latency + c.dma.completion)
                           .count());
}

TEST_F(MachineTest, AWaitingCycleIsADeadlockNotAHang) {
  // Rank 1 receives before it sends, and so does rank 0: both wait for ever.
  try {
    run(R"({"op":"recv","id":"r0","peer":"tp+1","bytes":1,"tag":0,"when":{"tp":0}})"
        "\n"
        R"({"op":"recv","id":"r1","peer":"tp-1","bytes":1,"tag":0,"when":{"tp":1}})"
        "\n"
        R"({"op":"send","id":"s0","peer":"tp+1","bytes":1,"tag":0,"when":{"tp":0},"deps":["r0"]})"
        "\n"
        R"({"op":"send","id":"s1","peer":"tp-1","bytes":1,"tag":0,"when":{"tp":1},"deps":["r1"]})"
        "\n");
    FAIL();
  } catch (const base::UserError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("deadlock at 0 ns: rank 0: recv from rank 1 tag 0"), std::string::npos)
        << text;
    EXPECT_NE(text.find("op s1 (line 5) waits for r1"), std::string::npos) << text;
  }
}

TEST_F(MachineTest, DelaysAndHostTransfersAreHostTime) {
  const auto r =
      run(R"({"op":"delay","id":"d","ns":5000})"
          "\n"
          R"({"op":"mem","id":"m","dir":"load","space":"host","bytes":1000000,"deps":["d"]})"
          "\n");
  const auto& host = spec.system.chip.host;
  // Four ranks share the chip's PCIe link: 4 x 1 MB one after another, then the latency.
  const base::Time transfer = base::transfer_time(base::Bytes(1'000'000), host.pcie);
  EXPECT_EQ(r.step_fs, (base::nanoseconds(5000) + 4 * transfer + host.pcie_latency).count());
  EXPECT_GT(r.breakdown.mean_fs[static_cast<std::size_t>(stats::TimeClass::HostInput)],
            r.step_fs / 2);
}

TEST_F(MachineTest, MemoryOperationsTouchHbm) {
  const auto r =
      run(R"({"op":"mem","id":"h","dir":"load","space":"hbm","bytes":8000000})"
          "\n"
          R"({"op":"mem","id":"s","dir":"store","space":"host","bytes":1000000,"deps":["h"]})"
          "\n");
  // A load from HBM and a store to the host read the stack; four ranks.
  EXPECT_EQ(r.hbm_read_bytes, 4 * 9'000'000);
  EXPECT_EQ(r.hbm_write_bytes, 0);
  // Each rank's DMA engines, 2 x 16 x 33 GB/s, then the shared PCIe link.
  const auto& host = spec.system.chip.host;
  const base::Time pcie =
      base::transfer_time(base::Bytes(1'000'000), host.pcie) * 4 + host.pcie_latency;
  const base::Time hbm = base::transfer_time(base::Bytes(8'000'000), base::Rate(1'056'000'000'000));
  EXPECT_EQ(r.step_fs, (hbm + pcie).count());
}

TEST_F(MachineTest, AKernelAloneTakesItsProfile) {
  const auto r = run(R"({"op":"gemm","id":"g","m":1024,"n":1024,"k":1024})"
                     "\n");
  EXPECT_EQ(r.step_fs, r.kernels.at(0).alone_fs);
  EXPECT_EQ(r.kernels.at(0).count, 4);
  EXPECT_DOUBLE_EQ(r.model_flop, 4 * 2.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(r.hardware_flop, r.model_flop);
}

// A product after another one; its right side is of the given role.
std::string two_products(const std::string& role) {
  const std::string shape = R"("op":"gemm","m":1024,"n":1024,"k":1024,"a":"grad","b":")" + role + "\"";
  return "{" + shape + R"(,"id":"g"})" + "\n{" + shape + R"(,"id":"h","deps":["g"]})" + "\n";
}

// The second product finds its first weights loaded: it loses at least the start of a transfer.
TEST_F(MachineTest, PrefetchHidesTheLoadsOfWeights) {
  const auto r = run(two_products("weight"));
  EXPECT_LT(r.step_fs, 2 * r.kernels.at(0).alone_fs - spec.system.chip.dma.start_latency.count());
  EXPECT_GT(r.step_fs, 2 * r.kernels.at(0).alone_fs * 9 / 10);
}

TEST_F(MachineTest, PrefetchWaitsForResults) {
  const auto r = run(two_products("act"));
  EXPECT_EQ(r.step_fs, 2 * r.kernels.at(0).alone_fs);
}

TEST_F(MachineTest, WithoutPrefetchKernelsFollowOneAnother) {
  const auto r = run(two_products("weight"), {"compile.prefetch=false"});
  EXPECT_EQ(r.step_fs, 2 * r.kernels.at(0).alone_fs);
}

// A block is complete when its `out` is; the step when everything is.
TEST_F(MachineTest, AStepEndsWithItsLastOpWhateverBlocksWaitFor) {
  const auto r = run(
      R"({"op":"block","id":"b"})"
      "\n"
      R"({"op":"delay","id":"x","ns":1000})"
      "\n"
      R"({"op":"gemm","id":"g","m":1024,"n":1024,"k":1024})"
      "\n"
      R"({"op":"end","out":["x"]})"
      "\n"
      R"({"op":"call","id":"c","block":"b"})"
      "\n");
  EXPECT_EQ(r.step_fs, r.kernels.at(0).alone_fs);
}

// A transfer starts, then the engines of the rank's two cores move its bytes.
TEST_F(MachineTest, OpaqueBytesTakeTheEnginesOfTheirRank) {
  const auto r = run(R"({"op":"opaque","id":"o","bytes":52800000})"
                     "\n");
  const config::DmaSpec& dma = spec.system.chip.dma;
  EXPECT_EQ(r.step_fs,
            (dma.start_latency + base::transfer_time(base::Bytes(52800000),
                                                     base::Rate(dma.plateau_rate.count() * 32)))
                .count());
}

// Chunks of the all-gather and of the reduce-scatter run beside pieces of the product.
TEST_F(MachineTest, CollectivesOverlapTheirProduct) {
  const auto r = run(
      R"({"op":"coll","id":"a","kind":"all_gather","group":"tp","in":8388608,"out":33554432})"
      "\n"
      R"({"op":"gemm","id":"g","m":4096,"n":4096,"k":4096,"deps":["a"]})"
      "\n"
      R"({"op":"coll","id":"r","kind":"reduce_scatter","group":"tp","in":33554432,"out":8388608,"deps":["g"]})"
      "\n",
      {"compile.overlap_collectives=true"});
  EXPECT_EQ(r.kernels.at(0).count, 4 * 4);
  EXPECT_LT(r.step_fs, (2 * ring(3, 8 * kMiB) + 4 * r.kernels.at(0).alone_fs) * 9 / 10);
  EXPECT_GT(r.step_fs, 4 * r.kernels.at(0).alone_fs);
  EXPECT_EQ(r.bytes_sent, 4 * 2 * 3 * 8 * kMiB);
  for (const stats::CheckResult& c : r.checks) EXPECT_TRUE(c.passed) << c.name << ": " << c.detail;
}

// 3 x 2 bytes x 3 x 2^25 elements are 576 MiB, so the op runs as three pieces of 192 MiB.
TEST_F(MachineTest, PiecesOfALargeOpTakeWhatOneKernelWould) {
  const auto r = run(R"({"op":"vec","id":"v","fn":"add","elems":100663296})"
                     "\n");
  ASSERT_EQ(r.kernels.size(), 1U);
  EXPECT_EQ(r.kernels[0].count, 4 * 3);
  EXPECT_EQ(r.hbm_read_bytes + r.hbm_write_bytes, 4 * 576 * kMiB);
  // The first piece is a whole kernel; the loads of the others overlap their predecessor.
  EXPECT_LT(r.step_fs, 3 * r.kernels[0].alone_fs);
  EXPECT_GT(r.step_fs, 3 * r.kernels[0].alone_fs * 97 / 100);
}

TEST_F(MachineTest, ACollectiveSlowsAMemoryBoundKernelBesideIt) {
  const std::string add = R"({"op":"vec","id":"v","fn":"add","elems":33554432})"
                          "\n";
  const auto r =
      run(add +
          R"({"op":"coll","id":"c","kind":"all_gather","group":"tp","in":16777216,"out":67108864})"
          "\n");
  EXPECT_GT(r.kernels.at(0).total_fs, 4 * r.kernels.at(0).alone_fs);
}

}  // namespace
}  // namespace trn3sim
