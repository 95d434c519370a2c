// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What the programs of collectives move.
#include "trn3sim/compile/collective.hpp"

#include <algorithm>

#include "trn3sim/config/run_spec.hpp"

#include "support/collectives.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using test::collective;
using test::shape;
using trace::CollectiveKind;

std::int64_t sent_bytes(const CollectiveProgram& p) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < p.used; ++i) sum += p.parts[i].sends * p.parts[i].bytes.count();
  return sum;
}

TEST(CollectivePrograms, MoveWhatTheyPromise) {
  // 2 (n-1) steps of ceil(1000 / 8) = 125.
  CollectiveProgram p =
      collective_program(collective(CollectiveKind::AllReduce, 1000, 1000), shape(8));
  EXPECT_EQ(p.parts[0].sends, 14);
  EXPECT_EQ(p.parts[0].reduce_receives, 7);
  EXPECT_EQ(p.parts[0].bytes, base::Bytes(125));
  p = collective_program(collective(CollectiveKind::AllGather, 10, 80), shape(8));
  EXPECT_EQ(p.parts[0].sends, 7);
  EXPECT_EQ(p.parts[0].reduce_receives, 0);
  EXPECT_EQ(p.parts[0].bytes, base::Bytes(10));
  EXPECT_FALSE(collective_program(collective(CollectiveKind::AllGather, 10, 10), shape(1)).moves());
}

TEST(CollectivePrograms, BroadcastFlowsFromTheRoot) {
  const trace::Collective c = collective(CollectiveKind::Broadcast, 800, 800);
  CollectiveShape s = shape(4);
  EXPECT_EQ(collective_program(c, s).parts[0].receives, 0);
  EXPECT_EQ(collective_program(c, s).parts[0].sends, 8);  // chunks
  s.ring_place = 1;
  EXPECT_EQ(collective_program(c, s).parts[0].need_offset, 1);
  s.ring_place = 3;
  EXPECT_EQ(collective_program(c, s).parts[0].sends, 0);
}

TEST(CollectivePrograms, EachSendWaitsForItsArrivals) {
  const CollectiveProgram p =
      collective_program(collective(CollectiveKind::ReduceScatter, 40, 10), shape(4));
  // Send k of a ring needs k arrivals; three of each and it is done.
  const auto at = [](std::int64_t sent, std::int64_t received) {
    CollectiveProgress progress;
    progress.sent[0] = sent;
    progress.received[0] = received;
    return progress;
  };
  EXPECT_TRUE(may_send(p, at(0, 0), 0));
  EXPECT_FALSE(may_send(p, at(1, 0), 0));
  EXPECT_TRUE(may_send(p, at(1, 1), 0));
  EXPECT_FALSE(may_send(p, at(3, 3), 0));
  EXPECT_FALSE(is_done(p, at(3, 2)));
  EXPECT_TRUE(is_done(p, at(3, 3)));
  // Read to send, write to receive, read of the local operand to reduce.
  EXPECT_EQ(hbm_touches(p.parts[0], 0), 3);
  config::ChipSpec chip;
  chip.dma.completion = base::Time(1);
  chip.dma.start_latency = base::Time(10);
  chip.collectives.step_overhead = base::Time(100);
  EXPECT_EQ(arrival_delay(p, 0, 2, chip), base::Time(1));
  EXPECT_EQ(arrival_delay(p, 0, 1, chip), base::Time(111));
}

TEST(CollectivePrograms, RingsShareTheData) {
  const trace::Collective c = collective(CollectiveKind::AllReduce, 1000, 1000);
  const CollectiveProgram p = collective_program(c, shape(8, Way::Ring, 4, 2));
  EXPECT_EQ(p.algorithm, "4 rings");
  ASSERT_EQ(p.used, 4U);
  for (std::size_t i = 0; i < p.used; ++i) {
    EXPECT_EQ(p.parts[i].ring, static_cast<std::int32_t>(i));
    EXPECT_EQ(p.parts[i].sends, 14);
    EXPECT_EQ(p.parts[i].bytes, base::Bytes(32));  // ceil(125 / 4)
  }
  // An arrival on one ring lets nothing go on another.
  CollectiveProgress at;
  at.sent[0] = at.sent[1] = 1;
  at.received[0] = 1;
  EXPECT_TRUE(may_send(p, at, 0));
  EXPECT_FALSE(may_send(p, at, 1));
}

TEST(CollectivePrograms, AMeshSendsToAllAtOnce) {
  CollectiveProgram p =
      collective_program(collective(CollectiveKind::AllGather, 10, 80), shape(8, Way::Mesh));
  EXPECT_EQ(p.algorithm, "mesh");
  EXPECT_EQ(sent_bytes(p), 7 * 10);
  CollectiveProgress at;
  for (; at.sent[0] < 7; ++at.sent[0]) EXPECT_TRUE(may_send(p, at, 0));
  EXPECT_FALSE(may_send(p, at, 0));
  p = collective_program(collective(CollectiveKind::ReduceScatter, 80, 10), shape(8, Way::Mesh));
  EXPECT_EQ(sent_bytes(p), 7 * 10);
  EXPECT_EQ(p.parts[0].reduce_receives, 7);
  p = collective_program(collective(CollectiveKind::AllToAll, 80, 80), shape(8, Way::Mesh));
  EXPECT_EQ(sent_bytes(p), 7 * 10);
}

TEST(CollectivePrograms, AMeshAllReduceGathersWhenItHasReduced) {
  const trace::Collective c = collective(CollectiveKind::AllReduce, 30, 30);
  CollectiveProgram p = collective_program(c, shape(3, Way::Mesh));
  ASSERT_EQ(p.used, 2U);
  EXPECT_EQ(sent_bytes(p), 2 * 2 * 10);
  CollectiveProgress at;
  EXPECT_TRUE(may_send(p, at, 0));
  EXPECT_FALSE(may_send(p, at, 1));
  at.sent[0] = 2;
  at.received = {1, 1};  // a fast member is one step ahead
  EXPECT_FALSE(may_send(p, at, 1));
  at.received[0] = 2;
  EXPECT_TRUE(may_send(p, at, 1));
  at.sent[1] = 2;
  EXPECT_FALSE(is_done(p, at));
  at.received[1] = 2;
  EXPECT_TRUE(is_done(p, at));
  // In one step: the whole buffer to everyone.
  p = collective_program(c, shape(3, Way::OneStep));
  EXPECT_EQ(p.used, 1U);
  EXPECT_EQ(sent_bytes(p), 2 * 30);
  EXPECT_EQ(p.parts[0].reduce_receives, 2);
}

TEST(CollectivePrograms, MessagesAtOnceShareTheDmaEngines) {
  config::ChipSpec chip;
  chip.dma.plateau_rate = base::Rate(30);
  chip.dma.engines = 4;
  chip.dma.inline_compute_rate = 0.5;
  RankPlace place;
  place.cores = 2;
  const CollectiveProgram p = collective_program(collective(CollectiveKind::AllReduce, 1000, 1000),
                                                 shape(8, Way::Ring, 2, 2));
  EXPECT_EQ(message_rate(p, p.parts[0], 7, chip, place), base::Rate(30 * 4 * 2 / 2));
  EXPECT_EQ(message_rate(p, p.parts[0], 6, chip, place), base::Rate(30 * 4 * 2 / 4));  // reduces
}

// Two accesses of HBM a byte: half of the grant; all that the message can have if others pace it.
TEST(CollectivePrograms, AGrantIsSharedByTheAccessesOfAByte) {
  const base::Rate cap(900);
  EXPECT_EQ(granted_rate({base::Rate(400), false}, base::Rate(400), 2, cap), base::Rate(200));
  EXPECT_EQ(granted_rate({base::Rate(400), true}, base::Rate(400), 2, cap), cap);
  EXPECT_EQ(granted_rate({base::Rate(400), true}, base::Rate(300), 2, cap), base::Rate(150));
}

}  // namespace
}  // namespace trn3sim::compile
