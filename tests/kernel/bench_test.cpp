// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/bench.hpp"

#include "support/kernel_test.hpp"
#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"

namespace trn3sim::sim {
namespace {

using models::Engine;
using models::Instruction;
using models::KernelProfile;
using test::TileBuilder;

class KernelBenchTest : public test::KernelTest {
 protected:
  config::ChipSpec chip = test::test_chip();
};

// Double-buffered tiles of 512 KiB through TensorE and VectorE and back to HBM.
models::TileProgram tiles(std::int32_t trips, int multiplies, bool weight) {
  TileBuilder t;
  const auto full = t.semaphore(0), free = t.semaphore(2), product = t.semaphore(0),
             psum_free = t.semaphore(2), out = t.semaphore(0), out_free = t.semaphore(2);
  const std::int32_t in = t.operand(std::int64_t{1} << 30, weight);
  const std::int32_t result = t.operand(std::int64_t{1} << 30);
  models::DmaTransfer read = test::load(in, 128, 4096), write = test::load(result, 128, 1024, 1);
  read.signals[0] = {full, 1};
  write.direction = models::DmaDirection::SbufToHbm;
  write.signals[0] = {out_free, 1};
  const std::int32_t r = t.transfer(read), w = t.transfer(write);
  t.loop(Engine::Sync, trips, [&] { t.dma(Engine::Sync, r, {free, 1}); });
  t.loop(Engine::Tensor, trips, [&] {
    Instruction ls = test::load_stationary(128, 128);
    ls.waits[0] = {full, 1};
    ls.waits[1] = {psum_free, 1};
    t.add(Engine::Tensor, ls);
    for (int m = 0; m < multiplies; ++m) {
      Instruction mm = test::multiply(128, 128, 512);
      if (m + 1 == multiplies) mm.signals = {{{free, 1}, {product, 1}}};
      t.add(Engine::Tensor, mm);
    }
  });
  t.loop(Engine::Vector, trips, [&] {
    Instruction evict = test::lane(models::Opcode::TensorCopy, 512);
    evict.source = models::Space::Psum;
    evict.waits[0] = {product, 1};
    evict.waits[1] = {out_free, 1};
    evict.signals = {{{psum_free, 1}, {out, 1}}};
    t.add(Engine::Vector, evict);
  });
  t.loop(Engine::Scalar, trips, [&] { t.dma(Engine::Scalar, w, {out, 1}); });
  return t.program();
}

TEST_F(KernelBenchTest, ProfileAddsUp) {
  KernelBench bench("bench", chip, context);
  const models::TileProgram program = tiles(100, 4, true);
  const KernelProfile p = bench.profile(program);
  EXPECT_EQ(p.counts.hbm_read_bytes, 100 * 128 * 4096);
  EXPECT_EQ(p.counts.hbm_write_bytes, 100 * 128 * 1024);
  EXPECT_GT(p.counts.hbm_activates, 0);
  // 400 matmuls of 512 cycles, each busy for 9 more, none faster than the peak.
  EXPECT_EQ(p.tensor_ideal, base::cycles_time(400 * 512, chip.tensor.clock));
  EXPECT_EQ(p.engine_busy[0], base::cycles_time(400 * 521, chip.tensor.clock));
  EXPECT_GE(p.compute_active, p.engine_busy[0]);
  EXPECT_LE(p.compute_active, p.duration);
  // The first tile: start 1300 ns, 993 ns of packets, 50 ns completion, 250 ns semaphore.
  EXPECT_GT(p.lead_in, base::nanoseconds(2590));
  EXPECT_LT(p.lead_in, base::nanoseconds(2900));
  // Of the weights that it loads, the first tiles fit its buffers; they save the lead-in.
  EXPECT_GT(p.ahead.bytes.count(), 0);
  EXPECT_EQ(p.ahead.bytes.count() % (128 * 4096), 0);
  EXPECT_EQ(p.ahead.sbuf_bytes_per_partition, p.ahead.bytes.count() / 128);
  EXPECT_GE(p.ahead.saves, p.lead_in - base::nanoseconds(100));
  EXPECT_LE(p.ahead.saves, p.ahead.duration);
  EXPECT_EQ(bench.profile(tiles(100, 4, false)).ahead.bytes.count(), 0);
  // Block scales are among the bytes of a row.
  models::TileProgram scaled = program;
  for (models::DmaTransfer& transfer : scaled.transfers) transfer.scale_bytes = 4096;
  EXPECT_EQ(bench.profile(scaled).ahead.bytes, p.ahead.bytes);
  // The last store: start, packets, completion.
  EXPECT_GT(p.drain, base::nanoseconds(1350));
  EXPECT_LT(p.lead_in + p.drain, p.duration);
  EXPECT_EQ(p.curve.back().duration, p.duration);
}

TEST_F(KernelBenchTest, CurveFallsWithTheRateAndEndsAtTheUnlimitedRun) {
  KernelBench bench("bench", chip, context);
  for (int multiplies : {1, 4, 40}) {
    const models::TileProgram program = tiles(60, multiplies, false);
    const KernelProfile p = bench.profile(program);
    ASSERT_GE(p.curve.size(), 3u);
    EXPECT_LE(p.curve.size(), 12u);
    for (std::size_t i = 1; i < p.curve.size(); ++i) {
      EXPECT_LT(p.curve[i - 1].served, p.curve[i].served);
      EXPECT_GE(p.curve[i - 1].duration, p.curve[i].duration);
    }
    // At every limit the bytes take at least bytes / limit.
    const std::int64_t bytes = p.counts.hbm_read_bytes + p.counts.hbm_write_bytes;
    for (const models::ProfilePoint& x : p.curve)
      EXPECT_GE(x.duration, base::transfer_time(base::Bytes(bytes), x.served));
    // Interpolation meets a run at a rate that is not a point of the curve.
    const base::Rate other((2 * p.curve.front().served.count() + p.curve.back().served.count()) /
                           3);
    const double measured = base::to_seconds(bench.run(program, other).duration);
    EXPECT_NEAR(base::to_seconds(p.at(other)), measured, 0.01 * measured);
    // A quarter of the average rate: nearly bytes / rate.
    EXPECT_LT(
        base::to_seconds(p.curve.front().duration),
        1.1 * base::to_seconds(base::transfer_time(base::Bytes(bytes), p.curve.front().served)));
  }
}

// Rates that are never granted need no run, and no granted rate may become less exact for it.
TEST_F(KernelBenchTest, ALeastRateSavesPointsAndMovesNothingAboveIt) {
  KernelBench bench("bench", chip, context);
  const models::TileProgram program = tiles(60, 4, false);
  const KernelProfile whole = bench.profile(program);
  const base::Rate least(whole.curve.back().served.count() / 2);
  const KernelProfile p = bench.profile(program, least);
  EXPECT_EQ(p.duration, whole.duration);
  // The packets cost the engines a little more than full ones, so less data comes of a grant.
  EXPECT_LE(p.curve.front().served, least);
  EXPECT_GE(p.curve.front().served, base::Rate(least.count() * 3 / 4));
  EXPECT_LT(p.curve.size(), whole.curve.size());
  for (int i = 0; i <= 10; ++i) {
    const base::Rate served(least.count() + least.count() * i / 10);
    const double measured = base::to_seconds(bench.run(program, served).duration);
    EXPECT_NEAR(base::to_seconds(p.at(served)), measured, 0.01 * measured) << i;
  }
}

// The demand decides what others get, so the knee is found even where it lies below the least rate.
TEST_F(KernelBenchTest, TheKneeIsFoundBelowTheLeastRate) {
  KernelBench bench("bench", chip, context);
  const models::TileProgram program = tiles(60, 40, false);
  const base::Rate knee = bench.profile(program).demand();
  const KernelProfile p = bench.profile(program, base::Rate(2 * knee.count()));
  EXPECT_NEAR(static_cast<double>(p.demand().count()), static_cast<double>(knee.count()),
              0.2 * static_cast<double>(knee.count()));
}

TEST_F(KernelBenchTest, ComputeOnlyKernelHasOnePoint) {
  KernelBench bench("bench", chip, context);
  TileBuilder t;
  t.add(Engine::Tensor, test::multiply(128, 128, 512));
  const KernelProfile p = bench.profile(t.program());
  ASSERT_EQ(p.curve.size(), 1u);
  EXPECT_EQ(p.curve[0].duration, p.duration);
  EXPECT_EQ(p.ahead.bytes.count(), 0);
  EXPECT_EQ(p.dma_busy, base::Time(0));
}

// 100 passes of 512 cycles after a load: on a cold array a quarter of the ramp longer.
TEST_F(KernelBenchTest, AHotEntrySavesTheRamp) {
  TileBuilder t;
  t.add(Engine::Tensor, test::load_stationary(128, 128));
  t.loop(Engine::Tensor, 100, [&] { t.add(Engine::Tensor, test::multiply(128, 128, 512)); });
  config::ChipSpec limited = chip;
  test::set_test_limiter(limited.tensor);
  KernelBench plain("plain", chip, context), bench("bench", limited, context);
  const KernelProfile off = plain.profile(t.program());
  EXPECT_EQ(off.tensor.age, base::Time(0));
  EXPECT_EQ(off.tensor.cost, base::Time(0));
  const KernelProfile p = bench.profile(t.program());
  const models::TensorEntry& e = p.tensor;
  const base::Time ramp = base::nanoseconds(750), cycles = base::nanoseconds(10);
  EXPECT_EQ(p.duration, off.duration + e.cost);
  EXPECT_LE(e.cost, ramp);
  EXPECT_GE(e.cost, ramp - cycles) << "the 9 cycles between passes are no work";
  EXPECT_EQ(e.saves, e.cost) << "nothing engages the limit again";
  EXPECT_EQ(e.passes_less, e.passes);
  EXPECT_EQ(p.compute_active, off.compute_active + e.active);
  EXPECT_EQ(e.head, base::Time(0));
  EXPECT_EQ(e.age, base::nanoseconds(3000));
  EXPECT_EQ(e.idle, base::Time(0));
  // The last results leave the array after its last work.
  EXPECT_GT(e.tail, base::nanoseconds(100));
  EXPECT_LT(e.tail, base::nanoseconds(140));
}

// Cores that run program after program carry the limiter on: hot if TensorE idles up to 1.5 us.
TEST_F(KernelBenchTest, TheLimiterGoesFromProgramToProgram) {
  config::ChipSpec limited = chip;
  test::set_test_limiter(limited.tensor);
  TileBuilder t;
  t.loop(Engine::Tensor, 100, [&] { t.add(Engine::Tensor, test::multiply(128, 128, 512)); });
  KernelBench bench("bench", limited, context);
  modules::StackCluster stack("stack", limited, context);
  const KernelProfile p = bench.profile(t.program());
  for (const std::int64_t pause : {1, 1360, 1400}) {
    context.restart();
    stack.load(t.program(), base::Rate(0));
    base::Time first, second;
    stack.start(0, t.program(), [&] { first = context.now(); });
    sc_core::sc_start(modules::to_sc(p.duration + base::nanoseconds(pause)));
    const base::Time start = context.now();
    stack.start(0, t.program(), [&] { second = context.now(); });
    sc_core::sc_start();
    EXPECT_EQ(first, p.duration);
    const bool hot = p.tensor.tail + base::nanoseconds(pause) <= base::nanoseconds(1500);
    EXPECT_EQ(hot, pause < 1400);
    EXPECT_EQ(second - start, hot ? p.duration - p.tensor.saves : p.duration) << pause;
    EXPECT_EQ(stack.throttled(0), hot ? base::Time(0) : p.tensor.passes);
  }
}

TEST_F(KernelBenchTest, OrderOfProfilingDoesNotMatter) {
  KernelBench bench("bench", chip, context);
  const models::TileProgram a = tiles(50, 2, false), b = tiles(30, 9, true);
  const KernelProfile a1 = bench.profile(a), b1 = bench.profile(b);
  const KernelProfile b2 = bench.profile(b), a2 = bench.profile(a);
  for (const auto& [x, y] : {std::pair{a1, a2}, std::pair{b1, b2}}) {
    EXPECT_EQ(x.duration, y.duration);
    EXPECT_EQ(x.lead_in, y.lead_in);
    EXPECT_EQ(x.compute_active, y.compute_active);
    EXPECT_EQ(x.dma_busy, y.dma_busy);
    EXPECT_EQ(x.counts.hbm_activates, y.counts.hbm_activates);
    ASSERT_EQ(x.curve.size(), y.curve.size());
    for (std::size_t i = 0; i < x.curve.size(); ++i) {
      EXPECT_EQ(x.curve[i].served, y.curve[i].served);
      EXPECT_EQ(x.curve[i].duration, y.curve[i].duration);
    }
  }
}

}  // namespace
}  // namespace trn3sim::sim
