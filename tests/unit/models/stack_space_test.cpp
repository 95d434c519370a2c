// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/stack_space.hpp"

#include "support/test_chip.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::Bytes;

TEST(StackSpace, ForeignTrafficWalksItsRegionInTheUpperHalfOfTheShare) {
  const config::ChipSpec chip = test::test_chip();
  StackSpace space(chip);
  const std::int64_t share = space.base_of(1);
  EXPECT_GT(share, chip.hbm.capacity.count() / chip.cores_per_stack() - 4096);
  const std::int64_t first = space.next_foreign(0, 0, Bytes(5000));
  EXPECT_GE(first, share / 2 - 4096);
  EXPECT_EQ(space.next_foreign(0, 0, Bytes(1)), first + 8192) << "whole 4 KiB";
  // Others have places of their own; numbers repeat after sixteen.
  EXPECT_EQ(space.next_foreign(1, 0, Bytes(1)), first + share);
  const std::int64_t region = space.next_foreign(0, 1, Bytes(1)) - first;
  EXPECT_NEAR(static_cast<double>(region), static_cast<double>(share) / 32, 4096);
  EXPECT_EQ(space.next_foreign(0, 17, Bytes(1)), first + region + 4096);
  // At its end a region starts over.
  EXPECT_EQ(space.next_foreign(0, 0, Bytes(region)), first);
}

}  // namespace
}  // namespace trn3sim::models
