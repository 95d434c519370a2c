// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/hbm.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "trn3sim/base/error.hpp"

#include "unit/models/hbm_support.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

TEST(HbmLatency, ClosedRowHitAndConflictAreExact) {
  HbmStack stack(one_nanosecond_bursts(), 4);
  // Closed row: tRCD 19.375 + CL 12.5 + burst 1 + controller 40.
  EXPECT_EQ(stack.access(Time(), in_channel_0(0), 32, false), ns(72.875));
  // Open row, one microsecond later: without tRCD.
  EXPECT_EQ(stack.access(nanoseconds(1000), in_channel_0(0), 32, false), ns(1000 + 53.5));
  // Row 16 of the same bank (rows 1 to 15 lie in other banks by the XOR): tRP 16.25 + tRCD on top.
  EXPECT_EQ(stack.access(nanoseconds(2000), in_channel_0(16 * kUnitsPerRow), 32, false),
            ns(2000 + 16.25 + 72.875));
  EXPECT_EQ(stack.activates(), 2);
}

TEST(HbmLatency, PrechargeWaitsForRasAndNotLonger) {
  // The row opens at 0, so it may close at tRAS = 28.125 ns (tRTP after the read at 19.375 gives
  // 25).
  const auto conflict_at = [](Time t) {
    HbmStack stack(one_nanosecond_bursts(), 4);
    stack.access(Time(), in_channel_0(0), 32, false);
    return stack.access(t, in_channel_0(16 * kUnitsPerRow), 32, false);
  };
  // Precharge at 28.125, activation at 44.375, column at 63.75; then CL, burst and controller.
  EXPECT_EQ(conflict_at(ns(20)), ns(63.75 + 53.5));
  EXPECT_EQ(conflict_at(ns(28.125)), ns(63.75 + 53.5));
  EXPECT_EQ(conflict_at(ns(28.825)), ns(64.45 + 53.5));
}

TEST(HbmActivates, FifthWaitsForFaw) {
  // Five banks at once: offsets 0 and 64 B lie in two bank groups, the next block in the other two,
  // and unit 16 in the next bank. Activations at 0, 2.5, 5, 7.5 (tRRD_S) and then at tFAW = 15.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(Time(), in_channel_0(0), 32, false), ns(72.875));
  EXPECT_EQ(stack.access(Time(), in_channel_0(0) + 64, 32, false), ns(72.875 + 2.5));
  EXPECT_EQ(stack.access(Time(), in_channel_0(1), 32, false), ns(72.875 + 5));
  EXPECT_EQ(stack.access(Time(), in_channel_0(1) + 64, 32, false), ns(72.875 + 7.5));
  EXPECT_EQ(stack.access(Time(), in_channel_0(16), 32, false), ns(72.875 + 15));
  EXPECT_EQ(stack.activates(), 5);
}

TEST(HbmColumns, SameGroupKeepsCcdL) {
  // 64 B are two columns of one bank group, tCCD_L = 2.5 ns apart.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(Time(), in_channel_0(0), 64, false), ns(72.875 + 2.5));
}

TEST(HbmColumns, BlocksOfOneChannelShareItsBus) {
  // Eight blocks in the open rows of one pseudo-channel are 64 bursts of 1 ns: the last one ends
  // at least 63 ns after the first could, and two bank group pairs keep the bus nearly full.
  HbmStack stack(one_nanosecond_bursts(), 4);
  for (std::int64_t u = 0; u < 8; ++u) stack.access(Time(), in_channel_0(u), 256, false);
  Time last;
  for (std::int64_t u = 0; u < 8; ++u) {
    last = std::max(last, stack.access(nanoseconds(1000), in_channel_0(u), 256, false));
  }
  EXPECT_GE(last, ns(1053.5 + 63));
  EXPECT_LE(last, ns(1053.5 + 63 + 12));
  // Blocks in eight different pseudo-channels do not wait for each other: 8 bursts in two groups,
  // starts 1 ns apart, four columns 2.5 ns apart.
  stack.access(nanoseconds(2000), 0, 2048, false);
  EXPECT_EQ(stack.access(nanoseconds(3000), 0, 2048, false), ns(3053.5 + 8.5));
}

TEST(HbmScaling, MoreBandwidthIsNotSlower) {
  // The same accesses at the same times end no later (last of all) on a faster stack.
  Time before = base::kTimeMax;
  for (std::int64_t tbps10 : {20, 30, 35, 40, 45, 49, 50, 55, 60, 70, 80, 100}) {
    config::HbmSpec spec = hbm3e();
    spec.bandwidth = Rate(tbps10 * 100'000'000'000);
    HbmStack stack(spec, 4);
    Time last;
    for (std::int64_t i = 0; i < 2048; ++i) {
      last = std::max(last, stack.access(Time(), i * 4096, 4096, false));
    }
    EXPECT_LE(last, before) << tbps10;
    // Four bank groups give 32 B per 2.5 ns each: 51.2 GB/s per pseudo-channel, 6.55 TB/s in all.
    EXPECT_GE(base::to_seconds(last), 2048 * 4096 / 1638.4e9) << tbps10;
    before = last;
  }
}

TEST(HbmScaling, ClosePinRatesNeverSlowAStream) {
  // Up to where the bank groups bind, near 6.1 TB/s with this derate: each step of 1 % is a gain.
  const auto rate = [](std::int64_t gbps) {
    config::HbmSpec spec = hbm3e();
    spec.bandwidth = Rate(gbps * 1'000'000'000);
    spec.derate = 0.93;
    return streaming_rate(spec, 4).count();
  };
  std::int64_t before = 0;
  for (std::int64_t gbps :
       {3000, 3030, 3500, 3535, 3550, 4900, 5200, 5252, 5300, 5353, 5990, 6050}) {
    const std::int64_t now = rate(gbps);
    EXPECT_GT(now, before) << gbps;
    before = now;
  }
}

TEST(HbmAddresses, PowerOfTwoStridesUseEveryChannel) {
  // 256 B every 8 KiB would stay in one of 32 pseudo-channels without the fold and take 32 times as
  // long as a dense stream; with it at most about four times (each access opens its rows).
  const auto time = [](std::int64_t stride) {
    HbmStack stack(hbm3e(), 4);
    Time last;
    for (std::int64_t i = 0; i < 4096; ++i) {
      last = std::max(last, stack.access(Time(), i * stride, 256, false));
    }
    return last;
  };
  EXPECT_LT(time(8192).count(), 4 * time(256).count());
  EXPECT_LT(time(65536).count(), 4 * time(256).count());
}

TEST(HbmAddresses, WrapAtTheCapacity) {
  HbmStack stack(one_nanosecond_bursts(), 4);
  const std::int64_t capacity = hbm3e().capacity.count();
  stack.access(Time(), 0, 32, false);
  // The same row one capacity further is a hit; an access over the end counts all its bytes.
  EXPECT_EQ(stack.access(nanoseconds(1000), 3 * capacity, 32, false), ns(1053.5));
  stack.access(nanoseconds(2000), capacity - 256, 512, false);
  EXPECT_EQ(stack.read_bytes(), 64 + 512);
}

TEST(HbmRefresh, CountsPerBankRefreshes) {
  // 32 pseudo-channels x 48 banks, each once per 3900 ns.
  config::HbmSpec spec = hbm3e();
  spec.refresh = "per_bank";
  EXPECT_EQ(HbmStack(spec, 4).refreshes(nanoseconds(39'000)), 10 * 32 * 48);
  EXPECT_EQ(HbmStack(spec, 4).refreshes(nanoseconds(3'899)), 32 * 48 * 3899 / 3900);
  spec.refresh = "all_bank";
  EXPECT_EQ(HbmStack(spec, 4).refreshes(nanoseconds(39'000)), 10 * 32 * 48);
  spec.refresh = "none";
  EXPECT_EQ(HbmStack(spec, 4).refreshes(nanoseconds(39'000)), 0);
}

TEST(HbmRefresh, PerBankClosesTheRowAndBlocksItsBankOnly) {
  config::HbmSpec spec = one_nanosecond_bursts();
  spec.refresh = "per_bank";
  HbmStack stack(spec, 4);
  // Bank 0 is due first, at 3900 / 48 = 81.25 ns, and busy for tRFCpb = 200 ns. A request at 100 ns
  // waits until 281.25 and opens the row; bank 1 (offset 64 B) is due at 162.5 and free at 100, but
  // the refresh opened the activation slots at 81.25 + n x 2.5, so its row opens at 101.25.
  EXPECT_EQ(stack.access(nanoseconds(100), in_channel_0(0) + 64, 32, false), ns(101.25 + 72.875));
  const Time blocked = stack.access(nanoseconds(100), in_channel_0(0), 32, false);
  EXPECT_GE(blocked, ns(281.25 + 72.875));
  EXPECT_LE(blocked, ns(281.25 + 72.875 + 3.5));  // the next activation and bus slot
}

TEST(HbmReset, RepeatsExactly) {
  config::HbmSpec spec = hbm3e();
  spec.refresh = "per_bank";
  HbmStack stack(spec, 4);
  const auto run = [&] {
    std::vector<Time> ends;
    for (std::int64_t i = 0; i < 2000; ++i) {
      ends.push_back(stack.access(nanoseconds(i * 3), i * 7919 * 64 % (1 << 28), 1024, i % 5 == 0));
    }
    return ends;
  };
  const auto first = run();
  const std::int64_t activates = stack.activates();
  stack.reset();
  EXPECT_EQ(stack.activates(), 0);
  EXPECT_EQ(stack.read_bytes(), 0);
  EXPECT_EQ(run(), first);
  EXPECT_EQ(stack.activates(), activates);
}

TEST(HbmErrors, NameTheKey) {
  config::HbmSpec spec = hbm3e();
  spec.refresh = "sometimes";
  try {
    HbmStack stack(spec, 4);
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_STREQ(e.what(),
                 "chip: hbm.refresh: found \"sometimes\"; expected \"per_bank\", \"all_bank\" or "
                 "\"none\"");
  }
  HbmStack stack(hbm3e(), 4);
  stack.access(nanoseconds(5), 0, 32, false);
  EXPECT_THROW(stack.access(nanoseconds(4), 0, 32, false), base::InternalError);
}

}  // namespace
}  // namespace trn3sim::models
