// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "trn3sim/models/hbm.hpp"

#include "unit/models/hbm_support.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

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

TEST(HbmRefresh, PerBankRefreshesTakeActivationSlots) {
  // Random 64 B opens a row each time and is bound by tFAW: 4 per 15 ns are 1040 activations per
  // tREFI, of which 48 refreshes take their part: 4.6 % less. Blocked banks cost little beside it.
  const double none = one_channel({"none", true, 64, 128, 0, 0});
  const double per_bank = one_channel({"per_bank", true, 64, 128, 0, 0});
  EXPECT_NEAR(per_bank / none, 1.0 - 48.0 / 1040.0, 0.015);
}

TEST(HbmMix, TurnaroundIsPaidPerBatch) {
  // Two reads to one write, 4 KiB each, 512 in flight. A batch of 38 writes and its 76 reads
  // take 95 ns of the bus and 25.8 ns of turnaround: 0.79, more where those overlap. If every change
  // of direction cost that, runs of 16 bursts (13 ns) could not exceed 0.4.
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
  EXPECT_GT(share, 0.78);
  EXPECT_LT(share, 0.86);
}

TEST(HbmMix, ReadsPassQueuedWritesAndWaitForADrain) {
  // A pseudo-channel drains when 60 % of 128 / 2 = 38 bursts wait, which are in the fifth block of 256 B.
  const auto read_after = [](std::int64_t blocks) {
    HbmStack stack(one_nanosecond_bursts(), 4);
    for (std::int64_t u = 0; u < 12; ++u) stack.access(Time(), in_channel_0(u), 256, false);
    for (std::int64_t u = 0; u < blocks; ++u) {
      stack.access(nanoseconds(1000), in_channel_0(u), 256, true);
    }
    return stack.access(nanoseconds(1000), in_channel_0(0), 32, false);
  };
  // Four blocks stay in the queue: a row hit as without them.
  EXPECT_EQ(read_after(4), ns(1053.5));
  // The fifth starts the drain: 40 columns from 1000 on, the last at 1039 or a little later, and
  // then CWL + burst + tWTR = 13.5 ns before the read's column.
  EXPECT_GE(read_after(5), ns(1039 + 13.5 + 53.5));
  EXPECT_LE(read_after(5), ns(1039 + 13.5 + 53.5 + 12));
}

TEST(HbmMix, AnUnloadedWriteIsTakenAtOnce) {
  // CWL 6.25 + burst 1 + controller 40; the row opens later, when the queue drains, and is counted.
  HbmStack stack(one_nanosecond_bursts(), 4);
  EXPECT_EQ(stack.access(nanoseconds(10), 0, 32, true), ns(10 + 47.25));
  EXPECT_EQ(stack.activates(), 1);
  EXPECT_EQ(stack.write_bytes(), 32);
}

}  // namespace
}  // namespace trn3sim::models
