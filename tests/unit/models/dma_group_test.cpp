// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/dma_group.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/rate_limiter.hpp"

#include "support/test_chip.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::Time;

// Remembers every access; one server, so that the order of accesses shows in the times.
class Recorder : public Memory {
 public:
  Recorder() { limiter_.reset(base::Rate(400'000'000'000)); }
  Time access(Time now, std::int64_t address, std::int64_t bytes, bool write) override {
    accesses.emplace_back(now.count(), address, bytes, write);
    return limiter_.serve(now, bytes).end + base::nanoseconds(100);
  }
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>> accesses;

 private:
  RateLimiter limiter_;
};

class DmaGroupTest : public ::testing::Test {
 protected:
  DmaGroupTest() {
    program.cores.resize(2);
    program.operands = {{"a", std::int64_t{1} << 24}, {"b", std::int64_t{1} << 24}};
    for (int i = 0; i < 6; ++i) {
      DmaTransfer t;
      t.operand = i % 2;
      t.rows = 37 + 100 * i;
      t.row_bytes = 256 << (i % 4);
      t.queue = static_cast<std::int16_t>(i % 3);
      t.direction = i == 3 ? DmaDirection::SbufToHbm : DmaDirection::HbmToSbuf;
      t.accumulate = i == 3;
      program.transfers.push_back(t);
    }
  }

  // Each completion starts the next of 40 transfers on its core, some time later. Returns all
  // completions.
  std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> drive(Memory& memory,
                                                                          bool ahead) {
    DmaGroup group(chip);
    group.load(program);
    std::int32_t started = 0;
    const auto start = [&](Time at, std::int32_t core) {
      group.post({at, core, started % 5, started % 6});
      ++started;
    };
    for (std::int32_t i = 0; i < 6; ++i) start(base::nanoseconds(30 * i), i % 2);
    std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> all;
    std::vector<DmaCompletion> done;
    while (!group.idle()) {
      const Time now = group.next();
      done.clear();
      group.advance(now, memory, done);
      for (const DmaCompletion& c : done) {
        all.emplace_back(c.at.count(), c.core, c.transfer);
        if (started < 40) start(c.at + base::nanoseconds(7 * (started % 4)), c.core);
      }
      if (ahead && done.empty()) group.run_ahead(memory);
    }
    return all;
  }

  config::ChipSpec chip = test::test_chip();
  TileProgram program;
};

TEST_F(DmaGroupTest, RunningAheadChangesNoAccessAndNoCompletion) {
  Recorder step, ahead;
  const auto expected = drive(step, false);
  EXPECT_EQ(drive(ahead, true), expected);
  EXPECT_EQ(expected.size(), 40u);
  EXPECT_EQ(ahead.accesses, step.accesses);
  EXPECT_GT(step.accesses.size(), 1000u);
}

// Two transfers far apart are active one after the other; two at once count once.
TEST_F(DmaGroupTest, ActiveIsTheUnionOverEngines) {
  const auto active = [&](Time second) {
    Recorder memory;
    DmaGroup group(chip);
    group.record(10);
    group.load(program);
    group.post({base::nanoseconds(0), 0, 0, 0});
    group.post({second, 1, 0, 0});
    std::vector<DmaCompletion> done;
    while (!group.idle()) group.advance(group.next(), memory, done);
    EXPECT_EQ(group.records().size(), 2u);
    Time sum;
    for (const TransferRecord& r : group.records()) sum += r.end - r.begin;
    return std::pair(group.active(), sum);
  };
  const auto [apart, sum_apart] = active(base::nanoseconds(1'000'000));
  EXPECT_EQ(apart, sum_apart);
  const auto [together, sum_together] = active(base::nanoseconds(0));
  EXPECT_LT(together, sum_together);
  EXPECT_GT(together, Time(sum_together.count() / 2 - 1));
}

TEST_F(DmaGroupTest, AStartBeforeWhatIsDoneIsABug) {
  Recorder memory;
  DmaGroup group(chip);
  group.load(program);
  group.post({base::nanoseconds(10), 0, 0, 0});
  group.run_ahead(memory);
  EXPECT_THROW(group.post({base::nanoseconds(20), 0, 0, 1}), base::InternalError);
}

}  // namespace
}  // namespace trn3sim::models
