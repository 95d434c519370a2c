// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A stack walks channels in the same state once. Against a walk of every pseudo-channel.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "models/hbm_channel.hpp"
#include "models/hbm_map.hpp"
#include "unit/models/hbm_support.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

constexpr std::int64_t kBlock = 256, kChannels = 32;

class EveryChannel {
 public:
  explicit EveryChannel(const config::HbmSpec& spec)
      : timing_(spec, 4),
        map_(spec),
        latency_(spec.controller_latency),
        channels_(kChannels, PseudoChannel(timing_)) {}

  // Whole blocks from `block` on.
  Time access(Time now, std::int64_t block, std::int64_t blocks, bool write) {
    std::int64_t done = now.count();
    for (std::int64_t b = block; b < block + blocks; ++b) {
      const HbmPlace place = map_.decode_stripe(static_cast<std::uint64_t>(b / kChannels));
      ColumnRun run;
      run.row = place.row;
      run.group = static_cast<std::int8_t>(place.group);
      run.bank = static_cast<std::int16_t>(place.bank);
      run.pair = true;
      run.columns = static_cast<std::int16_t>((kBlock >> map_.burst_bits()) / 2);
      PseudoChannel& channel =
          channels_[static_cast<std::size_t>(b % kChannels ^ std::int64_t{place.channel})];
      channel.advance(now.count());
      done =
          std::max(done, write ? channel.write(now.count(), run) : channel.read(now.count(), run));
    }
    return Time(done) + latency_;
  }
  [[nodiscard]] std::int64_t activates() const {
    std::int64_t sum = 0;
    for (const PseudoChannel& channel : channels_) sum += channel.activates();
    return sum;
  }

 private:
  HbmTiming timing_;
  HbmMap map_;
  Time latency_;
  std::vector<PseudoChannel> channels_;
};

// Accesses of one to three units, aligned to the unit only, and of ever smaller units.
TEST(HbmLockstep, IsTheWalkOfEveryChannel) {
  for (const char* refresh : {"none", "per_bank", "all_bank"}) {
    config::HbmSpec spec = hbm3e();
    spec.refresh = refresh;
    ASSERT_EQ(HbmMap(spec).block_bits(), 8);
    ASSERT_EQ(HbmMap(spec).channel_bits(), 5);
    HbmStack stack(spec, 4);
    for (int round = 0; round < 2; ++round) {  // the second after a reset
      stack.reset();
      EveryChannel all(spec);
      std::mt19937 random(7);
      Time now;
      for (std::int64_t unit = kChannels; unit > 0; unit /= 2) {
        for (int i = 0; i < 400; ++i) {
          const std::int64_t block = static_cast<std::int64_t>(random() % (1u << 18)) / unit * unit;
          const std::int64_t blocks = unit * (1 + static_cast<std::int64_t>(random() % 3));
          const bool write = random() % 4 == 0;
          ASSERT_EQ(stack.access(now, block * kBlock, blocks * kBlock, write),
                    all.access(now, block, blocks, write))
              << refresh << ", units of " << unit << " blocks, access " << i;
          if (random() % 2 == 0) now += nanoseconds(static_cast<std::int64_t>(random() % 40));
          if (random() % 100 == 0) now += nanoseconds(10'000);
        }
        ASSERT_EQ(stack.activates(), all.activates()) << refresh << ", units of " << unit;
      }
    }
  }
}

// A part of a block touches one channel: the others of its group must not see it.
TEST(HbmLockstep, PartsOfABlockSplitTheGroup) {
  HbmStack stack(hbm3e(), 4);
  stack.access(Time(), 0, kChannels * kBlock, false);
  const std::int64_t row = kUnitsPerRow * kChannels * kBlock;  // another row: one more activation
  const std::int64_t before = stack.activates();
  EXPECT_EQ(before, 2 * kChannels);
  stack.access(nanoseconds(1000), 16 * row, 32, false);
  EXPECT_EQ(stack.activates(), before + 1);
  // Every channel but one has its two first rows open: only that one activates again.
  stack.access(nanoseconds(2000), 0, kChannels * kBlock, false);
  EXPECT_EQ(stack.activates(), before + 2);
}

}  // namespace
}  // namespace trn3sim::models
