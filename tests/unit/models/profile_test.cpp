// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"
#include "trn3sim/models/kernel_profile.hpp"

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::microseconds;
using base::Rate;
using base::Time;

constexpr std::int64_t kGb = 1'000'000'000;

// 100 MB of data and 100 us of compute: 400 us at 250 GB/s, 200 us at 500, 101 us at 990, and 100
// us from 1000 GB/s on.
KernelProfile profile() {
  KernelProfile p;
  p.duration = microseconds(100);
  p.counts.hbm_read_bytes = 100'000'000;  // all that binds at the lowest rate
  p.curve = {{Rate(250 * kGb), microseconds(400)},
             {Rate(500 * kGb), microseconds(200)},
             {Rate(1000 * kGb), microseconds(100)},
             {Rate(4000 * kGb), microseconds(100)}};
  return p;
}

TEST(KernelProfile, IsExactAtItsPoints) {
  const KernelProfile p = profile();
  for (const ProfilePoint& point : p.curve) EXPECT_EQ(p.at(point.served), point.duration);
}

TEST(KernelProfile, InterpolatesInTheInverseRate) {
  const KernelProfile p = profile();
  // A kernel bound by 100 MB takes 100 MB / rate; linear in 1/rate meets that between its points:
  // 800 GB/s -> 125 us, 400 GB/s -> 250 us. The share is rounded to 2^-36, so within 10 fs per us.
  EXPECT_NEAR(static_cast<double>(p.at(Rate(800 * kGb)).count()),
              static_cast<double>(microseconds(125).count()), 1e4);
  EXPECT_NEAR(static_cast<double>(p.at(Rate(400 * kGb)).count()),
              static_cast<double>(microseconds(250).count()), 1e4);
  // Between two equal durations nothing changes.
  EXPECT_EQ(p.at(Rate(1700 * kGb)), microseconds(100));
}

TEST(KernelProfile, ExtrapolatesByBytesOverRate) {
  const KernelProfile p = profile();
  EXPECT_EQ(p.at(Rate(125 * kGb)), microseconds(800));  // half the lowest rate, twice the time
  EXPECT_EQ(p.at(Rate(1 * kGb)), microseconds(100'000));
  EXPECT_EQ(p.at(Rate(9000 * kGb)), microseconds(100));  // unlimited
  EXPECT_THROW(static_cast<void>(p.at(Rate(0))), base::InternalError);
  EXPECT_THROW(static_cast<void>(p.at(Rate(1))),
               base::InternalError);  // 1e8 s pass the largest time
}

TEST(KernelProfile, MoreRateIsNeverSlower) {
  const KernelProfile p = profile();
  Time before = base::kTimeMax;
  for (std::int64_t rate = 10 * kGb; rate < 4100 * kGb; rate += 7'777'777'777) {
    EXPECT_LE(p.at(Rate(rate)), before) << rate;
    before = p.at(Rate(rate));
  }
}

TEST(KernelProfile, LargeRatesAndTimesStayExact) {
  KernelProfile p;
  p.duration = Time(1'000'000'000'000'000'000);  // 1000 s
  p.curve = {{Rate(20'000 * kGb), Time(4'000'000'000'000'000'000)},
             {Rate(80'000 * kGb), Time(1'000'000'000'000'000'000)}};
  // 40 TB/s: 80e15 B / 40e12 B/s = 2000 s.
  EXPECT_NEAR(base::to_seconds(p.at(Rate(40'000 * kGb))), 2000.0, 1e-6);
}

TEST(KernelProfile, DemandIsTheKnee) {
  KernelProfile p = profile();
  EXPECT_EQ(p.demand(), Rate(1000 * kGb));
  p.curve[2].duration = Time(100'100'000'000);  // 0.1 % over the unlimited time still counts
  EXPECT_EQ(p.demand(), Rate(1000 * kGb));
  p.curve[2].duration = Time(100'100'000'001);
  EXPECT_EQ(p.demand(), Rate(4000 * kGb));
}

TEST(KernelProfile, WithoutDataNothingIsDemanded) {
  KernelProfile p;
  p.duration = microseconds(7);
  EXPECT_EQ(p.demand(), Rate(0));
  EXPECT_EQ(p.at(Rate(0)), microseconds(7));
  p.curve = {{Rate(0), microseconds(7)}};
  EXPECT_EQ(p.demand(), Rate(0));
  EXPECT_EQ(p.at(Rate(5)), microseconds(7));
}

}  // namespace
}  // namespace trn3sim::models
