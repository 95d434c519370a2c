// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A stack of a detailed chip: programs that start at any time and side by side, weights that load
// ahead, and the traffic of messages.
#include <vector>

#include "trn3sim/modules/detailed_player.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

#include "support/kernel_test.hpp"
#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"

namespace trn3sim::modules {
namespace {

using test::Engine;
using test::TileBuilder;

constexpr std::int64_t kTile = 128 * 4096;

// Loads `tiles` tiles of 512 KiB, one buffer each, and multiplies each `multiplies` times.
models::TileProgram streaming(std::int32_t tiles, int multiplies, bool weight) {
  TileBuilder t;
  const auto full = t.semaphore(0);
  const std::int32_t tile = t.transfer(test::load(t.operand(kTile * tiles), 128, 4096));
  t.program().transfers[std::size_t(tile)].signals[0] = {full, 1};
  t.program().operands[0].weight = weight;
  t.loop(Engine::Sync, tiles, [&] { t.dma(Engine::Sync, tile); });
  t.loop(Engine::Tensor, tiles, [&] {
    models::Instruction first = test::load_stationary(128, 128);
    first.waits[0] = {full, 1};
    t.add(Engine::Tensor, first);
    for (int m = 0; m < multiplies; ++m) t.add(Engine::Tensor, test::multiply(128, 128, 512));
  });
  return t.program();
}

class DetailedStackTest : public test::KernelTest, public TrafficEnd {
 protected:
  void traffic_ended(std::int32_t id) override {
    last_id = id;
    traffic_at = context.now();
  }
  // Calls `action` at `at` when the simulation gets there.
  void run_until(base::Time at) { sc_core::sc_start(to_sc(at - context.now())); }

  config::ChipSpec chip = test::test_chip();
  std::int32_t last_id = -1;
  base::Time traffic_at, ended;
};

TEST_F(DetailedStackTest, AProgramTakesTheSameTimeWheneverItStarts) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram program = streaming(1, 1, false);
  std::vector<base::Time> times;
  for (const std::int64_t start : {0, 12'345, 777'777}) {
    run_until(base::nanoseconds(start));
    const base::Time begin = context.now();
    cluster.start(0, program, [&] { times.push_back(context.now() - begin); });
    run_until(base::nanoseconds(start + 10'000));
  }
  // The stack differs a little from run to run (open rows, refresh), by far less than 100 ns.
  ASSERT_EQ(times.size(), 3U);
  EXPECT_GT(times[0], base::nanoseconds(1300 + 950));
  for (const base::Time t : times) {
    EXPECT_GT(t, times[0] - base::nanoseconds(100));
    EXPECT_LT(t, times[0] + base::nanoseconds(100));
  }
}

TEST_F(DetailedStackTest, CoresRunProgramsOfTheirOwn) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram brief = streaming(1, 1, false), longer = streaming(1, 100, false);
  base::Time first, second;
  cluster.start(0, brief, [&] { first = context.now(); });
  run_until(base::nanoseconds(1000));
  cluster.start(1, longer, [&] { second = context.now(); });
  sc_core::sc_start();
  // 99 more multiplies of 512 cycles and 9 between two, and 1 us later; the loads hardly meet.
  const base::Time more = base::cycles_time(99 * 521, chip.tensor.clock) + base::nanoseconds(1000);
  EXPECT_GT(second - first, more - base::nanoseconds(200));
  EXPECT_LT(second - first, more + base::nanoseconds(200));
}

TEST_F(DetailedStackTest, PrefetchHidesTheLoadsOfWeightsOnly) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram busy = streaming(1, 100, false);
  const models::TileProgram weights = streaming(1, 1, true), results = streaming(1, 1, false);
  const auto time_after_busy = [&](const models::TileProgram& next, bool prefetch) {
    base::Time begin;
    cluster.start(0, busy, [&] {
      begin = context.now();
      cluster.start(0, next, [&] { ended = context.now(); });
    });
    if (prefetch) cluster.prefetch(0, next, models::Ahead::Weights);
    sc_core::sc_start();
    return ended - begin;
  };
  const base::Time alone = time_after_busy(weights, false);
  // The load takes 1300 ns to start and 512 KiB over 16 engines of 33 GB/s take 993 ns.
  EXPECT_GT(alone, base::nanoseconds(2200));
  EXPECT_LT(time_after_busy(weights, true), alone - base::nanoseconds(2200));
  EXPECT_GT(time_after_busy(results, true), alone - base::nanoseconds(100));
}

TEST_F(DetailedStackTest, TrafficKeepsItsRate) {
  StackCluster cluster("cluster", chip, context);
  Traffic t;
  t.cores = 2;
  t.bytes = base::Bytes(8 << 20);
  t.rate = base::Rate(128'000'000'000);
  t.after = base::nanoseconds(1000);
  cluster.inject(t, *this, 7);
  sc_core::sc_start();
  EXPECT_EQ(last_id, 7);
  // 8 MiB at 128 GB/s take 65,536 ns, less the interval after the last packet of each engine, and
  // 1000 ns after; a packet takes well under 1 us.
  EXPECT_GT(traffic_at, base::nanoseconds(64'500 + 1000));
  EXPECT_LT(traffic_at, base::nanoseconds(65'536 + 1000 + 500));
}

TEST_F(DetailedStackTest, TrafficIsBoundByTheEngines) {
  StackCluster cluster("cluster", chip, context);
  Traffic t;
  t.bytes = base::Bytes(8 << 20);
  t.rate = base::Rate(1'000'000'000'000);
  t.after = chip.dma.completion;
  cluster.inject(t, *this, 0);
  sc_core::sc_start();
  // One core has 16 engines of 33 GB/s, half of the rate asked for: 15.89 us.
  EXPECT_GT(traffic_at, base::nanoseconds(15'800));
  EXPECT_LT(traffic_at, base::nanoseconds(16'600));
}

TEST_F(DetailedStackTest, TrafficAndAKernelSlowEachOtherDown) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram program = streaming(100, 1, false);
  const auto run = [&](bool traffic) {
    const base::Time begin = context.now();
    cluster.start(0, program, [&] { ended = context.now(); });
    Traffic t;
    t.bytes = base::Bytes(kTile * 100);
    t.rate = base::Rate(1'000'000'000'000);
    if (traffic) cluster.inject(t, *this, 0);
    sc_core::sc_start();
    return base::to_seconds(ended - begin);
  };
  const double alone = run(false);
  // Both have 52 MB to move on 16 engines: each gets every other packet.
  EXPECT_NEAR(run(true) / alone, 2.0, 0.15);
}

class PlayerTest : public DetailedStackTest, public PlayerEnd {
 protected:
  void kernel_ended() override { ended = context.now(); }
};

TEST_F(PlayerTest, OpaqueWorkLastsAsLongAsAlone) {
  StackCluster cluster("cluster", chip, context);
  DetailedPlayer player("player", {&cluster}, 0, 2, context, *this);
  models::KernelProfile profile;
  profile.duration = base::nanoseconds(100'000);
  profile.counts.hbm_read_bytes = 10 << 20;  // 105 GB/s, nothing for 32 engines
  KernelWork work;
  work.profile = &profile;
  player.play(work, base::Time(0));
  sc_core::sc_start();
  EXPECT_EQ(ended, base::nanoseconds(100'000));
}

}  // namespace
}  // namespace trn3sim::modules
