// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/progress.hpp"

#include <gtest/gtest.h>

namespace trn3sim::app {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  double now_ = 100;
  std::string shown_;
  Progress progress_{[this] { return now_; }, [this](const std::string& text) { shown_ = text; }};

  // What is shown after an update at `seconds` from the start.
  std::string at(double seconds, std::int64_t done, const char* stage = "simulating") {
    now_ = 100 + seconds;
    shown_.clear();
    progress_.update({done, 1000, base::nanoseconds(5), stage});
    return shown_;
  }
};

TEST_F(ProgressTest, SaysNothingInTheFirstTwoSeconds) {
  EXPECT_EQ(at(0, 0), "");
  EXPECT_EQ(at(1.9, 900), "");
  progress_.finish();
  EXPECT_EQ(shown_, "");  // nothing to clear
}

TEST_F(ProgressTest, StageShareRateAndRemainingTime) {
  at(0, 0);
  // 250 of 1000 in 2.5 s: 100 operations a second, 7.5 s to go.
  EXPECT_EQ(at(2.5, 250), "\rsimulating 25 %, 100 ops/s, ETA 8 s, at 5.00 ns\x1b[K");
  progress_.finish();
  EXPECT_EQ(shown_, "\r\x1b[K");
}

TEST_F(ProgressTest, RateStartsAnewWithAStage) {
  at(0, 0, "profiling kernels");
  at(3, 600, "simulating");
  // 100 operations in the first second of the stage, 300 to go.
  EXPECT_EQ(at(4, 700, "simulating"), "\rsimulating 70 %, 100 ops/s, ETA 3 s, at 5.00 ns\x1b[K");
}

TEST_F(ProgressTest, IsShownAtMostFiveTimesASecond) {
  at(0, 0);
  EXPECT_NE(at(3, 10), "");
  EXPECT_EQ(at(3.1, 20), "");
  EXPECT_NE(at(3.25, 30), "");
}

}  // namespace
}  // namespace trn3sim::app
