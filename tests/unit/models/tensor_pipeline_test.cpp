// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/tensor_pipeline.hpp"

#include "trn3sim/models/clock.hpp"

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

constexpr auto kLoad = Opcode::LoadStationary;
constexpr auto kMultiply = Opcode::MultiplyMoving;

TEST(TensorPipeline, MultiplyStartsExactlyWhenItsWeightsAreThere) {
  TensorPipeline p(320, 0, true);
  EXPECT_EQ(p.issue(kLoad, 32, 0).end, 32);
  const TensorPipeline::Slot mm = p.issue(kMultiply, 512, 0);
  EXPECT_EQ(mm.start, 32) << "not at 31: the load is exposed";
  EXPECT_EQ(mm.end, 32 + 512);
  EXPECT_EQ(mm.visible, 32 + 512 + 320);
}

// 9 cycles are lost after each pass; its results do not wait for them.
TEST(TensorPipeline, EachMultiplyLosesTheOverhead) {
  TensorPipeline p(320, 9, true);
  const TensorPipeline::Slot first = p.issue(kMultiply, 512, 0);
  EXPECT_EQ(first.end, 512 + 9);
  EXPECT_EQ(first.visible, 512 + 320);
  EXPECT_EQ(p.issue(kMultiply, 512, 0).start, 521);
  EXPECT_EQ(p.issue(kLoad, 32, 0).end, 521 + 32) << "a load loses nothing";
}

TEST(TensorPipeline, LoadHidesBehindTheRunningMultiply) {
  TensorPipeline p(320, 0, true);
  p.issue(kLoad, 32, 0);
  p.issue(kMultiply, 512, 0);  // 32 .. 544
  EXPECT_EQ(p.issue(kLoad, 32, 0).start, 32) << "not before the multiply that uses the load before";
  EXPECT_EQ(p.issue(kMultiply, 512, 0).start, 544);
}

TEST(TensorPipeline, LongLoadIsExposed) {
  TensorPipeline p(320, 0, true);
  p.issue(kLoad, 32, 0);
  p.issue(kMultiply, 64, 0);  // 32 .. 96
  EXPECT_EQ(p.issue(kLoad, 128, 0).end, 32 + 128);
  EXPECT_EQ(p.issue(kMultiply, 64, 0).start, 160) << "the array is free at 96 but waits";
}

TEST(TensorPipeline, OneShadowSet) {
  TensorPipeline p(320, 0, true);
  p.issue(kLoad, 32, 0);
  p.issue(kMultiply, 512, 0);  // 32 .. 544
  p.issue(kLoad, 32, 0);       // 32 .. 64, shadow
  p.issue(kMultiply, 512, 0);  // 544 .. 1056 uses it
  EXPECT_EQ(p.issue(kLoad, 32, 0).start, 544) << "the shadow set is taken until 544";
}

TEST(TensorPipeline, SemaphoreDelaysWhatFollows) {
  TensorPipeline p(320, 0, true);
  p.issue(kLoad, 32, 0);
  EXPECT_EQ(p.issue(kMultiply, 64, 1000).start, 1000);
  EXPECT_EQ(p.issue(kLoad, 32, 0).start, 1000) << "in order";
}

TEST(TensorPipeline, BackgroundTransposeLeavesTheArrayAlone) {
  TensorPipeline p(320, 0, true);
  p.issue(kMultiply, 512, 0);
  const TensorPipeline::Slot t = p.issue(Opcode::Transpose, 64, 0);
  EXPECT_FALSE(t.array);
  EXPECT_EQ(t.start, 0);
  EXPECT_EQ(p.issue(kLoad, 32, 0).start, 64) << "it uses the load path";
  TensorPipeline v3(320, 0, false);
  v3.issue(kMultiply, 512, 0);
  EXPECT_EQ(v3.issue(Opcode::Transpose, 128, 0).start, 512);
}

TEST(ClockEdges, RoundTripsEveryEdge) {
  for (long long hertz : {2'400'000'000LL, 1'200'000'000LL, 960'000'000LL, 1'234'567'891LL}) {
    const base::Frequency f(hertz);
    const ClockEdges edges(f);
    for (long long c : {0LL, 1LL, 2LL, 3LL, 1000LL, 1'000'003LL, 3'000'000'000'007LL}) {
      const base::Time t = edges.edge(c);
      EXPECT_EQ(t, base::cycles_time(c, f));
      EXPECT_EQ(edges.edge_at_or_after(t), c) << hertz << " Hz";
      EXPECT_EQ(edges.edge_at_or_after(t + base::Time(1)), c + 1);
    }
  }
}

}  // namespace
}  // namespace trn3sim::models
