// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/limiter_replay.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::nanoseconds;
using base::Time;

constexpr std::int64_t kWhole = LimiterReplay::kWhole;

config::ThrottleSpec spec() {
  return {0.5, nanoseconds(3000), nanoseconds(3000), 0.5};
}

// TensorE works from 200 ns to 100 ns before the end.
KernelProfile kernel(std::int64_t ns = 10'000) {
  KernelProfile p;
  p.duration = nanoseconds(ns);
  p.tensor.head = nanoseconds(200);
  p.tensor.tail = nanoseconds(100);
  p.tensor.age = nanoseconds(std::min<std::int64_t>(3000, ns - 300));
  p.tensor.passes = nanoseconds(750);
  p.tensor.cost = nanoseconds(700);
  p.tensor.saves = nanoseconds(600);
  p.tensor.passes_less = nanoseconds(750);
  return p;
}

std::uint64_t state(const LimiterReplay& l, Time now) {
  base::StateHash hash, other;
  l.fingerprint(hash, now);
  LimiterReplay().fingerprint(other, now);
  return hash == other ? 0 : 1;
}

TEST(LimiterReplay, EntersColdAfterIdlingAndHotBefore) {
  const KernelProfile p = kernel();
  LimiterReplay l(spec());
  EXPECT_EQ(l.enter(Time(0), p, Time(0)), 0) << "the first";
  EXPECT_EQ(l.cost(), nanoseconds(700));
  EXPECT_EQ(l.passes(), nanoseconds(750));
  EXPECT_EQ(l.saved(), Time(0));
  l.leave(nanoseconds(10'000));
  // TensorE idles 100 + 1,200 + 200 ns, all that half of the window allows.
  LimiterReplay late = l;
  EXPECT_EQ(l.enter(nanoseconds(11'200), p, Time(0)), kWhole);
  EXPECT_EQ(l.cost(), nanoseconds(100));
  EXPECT_EQ(l.passes(), Time(0));
  EXPECT_EQ(l.saved(), nanoseconds(600));
  EXPECT_EQ(late.enter(nanoseconds(11'201), p, Time(0)), 0);
  l.leave(nanoseconds(20'600));
  EXPECT_EQ(l.enter(nanoseconds(22'000), p, nanoseconds(200)), kWhole) << "the head is hidden";
}

// A ramp of age x costs (1 - x/R)^2 of the whole from there.
TEST(LimiterReplay, ShortKernelsGoOnWithTheRamp) {
  const KernelProfile p = kernel(1300);  // 1,000 ns of work
  LimiterReplay l(spec());
  l.enter(Time(0), p, Time(0));
  l.leave(nanoseconds(1300));
  // Age 1,000 + 100 + 200 ns.
  const double left = 1700.0 / 3000;
  EXPECT_NEAR(static_cast<double>(l.enter(nanoseconds(1300), p, Time(0))) / kWhole, 1 - left * left,
              1e-5);
  l.leave(nanoseconds(2600));
  const double then = 400.0 / 3000;  // 1,300 + 1,000 + 300 ns
  EXPECT_NEAR(static_cast<double>(l.enter(nanoseconds(2600), p, Time(0))) / kWhole, 1 - then * then,
              1e-5);
}

TEST(LimiterReplay, OtherKernelsOnlyLetTimePass) {
  const KernelProfile p = kernel();
  KernelProfile vector;
  vector.duration = nanoseconds(1000);
  LimiterReplay l(spec());
  l.enter(Time(0), p, Time(0));
  l.leave(nanoseconds(10'000));
  EXPECT_EQ(l.enter(nanoseconds(10'000), vector, Time(0)), 0);
  EXPECT_EQ(l.cost(), Time(0));
  l.leave(nanoseconds(11'000));
  EXPECT_EQ(l.enter(nanoseconds(11'000), p, Time(0)), kWhole);
}

TEST(LimiterReplay, StateIsNothingOnceTheNextEntryIsCold) {
  const KernelProfile p = kernel();
  LimiterReplay l(spec());
  EXPECT_EQ(state(l, Time(0)), 0u);
  l.enter(Time(0), p, Time(0));
  l.leave(nanoseconds(10'000));
  EXPECT_EQ(state(l, nanoseconds(11'400)), 1u);
  EXPECT_EQ(state(l, nanoseconds(11'401)), 0u);
  l.shift(nanoseconds(500));
  EXPECT_EQ(state(l, nanoseconds(11'900)), 1u);
}

TEST(LimiterReplay, WithoutALimiterNothingIsSaved) {
  const KernelProfile p = kernel();
  LimiterReplay l{config::ThrottleSpec{}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(l.enter(nanoseconds(i * 10'000), p, Time(0)), 0);
    l.leave(nanoseconds((i + 1) * 10'000));
  }
}

}  // namespace
}  // namespace trn3sim::models
