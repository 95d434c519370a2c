// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/stack_space.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kRegions = 16;
constexpr std::int64_t kAlignment = 4096;

std::int64_t align_down(std::int64_t bytes) {
  return bytes / kAlignment * kAlignment;
}

}  // namespace

StackSpace::StackSpace(const config::ChipSpec& chip)
    : share_(align_down(chip.hbm.capacity.count() / chip.cores_per_stack())),
      region_(align_down(share_ / 2 / kRegions)),
      cursors_(static_cast<std::size_t>(chip.cores_per_stack() * kRegions), 0) {}

std::int64_t StackSpace::next_foreign(std::int64_t core, std::int32_t number, base::Bytes bytes) {
  const std::int64_t region = number % kRegions;
  std::int64_t& cursor = cursors_[static_cast<std::size_t>(core * kRegions + region)];
  if (cursor + bytes.count() > region_) cursor = 0;
  const std::int64_t at = base_of(core) + align_down(share_ / 2) + region_ * region + cursor;
  cursor += align_down(bytes.count() + kAlignment - 1);
  return at;
}

}  // namespace trn3sim::models
