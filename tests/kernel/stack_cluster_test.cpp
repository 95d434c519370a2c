// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/stack_cluster.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "trn3sim/base/error.hpp"

#include "support/kernel_test.hpp"
#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"

namespace trn3sim::modules {
namespace {

using models::Instruction;
using test::Engine;
using test::KernelTest;
using test::Opcode;
using test::TileBuilder;

class StackClusterTest : public KernelTest {
 protected:
  // Runs `program` and returns what the cluster measured.
  ClusterRun run(StackCluster& cluster, const models::TileProgram& program,
                 base::Rate served_cap = base::Rate(0)) {
    context.restart();
    bool called = false;
    cluster.load(program, served_cap);
    cluster.arm([&] {
      called = true;
      done_at = context.now();
    });
    sc_core::sc_start();
    EXPECT_EQ(called, cluster.finished());
    return cluster.result();
  }

  config::ChipSpec chip = test::test_chip();
  base::Time done_at;
};

TEST_F(StackClusterTest, OneLoadAndMultiplyTakeTheirCyclesPlusFill) {
  StackCluster cluster("cluster", chip, context);
  TileBuilder t;
  t.add(Engine::Tensor, test::load_stationary(128, 128));
  t.add(Engine::Tensor, test::multiply(128, 128, 512));
  const ClusterRun r = run(cluster, t.program());
  // 128 columns load in 128 / 4 = 32 cycles with nothing to hide behind, then 512 columns stream,
  // and the last result is in PSUM 320 cycles later: 864 cycles of 2.4 GHz = 360 ns exactly.
  EXPECT_EQ(r.duration, base::nanoseconds(360));
  EXPECT_EQ(done_at, r.duration) << "done is called at the end, not earlier or later";
  EXPECT_EQ(r.first_compute, base::Time(0));
  EXPECT_EQ(r.last_compute, base::cycles_time(32 + 512 + 9, chip.tensor.clock));
  // Only the MultiplyMoving occupies the array, 9 cycles longer than its columns.
  EXPECT_EQ(r.engine_busy[0], base::cycles_time(521, chip.tensor.clock));
  EXPECT_EQ(r.compute_active,
            base::cycles_time(553, chip.tensor.clock) - base::cycles_time(32, chip.tensor.clock));
  EXPECT_EQ(r.instructions, 2);
}

TEST_F(StackClusterTest, BackToBackMultipliesReachThePeak) {
  StackCluster cluster("cluster", chip, context);
  TileBuilder t;
  t.loop(Engine::Tensor, 1000, [&] {
    t.add(Engine::Tensor, test::load_stationary(128, 128));
    t.add(Engine::Tensor, test::multiply(128, 128, 512));
  });
  const ClusterRun r = run(cluster, t.program());
  // Ideal: 1000 x 512 cycles. The loads hide; the first load, 9 cycles between multiplies and the
  // fill after the last column are exposed.
  EXPECT_EQ(r.duration, base::cycles_time(32 + 1000 * 521 - 9 + 320, chip.tensor.clock));
  EXPECT_GE(base::to_seconds(base::cycles_time(512'000, chip.tensor.clock)),
            0.97 * base::to_seconds(r.duration));
}

// DMA fills one of `buffers` tiles while TensorE works on another.
models::TileProgram tile_loop(std::int32_t tiles, std::uint32_t buffers, int multiplies) {
  TileBuilder t;
  const auto full = t.semaphore(0), free = t.semaphore(buffers);
  const std::int32_t tile = t.transfer(test::load(t.operand(std::int64_t{1} << 30), 128, 4096));
  t.program().transfers[std::size_t(tile)].signals[0] = {full, 1};
  t.loop(Engine::Sync, tiles, [&] { t.dma(Engine::Sync, tile, {free, 1}); });
  t.loop(Engine::Tensor, tiles, [&] {
    Instruction first = test::load_stationary(128, 128);
    first.waits[0] = {full, 1};
    t.add(Engine::Tensor, first);
    for (int m = 0; m < multiplies; ++m) {
      Instruction mm = test::multiply(128, 128, 512);
      if (m + 1 == multiplies) mm.signals[0] = {free, 1};
      t.add(Engine::Tensor, mm);
    }
  });
  return t.program();
}

TEST_F(StackClusterTest, DoubleBufferingOverlapsDmaAndCompute) {
  StackCluster cluster("cluster", chip, context);
  constexpr std::int32_t kTiles = 50;
  constexpr int kMultiplies = 20;  // 20 x 521 cycles = 4342 ns per tile
  const models::TileProgram one = tile_loop(kTiles, 1, kMultiplies);
  const models::TileProgram two = tile_loop(kTiles, 2, kMultiplies);
  const base::Time single = run(cluster, one).duration, twice = run(cluster, two).duration;
  const base::Time compute =
      base::cycles_time(std::int64_t{kTiles} * kMultiplies * 521, chip.tensor.clock);
  // A tile of 512 KiB takes 16 engines at 33 GB/s 993 ns, plus 1300 ns to start, 50 ns to complete
  // and 250 ns until TensorE starts: about 2.6 us, less than the compute of a tile. With one buffer
  // the two alternate; with two buffers only the first load is exposed.
  EXPECT_GT(single, compute + base::nanoseconds(kTiles * 2500));
  EXPECT_LT(twice, compute + base::nanoseconds(2 * 2700));
  EXPECT_GT(twice, compute + base::nanoseconds(2500));
}

// One core reads `transfers` x 128 rows over `queues` queues with all of them in flight at once.
models::TileProgram stream_rows(std::int32_t row_bytes, std::int32_t transfers, int queues) {
  TileBuilder t;
  const std::int32_t operand = t.operand(std::int64_t{1} << 30);
  for (int q = 0; q < queues; ++q)
    t.transfer(test::load(operand, 128, row_bytes, static_cast<std::int16_t>(q)));
  t.loop(Engine::Sync, transfers / queues, [&] {
    for (int q = 0; q < queues; ++q) t.dma(Engine::Sync, q);
  });
  return t.program();
}

double gigabytes_per_second(const ClusterRun& r) {
  return static_cast<double>(r.hbm_read_bytes + r.hbm_write_bytes) /
         (base::to_seconds(r.duration) * 1e9);
}

TEST_F(StackClusterTest, DmaRateRisesWithTheRowToThePlateau) {
  StackCluster cluster("cluster", chip, context);
  double before = 0;
  for (std::int32_t row = 64; row <= 16384; row *= 2) {
    const double rate = gigabytes_per_second(run(cluster, stream_rows(row, 256, 4)));
    EXPECT_GT(rate, before) << row << " byte rows";
    before = rate;
    // 16 engines x 33 GB/s = 528 GB/s.
    if (row >= 4096) {
      EXPECT_GE(rate, 0.95 * 528) << row << " byte rows";
    }
    if (row <= 256) {
      EXPECT_LE(rate, 0.5 * 528) << row << " byte rows";
    }
  }
}

TEST_F(StackClusterTest, OneQueueFollowsTheDocumentedRowSizeCurve) {
  StackCluster cluster("cluster", chip, context);
  // Fit of the published curve: a [128 x row] transfer in one queue takes
  // max(860 ns, bytes per engine / 33 + 50 ns); 8 rows per engine.
  for (std::int32_t row : {512, 1024, 2048, 4096, 8192, 32768}) {
    const double ns = std::max(860.0, 8.0 * row / 33 + 50);
    const double expected = 128.0 * row / ns;
    const double rate = gigabytes_per_second(run(cluster, stream_rows(row, 256, 1)));
    EXPECT_NEAR(rate, expected, 0.03 * expected) << row << " byte rows";
    RecordProperty(std::to_string(row), std::to_string(rate) + " " + std::to_string(expected));
  }
}

TEST_F(StackClusterTest, ServedCapSlowsACopyToBytesOverRate) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram copy = stream_rows(4096, 256, 4);
  const base::Rate cap(100'000'000'000);
  const ClusterRun r = run(cluster, copy, cap);
  // Triggers and starts take 10 cycles of the first DMA instruction (8.3 ns) and 1300 ns; then
  // every byte passes at the cap; the semaphore write of the last packet takes 50 ns.
  const base::Time start = base::cycles_time(10, chip.scalar.clock) + base::nanoseconds(1300);
  const base::Time bytes = base::transfer_time(base::Bytes(256 * 128 * 4096), cap);
  const base::Time tail = r.duration - (start + bytes + base::nanoseconds(50));
  // What is left is the latency of the last memory access: well under a microsecond in 1.3 ms.
  EXPECT_GE(tail, base::Time(0));
  EXPECT_LT(tail, base::nanoseconds(500));
}

// The same tile loop on both cores of the stack.
models::TileProgram on_cores(const models::TileProgram& one, std::size_t cores) {
  models::TileProgram p = one;
  p.cores.assign(cores, one.cores.front());
  return p;
}

TEST_F(StackClusterTest, TwoCoresShareTheStack) {
  config::ChipSpec slow = chip;
  slow.hbm.bandwidth = base::Rate(chip.hbm.bandwidth.count() / 4);  // 307 GB/s per stack
  StackCluster cluster("cluster", slow, context);
  const models::TileProgram one = stream_rows(4096, 512, 4);
  const ClusterRun alone = run(cluster, one);
  const ClusterRun both = run(cluster, on_cores(one, 2));
  // One core could take 528 GB/s, so the stack binds already: twice the bytes take twice the time.
  EXPECT_EQ(both.hbm_read_bytes, 2 * alone.hbm_read_bytes);
  EXPECT_NEAR(base::to_seconds(both.duration) / base::to_seconds(alone.duration), 2.0, 0.1);
  EXPECT_LT(gigabytes_per_second(both), 307.2);
}

TEST_F(StackClusterTest, ConstructionAndRunOrderDoNotMatter) {
  StackCluster forward("forward", chip, context);
  StackCluster reverse("reverse", chip, context, true);
  const models::TileProgram a = on_cores(tile_loop(20, 2, 3), 2);
  const models::TileProgram b = on_cores(stream_rows(1024, 64, 2), 2);
  const ClusterRun fa = run(forward, a), fb = run(forward, b);
  const ClusterRun rb = run(reverse, b), ra = run(reverse, a);
  for (const auto& [x, y] : {std::pair{fa, ra}, std::pair{fb, rb}}) {
    EXPECT_EQ(x.duration, y.duration);
    EXPECT_EQ(x.first_compute, y.first_compute);
    EXPECT_EQ(x.compute_active, y.compute_active);
    EXPECT_EQ(x.engine_busy, y.engine_busy);
    EXPECT_EQ(x.dma_busy, y.dma_busy);
    EXPECT_EQ(x.hbm_activates, y.hbm_activates);
  }
  EXPECT_NE(fa.duration, fb.duration);
}

TEST_F(StackClusterTest, ProgramWithoutInstructionsEndsAtOnce) {
  StackCluster cluster("cluster", chip, context);
  EXPECT_EQ(run(cluster, TileBuilder().program()).duration, base::Time(0));
}

TEST_F(StackClusterTest, ProgramMustFitTheCore) {
  StackCluster cluster("cluster", chip, context);
  TileBuilder t;
  t.program().sbuf_bytes_per_partition = chip.sbuf.usable_per_partition.count();
  t.program().psum_banks = chip.psum.banks;
  EXPECT_NO_THROW(cluster.load(t.program(), base::Rate(0)));
  ++t.program().psum_banks;
  EXPECT_THROW(cluster.load(t.program(), base::Rate(0)), base::InternalError);
  --t.program().psum_banks;
  ++t.program().sbuf_bytes_per_partition;
  EXPECT_THROW(cluster.load(t.program(), base::Rate(0)), base::InternalError);
  TileBuilder three(3);
  EXPECT_THROW(cluster.load(three.program(), base::Rate(0)), base::InternalError)
      << "a stack has two cores";
}

// VectorE works 100 cycles per item and ScalarE 200; `tokens` items are under way.
models::TileProgram two_engines(std::int32_t items, std::uint32_t tokens) {
  TileBuilder t;
  const auto full = t.semaphore(0), free = t.semaphore(tokens);
  Instruction first = test::lane(Opcode::Select, 100);
  first.waits[0] = {free, 1};
  first.signals[0] = {full, 1};
  Instruction second = test::lane(Opcode::Activation, 200);
  second.waits[0] = {full, 1};
  second.signals[0] = {free, 1};
  t.loop(Engine::Vector, items, [&] { t.add(Engine::Vector, first); });
  t.loop(Engine::Scalar, items, [&] { t.add(Engine::Scalar, second); });
  return t.program();
}

TEST_F(StackClusterTest, ComputeActiveIsTheUnionOverManyIntervals) {
  StackCluster cluster("cluster", chip, context);
  constexpr std::int32_t kItems = 30'000;  // more than the intervals that are kept at once
  const auto cycles = [&](std::int64_t n) { return base::cycles_time(n, chip.vector.clock); };
  const double rounding = 2.0 * kItems;  // at most a femtosecond at each end of an interval
  // One item at a time: nothing overlaps.
  const ClusterRun one = run(cluster, two_engines(kItems, 1));
  EXPECT_NEAR(static_cast<double>(one.compute_active.count()),
              static_cast<double>(cycles(std::int64_t{kItems} * 300).count()), rounding);
  // Two at a time: the engines overlap. Item by item, in cycles: VectorE waits for the token of the
  // item two before, ScalarE for VectorE, both 64 cycles after the signal.
  const ClusterRun two = run(cluster, two_engines(kItems, 2));
  std::int64_t vector_end = 0, scalar_end = 0, scalar_end_before = 0, covered = 0, active = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> busy;
  for (std::int32_t i = 0; i < kItems; ++i) {
    const std::int64_t free = i < 2 ? 0 : scalar_end_before + 64;
    const std::int64_t vector_start = std::max(vector_end, free);
    vector_end = vector_start + 100;
    const std::int64_t scalar_start = std::max(scalar_end, vector_end + 64);
    scalar_end_before = scalar_end;
    scalar_end = scalar_start + 200;
    busy.emplace_back(vector_start, vector_end);
    busy.emplace_back(scalar_start, scalar_end);
  }
  std::sort(busy.begin(), busy.end());
  for (const auto& [start, end] : busy) {
    active += std::max<std::int64_t>(0, end - std::max(start, covered));
    covered = std::max(covered, end);
  }
  EXPECT_NEAR(static_cast<double>(two.compute_active.count()),
              static_cast<double>(cycles(active).count()), 2 * rounding);
}

TEST_F(StackClusterTest, TimesCountFromTheStartOfTheProgram) {
  StackCluster cluster("cluster", chip, context);
  const models::TileProgram program = tile_loop(5, 2, 3);
  const ClusterRun first = run(cluster, program);
  // Again in the same epoch, at an odd time: nothing may change.
  sc_core::sc_start(to_sc(base::Time(123'457)));
  const base::Time start = context.now();
  ASSERT_GT(start, first.duration);
  cluster.load(program, base::Rate(0));
  cluster.arm([&] { done_at = context.now(); });
  sc_core::sc_start();
  EXPECT_EQ(cluster.result().duration, first.duration);
  EXPECT_EQ(cluster.result().first_compute, first.first_compute);
  EXPECT_EQ(done_at, start + first.duration);
}

TEST_F(StackClusterTest, SemaphoreLatencies) {
  StackCluster cluster("cluster", chip, context);
  // ScalarE works 512 cycles, then VectorE starts 64 of its cycles later and works 512 cycles.
  TileBuilder engines;
  const auto s = engines.semaphore();
  Instruction first = test::lane(Opcode::Activation, 512);
  first.signals[0] = {s, 1};
  Instruction second = test::lane(Opcode::Select, 512);
  second.waits[0] = {s, 1};
  engines.add(Engine::Scalar, first);
  engines.add(Engine::Vector, second);
  EXPECT_EQ(run(cluster, engines.program()).duration,
            base::cycles_time(512 + 64 + 512, chip.vector.clock));
  // After a DMA transfer, the edge at or after 250 ns.
  TileBuilder dma;
  const auto d = dma.semaphore();
  dma.transfer(test::load(dma.operand(1 << 20), 128, 512));
  dma.program().transfers[0].signals[0] = {d, 1};
  dma.dma(Engine::Sync, 0);
  second.waits[0] = {d, 1};
  dma.add(Engine::Vector, second);
  const ClusterRun with = run(cluster, dma.program());
  dma.program().cores[0].streams[1].clear();
  const base::Time complete = run(cluster, dma.program()).duration;
  EXPECT_GE(with.first_compute, complete + base::nanoseconds(250));
  EXPECT_LT(with.first_compute,
            complete + base::nanoseconds(250) + base::cycles_time(1, chip.vector.clock));
}

TEST_F(StackClusterTest, DeadlockSaysWhoWaitsForWhat) {
  StackCluster cluster("cluster", chip, context);
  TileBuilder t;
  const auto full = t.semaphore(1), free = t.semaphore(0);
  Instruction mm = test::multiply(128, 128, 512);
  mm.waits[0] = {full, 2};
  mm.signals[0] = {free, 1};
  t.add(Engine::Tensor, mm);
  Instruction copy = test::lane(Opcode::TensorCopy, 512);
  copy.waits[0] = {free, 1};
  copy.signals[0] = {full, 1};
  t.add(Engine::Vector, copy);
  cluster.load(t.program(), base::Rate(0));
  cluster.arm([] { ADD_FAILURE() << "a deadlock does not end"; });
  sc_core::sc_start();
  EXPECT_FALSE(cluster.finished());
  EXPECT_EQ(cluster.waiting(),
            "core 0 tensor: multiply_moving (node 0) waits for 2 of semaphore 0 (has 1, signalled "
            "by the vector engine)\n"
            "core 0 vector: tensor_copy (node 0) waits for 1 of semaphore 1 (has 0, signalled by "
            "the tensor engine)\n");
  EXPECT_THROW((void)cluster.result(), base::InternalError);
}

}  // namespace
}  // namespace trn3sim::modules
