// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/stats/timeline.hpp"

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>

namespace trn3sim::stats {
namespace {

Timeline with_limit(std::int64_t limit) {
  TimelineSpec spec;
  spec.limit = limit;
  Timeline t(spec);
  t.add_track({0, 0, "compute", true});
  t.add_track({0, 1, "compute", true});
  return t;
}

void add(Timeline& t, std::int32_t track, std::int64_t start, std::int64_t end) {
  Timeline::Slice s;
  s.track = track;
  s.start = base::Time(start);
  s.end = base::Time(end);
  t.slice(s);
}

TEST(Timeline, KeepsEverythingWithinTheLimit) {
  Timeline t = with_limit(2);
  add(t, 0, 0, 5);
  add(t, 1, 3, 5);
  EXPECT_EQ(t.slices().size(), 2U);
  EXPECT_EQ(t.dropped(), 0);
  EXPECT_EQ(t.complete_until(), base::kTimeMax);
}

TEST(Timeline, DropsAllThatEndWithTheFirstOneTooManyOrLater) {
  // Three end at 5 or before; the fourth is one too many and ends at 7, as the third does: both go.
  Timeline t = with_limit(3);
  add(t, 0, 0, 4);
  add(t, 1, 0, 5);
  add(t, 0, 4, 7);
  add(t, 1, 5, 7);
  add(t, 0, 7, 9);
  ASSERT_EQ(t.slices().size(), 2U);
  EXPECT_EQ(t.slices()[1].end, base::Time(5));
  EXPECT_EQ(t.dropped(), 3);
  EXPECT_EQ(t.complete_until(), base::Time(7));
}

TEST(Timeline, NamesAreStoredOnce) {
  Timeline t = with_limit(1);
  EXPECT_EQ(t.name_id("gemm"), 0);
  EXPECT_EQ(t.name_id("add"), 1);
  EXPECT_EQ(t.name_id("gemm"), 0);
  EXPECT_EQ(t.names(), (std::vector<std::string>{"gemm", "add"}));
}

TEST(Timeline, RefusesWhatCannotBe) {
  Timeline t = with_limit(9);
  EXPECT_THROW(add(t, 2, 0, 1), base::InternalError) << "no such track";
  EXPECT_THROW(add(t, 0, 2, 1), base::InternalError) << "ends before it starts";
  add(t, 0, 0, 5);
  EXPECT_THROW(add(t, 1, 0, 4), base::InternalError) << "ends before an earlier one";
}

}  // namespace
}  // namespace trn3sim::stats
