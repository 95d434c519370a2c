// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/dma_engine.hpp"

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/busy_union.hpp"
#include "trn3sim/models/rate_limiter.hpp"

#include "support/test_chip.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::nanoseconds;
using base::Time;

class DmaEngineTest : public ::testing::Test {
 protected:
  static DmaPart part(std::int64_t rows, std::int64_t row_bytes, Time eligible = Time(0)) {
    DmaPart p;
    p.rows = rows;
    p.row_bytes = row_bytes;
    p.eligible = eligible;
    return p;
  }
  // Starts the next packet as soon as it may; the memory takes `latency`.
  static DmaPacket step(DmaEngine& e, Time latency = Time(0)) {
    const Time now = e.next();
    const DmaPacket p = e.start(now);
    e.finish(p, now + latency);
    return p;
  }
  config::DmaSpec spec = test::test_chip().dma;
};

TEST_F(DmaEngineTest, FullPacketsReachThePlateau) {
  DmaEngine e(spec);
  e.enqueue(0, part(100, 4096));
  for (int i = 0; i < 100; ++i) step(e);
  // 100 x 4 KiB at 33 GB/s; each packet rounds up to a femtosecond.
  const Time plateau = base::transfer_time(base::Bytes(409'600), spec.plateau_rate);
  EXPECT_GE(e.busy(), plateau);
  EXPECT_LE(e.busy(), plateau + Time(200));
}

TEST_F(DmaEngineTest, NotBeforeItIsEligible) {
  DmaEngine e(spec);
  EXPECT_EQ(e.next(), base::kTimeMax);
  e.enqueue(3, part(1, 64, nanoseconds(1300)));
  EXPECT_EQ(e.next(), nanoseconds(1300));
  EXPECT_THROW(e.start(nanoseconds(1300) - Time(1)), base::InternalError);
  EXPECT_EQ(e.start(nanoseconds(1300)).queue, 3);
}

TEST_F(DmaEngineTest, SameQueueKeepsTheIssueInterval) {
  DmaEngine e(spec);
  e.enqueue(0, part(1, 64));
  e.enqueue(0, part(1, 64));
  e.enqueue(1, part(1, 64));
  EXPECT_EQ(step(e).queue, 0);
  EXPECT_LT(e.next(), nanoseconds(100)) << "another queue need not wait";
  EXPECT_EQ(step(e).queue, 1);
  EXPECT_EQ(e.next(), nanoseconds(860)) << "860 ns after the start of the one before";
}

TEST_F(DmaEngineTest, SemaphoreWriteComesBetweenPartsOfOneQueue) {
  DmaEngine e(spec);
  e.enqueue(0, part(8, 4096));
  e.enqueue(0, part(8, 4096));
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(step(e).last);
  const DmaPacket last = step(e);
  EXPECT_TRUE(last.last);
  // Eight packets take 993 ns, longer than the interval; then 50 ns for the semaphore.
  EXPECT_EQ(e.next(), last.moved + nanoseconds(50));
}

TEST_F(DmaEngineTest, CompletesAfterTheMemoryAndTheSemaphoreWrite) {
  DmaEngine e(spec);
  e.enqueue(0, part(2, 4096));
  const DmaPacket a = e.start(Time(0));
  EXPECT_EQ(e.finish(a, nanoseconds(5000)), nanoseconds(5000)) << "not the last packet";
  const DmaPacket b = e.start(e.next());
  EXPECT_EQ(e.finish(b, nanoseconds(400)), nanoseconds(5050)) << "the slower first packet counts";
}

TEST_F(DmaEngineTest, QueuesAlternateAtPacketBoundaries) {
  DmaEngine e(spec);
  e.enqueue(0, part(2, 8192));
  e.enqueue(5, part(2, 8192));
  const int expected[] = {0, 5, 0, 5, 0, 5, 0, 5};
  for (int q : expected) {
    const DmaPacket p = step(e);
    EXPECT_EQ(p.queue, q);
    EXPECT_EQ(p.bytes, 4096) << "long rows are split";
  }
}

TEST_F(DmaEngineTest, WindowWaitsForTheOldest) {
  DmaEngine e(spec);
  e.enqueue(0, part(20, 4096));
  for (int i = 0; i < 8; ++i) {
    const DmaPacket p = e.start(e.next());
    e.finish(p, nanoseconds(10'000 + i));
  }
  EXPECT_EQ(e.next(), nanoseconds(10'000)) << "eight descriptors in flight, the oldest returns";
}

TEST_F(DmaEngineTest, SmallRowsShareAPacketAndPayPerDescriptor) {
  DmaEngine e(spec);
  e.enqueue(0, part(8, 64));
  const DmaPacket p = step(e);
  EXPECT_EQ(p.descriptors, 4) << "half the window";
  EXPECT_EQ(p.bytes, 4 * 64);
  EXPECT_EQ(p.moved,
            base::transfer_time(base::Bytes(256), spec.bus_rate) + e.descriptor_overhead() * 4);
}

TEST_F(DmaEngineTest, AccumulationRates) {
  DmaEngine e(spec);
  DmaPart store = part(1, 4096);
  e.enqueue(0, store);
  const Time plain = step(e).moved;
  e.reset();
  store.accumulate = true;
  e.enqueue(0, store);
  EXPECT_EQ(step(e).moved, plain) << "into SBUF at the full rate";
  e.reset();
  store.write = true;
  e.enqueue(0, store);
  const DmaPacket p = step(e);
  EXPECT_EQ(p.moved, plain * 2) << "into HBM at half the rate";
  EXPECT_TRUE(p.read_modify_write);
}

TEST(RateLimiter, EndIsBytesOverRateOfTheBusyPeriod) {
  RateLimiter r;
  r.reset(base::Rate(3));  // a third of a second per byte: rounding shows
  for (int i = 0; i < 3; ++i) r.serve(Time(0), 1);
  EXPECT_EQ(r.serve(Time(0), 3).start, Time(base::kFemtosPerSecond)) << "three bytes: one second";
  EXPECT_EQ(r.serve(Time(0), 3).end, Time(3 * base::kFemtosPerSecond));
  const Time later(10 * base::kFemtosPerSecond);
  EXPECT_EQ(r.serve(later, 3).start, later) << "idle time is not saved up";
  r.reset(base::Rate(0));
  EXPECT_EQ(r.serve(later, 1 << 30).end, later) << "no limit";
}

TEST(BusyUnion, CountsOverlapOnce) {
  BusyUnion u;
  u.add(Time(0), Time(10));
  u.add(Time(5), Time(15));
  u.add(Time(20), Time(30));
  u.settle(Time(25));
  EXPECT_EQ(u.total(), Time(15 + 5)) << "up to the horizon";
  u.add(Time(28), Time(40));
  u.settle(base::kTimeMax);
  EXPECT_EQ(u.total(), Time(15 + 20));
}

TEST(BusyUnion, MergesTheRunsOfManyEngines) {
  BusyUnion u;
  for (std::int64_t engine = 0; engine < 5;
       ++engine)  // [0, 1), [10, 11), ... shifted by the engine
    for (std::int64_t i = 0; i < 100; ++i) u.add(Time(10 * i + engine), Time(10 * i + engine + 1));
  u.settle(Time(503));
  EXPECT_EQ(u.total(), Time(50 * 5 + 3));
  u.settle(base::kTimeMax);
  EXPECT_EQ(u.total(), Time(500));
}

}  // namespace
}  // namespace trn3sim::models
