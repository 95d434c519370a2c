// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <algorithm>
#include "trn3sim/base/error.hpp"
#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/models/engine_stream.hpp"

#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::nanoseconds;
using base::Time;
using test::TileBuilder;

Instruction waits(Instruction i, SemaphoreWait w) {
  i.waits[0] = w;
  return i;
}
Instruction signals(Instruction i, SemaphoreSignal s) {
  i.signals[0] = s;
  return i;
}
const Instruction kCopy = test::lane(Opcode::Select, 100);  // 100 cycles

TEST(SemaphoreBank, WaitTakesItsTokensInOrder) {
  TileBuilder t;
  const auto id = t.semaphore(1);
  t.add(Engine::Vector, waits(kCopy, {id, 2}));
  t.add(Engine::Scalar, signals(kCopy, {id, 1}));
  SemaphoreBank bank;
  bank.load(t.program(), t.program().cores[0]);
  EXPECT_TRUE(bank.ready(id, 1));
  EXPECT_FALSE(bank.ready(id, 3));
  EXPECT_EQ(bank.post(id, 1, nanoseconds(5)), 0u) << "the waiter needs three";
  EXPECT_EQ(bank.post(id, 1, nanoseconds(9)), 1u << unsigned(Engine::Vector));
  EXPECT_EQ(bank.post(id, 1, nanoseconds(7)), 0u) << "nobody is blocked any more";
  EXPECT_EQ(bank.take(id, 1).source, TokenSource::Initial);
  EXPECT_EQ(bank.take(id, 2).at, nanoseconds(9)) << "the later of the two";
  EXPECT_EQ(bank.take(id, 1).at, nanoseconds(9)) << "one signaller signals in order";
  EXPECT_EQ(bank.available(id), 0);
}

TEST(SemaphoreBank, OneWaiterAndOneSignaller) {
  TileBuilder two_waiters;
  two_waiters.semaphore();
  two_waiters.add(Engine::Vector, waits(kCopy, {0, 1}));
  SemaphoreBank bank;
  EXPECT_NO_THROW(bank.load(two_waiters.program(), two_waiters.program().cores[0]));
  two_waiters.add(Engine::Scalar, waits(kCopy, {0, 1}));
  EXPECT_THROW(bank.load(two_waiters.program(), two_waiters.program().cores[0]),
               base::InternalError);
  TileBuilder two_signallers;
  two_signallers.semaphore();
  two_signallers.add(Engine::Vector, signals(kCopy, {0, 1}));
  two_signallers.transfer(test::load(two_signallers.operand(4096), 1, 4096));
  two_signallers.program().transfers[0].signals[0] = {0, 1};
  two_signallers.dma(Engine::Sync, 0);
  EXPECT_THROW(bank.load(two_signallers.program(), two_signallers.program().cores[0]),
               base::InternalError);
  TileBuilder unknown;
  unknown.add(Engine::Vector, waits(kCopy, {3, 1}));
  EXPECT_THROW(bank.load(unknown.program(), unknown.program().cores[0]), base::InternalError);
}

TEST(EngineStream, RunsAheadUntilATokenIsMissing) {
  const config::ChipSpec chip = test::test_chip();
  TileBuilder t;
  const auto id = t.semaphore(0);
  t.loop(Engine::Vector, 3, [&] { t.add(Engine::Vector, kCopy); });
  t.add(Engine::Vector, waits(kCopy, {id, 1}));
  t.add(Engine::Scalar, signals(kCopy, {id, 1}));
  SemaphoreBank bank;
  bank.load(t.program(), t.program().cores[0]);
  EngineStream vector(chip, Engine::Vector, 0);
  vector.load(t.program(), t.program().cores[0]);
  std::vector<DmaTrigger> triggers;
  EXPECT_EQ(vector.run(bank, triggers), 0u);
  EXPECT_FALSE(vector.done());
  EXPECT_EQ(vector.instructions(), 3);
  EXPECT_EQ(vector.waiting(bank),
            "select (node 3) waits for 1 of semaphore 0 (has 0, signalled by the scalar engine)");
  bank.post(id, 1, nanoseconds(1000));  // cycle 1200
  vector.run(bank, triggers);
  EXPECT_TRUE(vector.done());
  // Starts 64 cycles after the token: 1264 .. 1364; busy 4 x 100 cycles.
  EXPECT_EQ(vector.end(), base::cycles_time(1364, chip.vector.clock));
  EXPECT_EQ(vector.busy(), base::cycles_time(400, chip.vector.clock));
  ASSERT_EQ(vector.intervals().size(), 2u) << "back-to-back intervals merge";
  EXPECT_EQ(vector.intervals()[0].end, 300);
  EXPECT_EQ(vector.intervals()[1].start, 1264);
}

// A published profile of Trainium2: 2,048 back-to-back 128 x 128 x 512 matmuls reach 77.2 of 78.6
// TFLOPS (98 %).
TEST(EngineStream, BackToBackMatmulsReach98PercentOfThePeak) {
  const config::ChipSpec chip = test::test_chip();
  TileBuilder t;
  t.loop(Engine::Tensor, 2048, [&] {
    t.add(Engine::Tensor, test::load_stationary(128, 128));
    t.add(Engine::Tensor, test::multiply(128, 128, 512));
  });
  SemaphoreBank bank;
  bank.load(t.program(), t.program().cores[0]);
  EngineStream tensor(chip, Engine::Tensor, 0);
  tensor.load(t.program(), t.program().cores[0]);
  std::vector<DmaTrigger> triggers;
  tensor.run(bank, triggers);
  // The first load (32), 2,048 x (512 + 9), and the fill after the last column.
  EXPECT_EQ(tensor.end(), base::cycles_time(32 + 2048 * 521 - 9 + 320, chip.tensor.clock));
  const double reached = 2048.0 * 512 / (static_cast<double>(tensor.end().count()) * 2.4e-6);
  EXPECT_NEAR(reached, 77.2 / 78.6, 0.003);
}

// Records the accesses; each takes 100 ns.
struct Recorder : Memory {
  struct Access {
    Time now;
    std::int64_t address, bytes;
    bool write;
  };
  std::vector<Access> accesses;
  Time access(Time now, std::int64_t address, std::int64_t bytes, bool write) override {
    accesses.push_back({now, address, bytes, write});
    return now + nanoseconds(100);
  }
};

std::vector<DmaCompletion> drain(DmaGroup& group, Memory& memory) {
  std::vector<DmaCompletion> done;
  while (!group.idle()) group.advance(group.next(), memory, done);
  return done;
}

// Engine e serves partitions 8 e to 8 e + 7: rows on the first partitions have one engine only.
TEST(DmaGroup, EnginesServeTheirPartitions) {
  const config::ChipSpec chip = test::test_chip();
  ASSERT_EQ(chip.sbuf.partitions, 128);
  for (const auto& [rows, engines] : std::vector<std::pair<int, std::size_t>>{
           {1, 1}, {8, 1}, {9, 2}, {64, 8}, {128, 16}, {256, 16}}) {
    TileBuilder t;
    t.transfer(test::load(t.operand(256 * 4096), rows, 4096));
    DmaGroup group(chip);
    group.load(t.program());
    group.post({nanoseconds(0), 0, 4, 0});
    Recorder memory;
    drain(group, memory);
    EXPECT_EQ(memory.accesses.size(), static_cast<std::size_t>(rows));
    EXPECT_EQ(std::ranges::count(memory.accesses, nanoseconds(1300), &Recorder::Access::now),
              static_cast<std::ptrdiff_t>(engines))
        << rows;
  }
}

TEST(DmaGroup, SpreadsRowsOverTheEnginesAndWalksTheOperand) {
  config::ChipSpec chip = test::test_chip();
  chip.sbuf.partitions = 16;
  TileBuilder t;
  t.operand(100);                                          // padded to 4096
  t.transfer(test::load(t.operand(3 * 65536), 16, 4096));  // one row per engine
  DmaGroup group(chip);
  group.load(t.program());
  for (int i = 0; i < 4; ++i) group.post({nanoseconds(5000 * i), 0, 4, 0});
  Recorder memory;
  const std::vector<DmaCompletion> done = drain(group, memory);
  ASSERT_EQ(memory.accesses.size(), 4u * 16);
  for (std::size_t a = 0; a < 64; ++a) {
    // 64 KiB per transfer; the fourth wraps to the start of the operand.
    EXPECT_EQ(memory.accesses[a].address, 4096 + static_cast<std::int64_t>(a % 48) * 4096);
    EXPECT_EQ(memory.accesses[a].now, nanoseconds(5000 * static_cast<std::int64_t>(a / 16) + 1300));
  }
  ASSERT_EQ(done.size(), 4u);
  // 4 KiB take 124.1 ns on the engine, longer than the memory's 100 ns; then 50 ns.
  EXPECT_EQ(done[0].at,
            nanoseconds(1300 + 50) + base::transfer_time(base::Bytes(4096), chip.dma.plateau_rate));
}

TEST(DmaGroup, OneInstantIsServedByCoreAndEngineWhateverThePostOrder) {
  const config::ChipSpec chip = test::test_chip();
  TileBuilder t(2);
  t.transfer(test::load(t.operand(1 << 20), 1, 64));
  t.transfer(test::load(t.operand(1 << 20), 1, 128));
  const std::vector<DmaTrigger> triggers{
      {Time(0), 0, 2, 0}, {Time(0), 0, 4, 1}, {Time(0), 1, 2, 0}};
  std::vector<std::vector<std::int64_t>> orders;
  for (const std::array<std::size_t, 3>& order :
       {std::array<std::size_t, 3>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    DmaGroup group(chip);
    group.load(t.program());
    for (std::size_t i : order) group.post(triggers[i]);
    Recorder memory;
    drain(group, memory);
    orders.emplace_back();
    for (const Recorder::Access& a : memory.accesses) orders.back().push_back(a.address);
  }
  EXPECT_EQ(orders[0].size(), 3u);
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

}  // namespace
}  // namespace trn3sim::models
