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

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::Bytes;
using base::nanoseconds;
using base::Rate;
using base::Time;

Time ns(double value) {
  return Time(static_cast<std::int64_t>(value * 1e6 + 0.5));
}

// Four 12-high HBM3e stacks at 9.6 Gb/s with the timing of Ramulator 2.1's HBM3 preset.
config::HbmSpec hbm3e() {
  config::HbmSpec s;
  s.capacity = Bytes(std::int64_t{36} << 30);
  s.bandwidth = Rate(4'915'200'000'000);
  s.channels = 16;
  s.pseudo_channels = 2;
  s.sids = 3;
  s.bank_groups = 4;
  s.banks_per_group = 4;
  s.row = Bytes(1024);
  s.burst = Bytes(32);
  s.interleave = Bytes(256);
  s.t_rcd_read = ns(19.375);
  s.t_rcd_write = ns(9.375);
  s.t_rp = ns(16.25);
  s.t_ras = ns(28.125);
  s.t_rrd_s = ns(2.5);
  s.t_rrd_l = ns(3.125);
  s.t_faw = ns(15);
  s.t_ccd_l = ns(2.5);
  s.t_wtr = ns(6.25);
  s.t_rtw = ns(12.5);
  s.t_wr = ns(20.625);
  s.t_rtp = ns(5.625);
  s.cl = ns(12.5);
  s.cwl = ns(6.25);
  s.t_refi = nanoseconds(3900);
  s.t_rfc_all_bank = nanoseconds(550);
  s.t_rfc_per_bank = nanoseconds(200);
  s.refresh = "none";
  s.controller_latency = nanoseconds(40);
  s.queue_depth = 128;
  return s;
}

// The 8.0 Gb/s bin: 1024 GB/s per stack over 32 pseudo-channels moves 32 B in exactly 1 ns.
config::HbmSpec one_nanosecond_bursts() {
  config::HbmSpec s = hbm3e();
  s.bandwidth = Rate(4'096'000'000'000);
  return s;
}

// Address in pseudo-channel 0 of the `unit`-th 256 B block that this pseudo-channel holds: its
// index in the group of 32 blocks is the XOR fold of the bits above.
std::int64_t in_channel_0(std::int64_t unit) {
  const std::int64_t fold = (unit ^ (unit >> 5) ^ (unit >> 10)) & 31;
  return (unit * 32 + fold) * 256;
}

// 3 SIDs x 4 banks x 8 column blocks x 2 group pairs: blocks of a pseudo-channel in one row index.
constexpr std::int64_t kUnitsPerRow = 3 * 4 * 8 * 2;

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
  // Precharge at 28.125, activation at 44.375, column at 63.75, on the next bus slot (the slots
  // start at the first column, 19.375): 64.375; then CL, burst and controller.
  EXPECT_EQ(conflict_at(ns(20)), ns(64.375 + 53.5));
  EXPECT_EQ(conflict_at(ns(28.125)), ns(64.375 + 53.5));
  // 0.7 ns later the column misses that slot and takes the next.
  EXPECT_EQ(conflict_at(ns(28.825)), ns(65.375 + 53.5));
}

TEST(HbmActivates, FifthWaitsForFaw) {
  // Five banks at once: offsets 0 and 64 B lie in two bank groups, the next block in the other two,
  // and unit 16 in the next bank. Activations at 0, 2.5, 5, 7.5 (tRRD_S) and then at tFAW = 15.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(Time(), in_channel_0(0), 32, false), ns(72.875));
  // Column-ready at 21.875 and the bus slots lie at 19.375 + n: 22.375.
  EXPECT_EQ(stack.access(Time(), in_channel_0(0) + 64, 32, false), ns(72.875 + 3));
  EXPECT_EQ(stack.access(Time(), in_channel_0(1), 32, false), ns(72.875 + 5));
  EXPECT_EQ(stack.access(Time(), in_channel_0(1) + 64, 32, false), ns(72.875 + 8));
  EXPECT_EQ(stack.access(Time(), in_channel_0(16), 32, false), ns(72.875 + 15));
  EXPECT_EQ(stack.activates(), 5);
}

TEST(HbmColumns, SameGroupKeepsCcdL) {
  // 64 B are two columns of one bank group, tCCD_L = 2.5 ns apart, which is three 1 ns slots.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(Time(), in_channel_0(0), 64, false), ns(72.875 + 3));
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
  // starts 1 ns apart, four columns 3 ns apart.
  stack.access(nanoseconds(2000), 0, 2048, false);
  EXPECT_EQ(stack.access(nanoseconds(3000), 0, 2048, false), ns(3053.5 + 10));
}

// Closed loop: `window` accesses of `bytes` in flight, ascending addresses. Share of the raw peak.
double stream(const config::HbmSpec& spec, std::int64_t bytes, std::size_t window, bool write,
              HbmStack* used = nullptr) {
  HbmStack own(spec, 4);
  HbmStack& stack = used != nullptr ? *used : own;
  std::priority_queue<Time, std::vector<Time>, std::greater<>> pending;
  Time now;
  const std::int64_t total = 8 << 20;
  for (std::int64_t a = 0; a < total; a += bytes) {
    if (pending.size() == window) {
      now = std::max(now, pending.top());
      pending.pop();
    }
    pending.push(stack.access(now, a, bytes, write));
  }
  while (pending.size() > 1) pending.pop();
  const Time end = pending.top() - spec.controller_latency;
  return static_cast<double>(total) / base::to_seconds(end) /
         static_cast<double>(stack.peak().count());
}

TEST(HbmStream, ReachesThePeakTimesTheDerate) {
  config::HbmSpec spec = hbm3e();
  spec.refresh = "per_bank";
  // The rest is the ramp and row openings that collide with a refresh.
  EXPECT_GT(stream(spec, 4096, 512, false), 0.97);
  EXPECT_LE(stream(spec, 4096, 512, false), 1.0);
  EXPECT_GT(stream(spec, 4096, 512, true), 0.97);
  spec.derate = 0.93;
  EXPECT_NEAR(stream(spec, 4096, 512, false), 0.93, 0.03);
}

TEST(HbmStream, AllBankRefreshStopsTheChannel) {
  // tRFC / tREFI = 550 / 3900 = 14.1 %, and rows reopen after it.
  config::HbmSpec spec = hbm3e();
  spec.refresh = "all_bank";
  const double rate = static_cast<double>(streaming_rate(spec, 4).count()) / 1228.8e9;
  EXPECT_NEAR(rate, 1.0 - 550.0 / 3900.0, 0.02);
  spec.refresh = "none";
  EXPECT_NEAR(static_cast<double>(streaming_rate(spec, 4).count()) / 1228.8e9, 1.0, 0.01);
}

TEST(HbmStream, OpensEachRowOnce) {
  // Without refresh a stream opens a 1 KiB row once: 8 MiB are 8192 rows.
  const config::HbmSpec spec = hbm3e();
  HbmStack reads(spec, 4);
  stream(spec, 4096, 512, false, &reads);
  EXPECT_EQ(reads.activates(), 8192);
  EXPECT_EQ(reads.read_bytes(), 8 << 20);
  HbmStack writes(spec, 4);
  stream(spec, 4096, 512, true, &writes);
  EXPECT_EQ(writes.activates(), 8192);  // those of the queued writes included
  EXPECT_EQ(writes.write_bytes(), 8 << 20);
  EXPECT_EQ(writes.read_bytes(), 0);
}

TEST(HbmStream, ShortWindowsAreBoundByLatency) {
  // 32 blocks of 256 B in flight, one per pseudo-channel: 8 KiB per round trip of 53.3 to 110 ns.
  const double share = stream(hbm3e(), 256, 32, false);
  EXPECT_LT(share, 8192 / 53.3e-9 / 1228.8e9);
  EXPECT_GT(share, 8192 / 110e-9 / 1228.8e9);
}

// The set-up of the reference runs: one channel of two pseudo-channels, an in-order front end and a
// queue of `depth` bursts whose entries are freed at their column command.
struct Pattern {
  const char* refresh;
  bool random;
  std::int64_t block;
  std::int64_t depth;
  double reference;
  double tolerance;
};

double one_channel(const Pattern& p) {
  config::HbmSpec spec = hbm3e();
  spec.refresh = p.refresh;
  spec.channels = 1;
  spec.bandwidth = Rate(76'800'000'000);
  spec.capacity = Bytes(spec.capacity.count() / 16);
  spec.controller_latency = Time();
  HbmStack stack(spec, 1);
  using Entry = std::pair<std::int64_t, std::int64_t>;  // issue time, bursts
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::uint64_t state = 88172645463325252ULL;  // xorshift64, fixed seed
  std::int64_t now = 0, held = 0, last = 0, next = 0, moved = 0;
  const std::int64_t total = 4 << 20, data = ns(12.5 + 0.8333).count();
  while (moved < total) {
    std::int64_t address = next;
    next += p.block;
    if (p.random) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      address = static_cast<std::int64_t>(
                    state % static_cast<std::uint64_t>(spec.capacity.count() / p.block)) *
                p.block;
    }
    for (std::int64_t o = 0; o < p.block; o += 64) {  // a column pair of one row
      const std::int64_t bytes = 64;
      while (held + bytes / 32 > p.depth) {
        now = std::max(now, queue.top().first);
        held -= queue.top().second;
        queue.pop();
      }
      const std::int64_t end = stack.access(Time(now), address + o, bytes, false).count();
      queue.emplace(std::max(now, end - data), bytes / 32);
      held += bytes / 32;
      moved += bytes;
      last = std::max(last, end);
    }
  }
  return static_cast<double>(total) / (static_cast<double>(last) * 1e-15) / 76.8e9;
}

TEST(HbmReference, RandomAccessNearRamulator) {
  // References: Ramulator 2.1 (CMU-SAFARI/ramulator2), HBM3 preset at 9.6 Gb/s, FRFCFS-RowHit, open
  // page, reads, the same address map without the channel fold, share of the peak. Tolerances are
  // relative: what slot calendars cost against a scheduler that sees its whole queue, more with the
  // shallow one.
  const Pattern patterns[] = {
      {"none", true, 256, 128, 0.766, 0.03},       {"none", true, 512, 128, 0.805, 0.03},
      {"none", true, 1024, 128, 0.825, 0.03},      {"none", true, 4096, 128, 0.907, 0.06},
      {"none", false, 4096, 128, 0.997, 0.02},     {"all_bank", true, 256, 128, 0.643, 0.03},
      {"all_bank", true, 1024, 128, 0.691, 0.03},  {"all_bank", true, 4096, 128, 0.767, 0.06},
      {"all_bank", false, 4096, 128, 0.836, 0.03}, {"per_bank", true, 64, 128, 0.415, 0.05},
      {"per_bank", true, 256, 128, 0.721, 0.03},   {"per_bank", true, 512, 128, 0.758, 0.03},
      {"per_bank", true, 1024, 128, 0.769, 0.03},  {"per_bank", true, 4096, 128, 0.888, 0.05},
      {"per_bank", false, 4096, 128, 0.985, 0.04}, {"none", true, 256, 64, 0.578, 0.12},
      {"none", true, 4096, 64, 0.771, 0.06},       {"none", false, 4096, 64, 0.886, 0.05},
      {"per_bank", true, 256, 64, 0.531, 0.12},    {"per_bank", true, 4096, 64, 0.752, 0.10},
  };
  for (const Pattern& p : patterns) {
    const double share = one_channel(p);
    RecordProperty(std::string(p.refresh) + (p.random ? " random " : " stream ") +
                       std::to_string(p.block) + " queue " + std::to_string(p.depth),
                   std::to_string(share) + " " + std::to_string(p.reference));
    EXPECT_NEAR(share / p.reference, 1.0, p.tolerance)
        << p.refresh << (p.random ? " random " : " stream ") << p.block << ": " << share;
  }
}

TEST(HbmMix, TurnaroundIsPaidPerBatch) {
  // Two reads to one write, 4 KiB each, 512 in flight: 0.85 to 0.93 of the peak. If every change of
  // direction cost its 25.8 ns, runs of 16 bursts (13 ns) could not exceed 0.4.
  const config::HbmSpec spec = hbm3e();
  HbmStack stack(spec, 4);
  std::priority_queue<Time, std::vector<Time>, std::greater<>> pending;
  Time now;
  const std::int64_t count = 4096;
  std::int64_t reads = 0, writes = std::int64_t{1} << 30;
  for (std::int64_t i = 0; i < count; ++i) {
    if (pending.size() == 512) {
      now = std::max(now, pending.top());
      pending.pop();
    }
    const bool write = i % 3 == 2;
    std::int64_t& address = write ? writes : reads;
    pending.push(stack.access(now, address, 4096, write));
    address += 4096;
  }
  while (pending.size() > 1) pending.pop();
  const double share =
      static_cast<double>(count) * 4096 / base::to_seconds(pending.top()) / 1228.8e9;
  EXPECT_GT(share, 0.85);
  EXPECT_LT(share, 0.93);
}

TEST(HbmMix, ReadsPassQueuedWritesAndWaitForADrain) {
  // A pseudo-channel drains when 1.5 x 128 / 2 = 96 bursts wait, which are 12 blocks of 256 B.
  const auto read_after = [](std::int64_t blocks) {
    HbmStack stack(one_nanosecond_bursts(), 4);
    for (std::int64_t u = 0; u < 12; ++u) stack.access(Time(), in_channel_0(u), 256, false);
    for (std::int64_t u = 0; u < blocks; ++u) {
      stack.access(nanoseconds(1000), in_channel_0(u), 256, true);
    }
    return stack.access(nanoseconds(1000), in_channel_0(0), 32, false);
  };
  // 11 blocks stay in the queue: a row hit as without them.
  EXPECT_EQ(read_after(11), ns(1053.5));
  // The twelfth starts the drain: 96 columns from 1000 on, the last at 1095 or a few slots later,
  // and then CWL + burst + tWTR = 13.5 ns, rounded up to a slot, before the read's column.
  EXPECT_GE(read_after(12), ns(1095 + 14 + 53.5));
  EXPECT_LE(read_after(12), ns(1095 + 14 + 53.5 + 12));
}

TEST(HbmMix, AnUnloadedWriteIsTakenAtOnce) {
  // CWL 6.25 + burst 1 + controller 40; the row opens later, when the queue drains, and is counted.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(nanoseconds(10), 0, 32, true), ns(10 + 47.25));
  EXPECT_EQ(stack.activates(), 1);
  EXPECT_EQ(stack.write_bytes(), 32);
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

TEST(HbmRefresh, PerBankRefreshesTakeActivationSlots) {
  // Random 64 B opens a row each time and is bound by tFAW: 4 per 15 ns are 1040 activations per
  // tREFI, of which 48 refreshes take their part: 4.6 % less. Blocked banks cost little beside it.
  const double none = one_channel({"none", true, 64, 128, 0, 0});
  const double per_bank = one_channel({"per_bank", true, 64, 128, 0, 0});
  EXPECT_NEAR(per_bank / none, 1.0 - 48.0 / 1040.0, 0.015);
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
