// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "models/hbm_exact.hpp"

#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/hbm_drive.hpp"

#include "models/hbm_map.hpp"
#include "unit/models/hbm_support.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

// 8.0 Gb/s: a burst takes 1 ns, so a clock 0.5 ns and a tick 0.25 ns.
config::HbmSpec exact_stack() {
  config::HbmSpec s = one_nanosecond_bursts();
  s.mode = "exact";
  s.channel_hash = false;
  s.exact = {ns(45), ns(1.25), ns(4.375), ns(8), 8, 80, 20};
  return s;
}

class Driven {
 public:
  explicit Driven(const config::HbmSpec& spec) : channel_(ExactTiming(spec, 4)) {}
  void push(std::int32_t bank, std::int32_t row, bool write = false) {
    channel_.push({0, next_id_++, row, static_cast<std::int16_t>(bank), 0, write});
  }
  // Ticks of the column commands in the order of issue, and their ids.
  std::vector<ExactChannel::Done> run() {
    while (!channel_.empty()) channel_.step();
    return channel_.done();
  }

 private:
  ExactChannel channel_;
  std::int64_t next_id_ = 0;
};

TEST(HbmExact, OneRowIsOpenedAndReadInOrder) {
  Driven d(exact_stack());
  for (int i = 0; i < 3; ++i) d.push(0, 7);
  const auto done = d.run();
  ASSERT_EQ(done.size(), 3U);
  // tRCD 19.375 ns is 39 clocks, tCCD_L 2.5 ns is 5 clocks, CL 12.5 ns is 25 clocks and a burst 2.
  EXPECT_EQ(done[0].command, 78);
  EXPECT_EQ(done[1].command, 78 + 10);
  EXPECT_EQ(done[2].command, 78 + 20);
  EXPECT_EQ(done[0].end, 78 + 50 + 4);
}

TEST(HbmExact, RowHitsPassAnOlderConflictButNotItsPrecharge) {
  // Bank 0: row 1, row 2, row 1. The second read of row 1 is younger than the conflict, and is
  // served while the row is open: tRAS keeps the precharge away until 28.125 ns (57 clocks).
  Driven d(exact_stack());
  d.push(0, 1);
  d.push(0, 2);
  d.push(0, 1);
  const auto done = d.run();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[1].id, 2);
  EXPECT_EQ(done[2].id, 1);
  // tRAS 57, tRP 16.25 ns = 33, but tRC 45 ns = 90 clocks are 90 in all; tRCD 39.
  EXPECT_EQ(done[2].command, 2 * (90 + 39));
}

TEST(HbmExact, FiveActivationsTakeAWindow) {
  Driven d(exact_stack());
  for (int bank = 0; bank < 5; ++bank) d.push(bank, 1);  // groups 0, 1, 2, 3, 0
  const auto done = d.run();
  ASSERT_EQ(done.size(), 5U);
  // tRRD_S 2.5 ns = 5 clocks; the fifth waits for tFAW = 15 ns = 30 clocks.
  EXPECT_EQ(done[3].command, 78 + 30);
  EXPECT_EQ(done[4].command, 78 + 60);
}

TEST(HbmExact, WritesWaitForWaitingReads) {
  // The write came first, but opens its row only when all reads have opened theirs.
  Driven d(exact_stack());
  d.push(0, 1, true);
  for (int bank = 1; bank < 4; ++bank) d.push(bank, 1);
  const auto done = d.run();
  ASSERT_EQ(done.size(), 4U);
  for (const ExactChannel::Done& column : done) {
    // Three activations 5 clocks apart, then the write's, and tRCD 9.375 ns = 19 clocks.
    if (column.id == 0) {
      EXPECT_GE(column.command, 2 * (15 + 19));
    }
  }
}

TEST(HbmExact, RefreshesComeOnTime) {
  config::HbmSpec spec = exact_stack();
  HbmPattern pattern;
  pattern.bursts = 100'000;
  for (const char* mode : {"per_bank", "all_bank"}) {
    spec.refresh = mode;
    const HbmDriven d = drive_hbm(spec, 4, 1, pattern);
    // 48 banks of two pseudo-channels each 3900 ns; a bank may owe eight.
    const double due = 100'000 * 32.0 / d.bytes_per_second * 1e9 / 3900 * 96;
    EXPECT_NEAR(static_cast<double>(d.refreshes), due, 96 * 2) << mode;
  }
}

TEST(HbmExact, ClosedPagesCostStreamsNothingAndOpenEachBlock) {
  config::HbmSpec spec = exact_stack();
  HbmPattern random;
  random.random = true;
  random.block = 64;
  random.bursts = 20'000;
  const HbmDriven open = drive_hbm(spec, 4, 1, random);
  spec.page_policy = "closed";
  const HbmDriven closed = drive_hbm(spec, 4, 1, random);
  EXPECT_EQ(closed.activates, 10'000);  // a block of two bursts lies in one row
  EXPECT_GE(closed.share, 0.99 * open.share);
}

TEST(HbmExact, CheckBurstsTakeTheirShareOfTheBus) {
  config::HbmSpec spec = exact_stack();
  HbmPattern stream;
  stream.bursts = 50'000;
  const double whole = drive_hbm(spec, 4, 1, stream).share;
  spec.ecc = {8, 1};
  EXPECT_NEAR(drive_hbm(spec, 4, 1, stream).share / whole, 8.0 / 9.0, 0.01);
  spec.mode = "runs";
  EXPECT_NEAR(drive_hbm(spec, 4, 1, stream).share, 8.0 / 9.0, 0.01);
}

TEST(HbmMap, LettersSayWhereBurstsLie) {
  config::HbmSpec spec = exact_stack();
  spec.channels = 1;
  spec.mapping = "PG ccKccc S";
  const HbmMap fine(spec);
  EXPECT_EQ(fine.decode(1).channel, 1);
  EXPECT_EQ(fine.decode(2).group, 1);
  EXPECT_EQ(fine.decode(8).column, 1);
  EXPECT_EQ(fine.decode(32).bank, 4);  // the next bank of group 0
  EXPECT_EQ(fine.decode(128).column, 4);
  EXPECT_EQ(fine.decode(1024).sid, 1);
  EXPECT_EQ(fine.decode(3 * 1024).row, 1);
  EXPECT_EQ(fine.decode(3 * 1024).group, 1);  // XORed with the row
  EXPECT_EQ(fine.block_bits(), 0);
}

TEST(HbmMap, TheInterleaveStandsForTheSameLetters) {
  config::HbmSpec spec = hbm3e();
  const HbmMap by_interleave(spec);
  spec.mapping = "cgcPhcccKS";
  const HbmMap by_letters(spec);
  EXPECT_EQ(by_letters.block_bits(), 8);
  for (std::uint64_t burst = 0; burst < 1'000'000; burst += 1237) {
    const HbmPlace a = by_interleave.decode(burst);
    const HbmPlace b = by_letters.decode(burst);
    EXPECT_EQ(a.channel, b.channel);
    EXPECT_EQ(a.bank, b.bank);
    EXPECT_EQ(a.row, b.row);
    // The stripe's place is that of the first burst of its first block.
    if (burst % 8 != 0) continue;
    const HbmPlace c = by_letters.decode_stripe(burst >> 8);
    EXPECT_EQ(c.channel ^ static_cast<std::int32_t>(burst >> 3 & 31), b.channel);
    EXPECT_EQ(c.bank, b.bank);
    EXPECT_EQ(c.row, b.row);
  }
}

TEST(HbmMap, ImpossibleMapsAreRefused) {
  config::HbmSpec spec = hbm3e();
  for (const char* letters :
       {"PGccccKS", "PGcccccKKS", "PGcccccS", "gcccccPKS", "PGgcccccKS", "?"}) {
    spec.mapping = letters;
    EXPECT_THROW(HbmMap{spec}, base::UserError) << letters;
  }
}

}  // namespace
}  // namespace trn3sim::models
