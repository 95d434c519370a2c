// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/didt_limiter.hpp"

#include <algorithm>
#include <deque>
#include <random>

#include "trn3sim/models/tensor_pipeline.hpp"

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

// 2.4 GHz: 3 us are 7,200 cycles.
constexpr std::int64_t kRamp = 7200, kWindow = 7200;

config::TensorSpec spec(double start = 0.5, double rearm = 0.5) {
  config::TensorSpec s;
  s.clock = base::Frequency(2'400'000'000);
  s.throttle = {start, base::nanoseconds(3000), base::nanoseconds(3000), rearm};
  return s;
}

// Work of one instruction from the start of the ramp: y with y / 2 + y^2 / 28,800 >= c, and
// c + R / 4 above the ramp.
TEST(DidtLimiter, OneInstructionTakesWhatTheRampIntegratesTo) {
  DidtLimiter limiter(spec());
  ASSERT_TRUE(limiter.on());
  EXPECT_EQ(limiter.work(0, 1), 2);
  limiter.reset();
  EXPECT_EQ(limiter.work(0, 64), 127) << "126.9";
  limiter.reset();
  EXPECT_EQ(limiter.work(0, 2250), 3600) << "half of the ramp: 1,800 + 450";
  limiter.reset();
  EXPECT_EQ(limiter.work(0, 5400), 7200) << "the ramp: 3/4 of it is work";
  limiter.reset();
  EXPECT_EQ(limiter.work(1000, 100'000), 100'000 + kRamp / 4);
}

// However it is cut into instructions, the ramp costs a quarter of itself, but for a cycle each.
TEST(DidtLimiter, BackToBackInstructionsLoseTheSame) {
  for (const std::int64_t cycles : {64, 100, 512}) {
    DidtLimiter limiter(spec());
    std::int64_t at = 500, n = 0;
    for (; n * cycles < 20'000; ++n) at += limiter.work(at, cycles);
    EXPECT_GE(at - 500 - n * cycles, kRamp / 4);
    EXPECT_LE(at - 500 - n * cycles, kRamp / 4 + kRamp / cycles + 1);
    EXPECT_EQ(limiter.work(at, cycles), cycles);
    EXPECT_EQ(limiter.age(), kRamp);
  }
}

TEST(DidtLimiter, AGapLongerThanHalfOfTheWindowBringsTheLimitBack) {
  for (const bool longer : {false, true}) {
    DidtLimiter limiter(spec());
    const std::int64_t end = limiter.work(0, 50'000);
    const std::int64_t start = end + kWindow / 2 + (longer ? 1 : 0);
    EXPECT_EQ(limiter.work(start, 64), longer ? 127 : 64);
    EXPECT_EQ(limiter.active_until(), start + (longer ? 127 : 64));
    EXPECT_EQ(limiter.age(), longer ? 127 : kRamp);
    EXPECT_EQ(limiter.idle(), longer ? 63 : kWindow / 2) << "63: lost to the limit";
  }
}

TEST(DidtLimiter, ManySmallGapsDoTooAndAreForgottenAfterTheWindow) {
  for (const std::int64_t gap : {80, 100, 101, 120}) {
    DidtLimiter limiter(spec());
    std::int64_t at = limiter.work(0, 50'000);
    bool limited = false;
    for (int i = 0; i < 500; ++i) {
      at += gap;
      const std::int64_t taken = limiter.work(at, 100);
      limited = limited || taken > 100;
      at += taken;
    }
    EXPECT_EQ(limited, gap > 100) << gap;
  }
}

// Idle time before the work began does not count, or the limit would never go.
TEST(DidtLimiter, TheRampGoesOnThroughShortGaps) {
  DidtLimiter limiter(spec());
  EXPECT_EQ(limiter.work(0, 64), 127);
  EXPECT_EQ(limiter.work(3600, 64), 85) << "3,473 idle cycles, 63 lost; at 3/4 of the rate";
  EXPECT_EQ(limiter.work(3685 + 43, 64), 85) << "3,600 with 43 more and 21 lost";
  EXPECT_EQ(limiter.work(3685 + 43 + 85 + 1, 64), 127) << "the limit is back";
}

// An array that always has work, but only at half of the rate, is not utilised enough for ever.
TEST(DidtLimiter, WhatTheLimitTakesIsNotUtilised) {
  const auto limited = [](std::int64_t gap) {
    DidtLimiter limiter(spec());
    std::int64_t at = 0, slow = 0;
    for (int i = 0; i < 100; ++i) {
      const std::int64_t taken = limiter.work(at, 512);
      if (at > 2 * kWindow && taken > 512) ++slow;
      at += taken + gap;
    }
    return slow;
  };
  EXPECT_EQ(limited(0), 0) << "three quarters of the first ramp";
  EXPECT_EQ(limited(250), 0) << "two thirds once the ramp is over, half within it";
  EXPECT_GT(limited(2000), 90) << "a fifth";
}

TEST(DidtLimiter, HandsOverItsState) {
  DidtLimiter a(spec()), b(spec());
  const std::int64_t end = a.work(0, 2000);
  a.work(end + 100, 300);
  b = a;
  b.shift(10'000);
  const std::int64_t next = a.active_until() + 50;
  EXPECT_EQ(b.work(next - 10'000, 512), a.work(next, 512));
  DidtLimiter warm(spec());
  warm.warm_up();
  EXPECT_EQ(warm.work(12'345, 64), 64);
}

TEST(DidtLimiter, OffIsIdentical) {
  config::TensorSpec none;
  none.clock = base::Frequency(2'400'000'000);
  for (const config::TensorSpec& s : {none, spec(1.0)}) {
    TensorPipeline off(320, 9, true, DidtLimiter(s)), plain(320, 9, true);
    for (int i = 0; i < 50; ++i) {
      const auto op = i % 2 == 0 ? Opcode::LoadStationary : Opcode::MultiplyMoving;
      const TensorPipeline::Slot a = off.issue(op, 300 + i, i * i * 10);
      const TensorPipeline::Slot b = plain.issue(op, 300 + i, i * i * 10);
      EXPECT_EQ(a.start, b.start);
      EXPECT_EQ(a.end, b.end);
      EXPECT_EQ(a.visible, b.visible);
    }
    EXPECT_EQ(off.limited(), 0);
  }
}

// The running sum of idle time against adding it up over the window for each instruction.
TEST(DidtLimiter, EqualsAPlainSearchOverTheWindow) {
  std::mt19937 random(7);
  DidtLimiter limiter(spec());
  std::deque<std::pair<std::int64_t, std::int64_t>> gaps;
  std::int64_t begin = 0, until = limiter.work(0, 64), at = until;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t gap = random() % 4 == 0 ? std::int64_t(random() % 900) : 0;
    const std::int64_t cycles = 16 + std::int64_t(random() % 500);
    at += gap;
    if (at > until) gaps.emplace_back(until, at);
    std::int64_t idle = 0;
    for (const auto& [s, e] : gaps)
      idle += std::max<std::int64_t>(0, e - std::max({s, at - kWindow, begin}));
    if (idle > kWindow / 2) {
      begin = at;
      gaps.clear();
    }
    const std::int64_t taken = limiter.work(at, cycles);
    EXPECT_EQ(taken > cycles, at < begin + kRamp) << i;
    const std::int64_t end = std::min(at + taken, begin + kRamp);
    if (taken > cycles) gaps.emplace_back(end - (taken - cycles), end);
    until = at += taken;
  }
}

// What the limiter costs is what passes on the array take longer; loads behind them are hidden.
TEST(TensorPipeline, CountsWhatTheLimiterCosts) {
  TensorPipeline p(320, 0, true, DidtLimiter(spec()));
  std::int64_t end = 0;
  for (int i = 0; i < 100; ++i) {
    p.issue(Opcode::LoadStationary, 32, 0);
    end = p.issue(Opcode::MultiplyMoving, 512, 0).end;
  }
  // The first load is exposed at half rate: 64 cycles.
  EXPECT_EQ(end, 64 + 51'200 + p.limited());
  EXPECT_GE(p.limited(), kRamp / 4 - 32);
  EXPECT_LE(p.limited(), kRamp / 4 - 32 + 20);
}

}  // namespace
}  // namespace trn3sim::models
