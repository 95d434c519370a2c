// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Stacks and addresses that the HBM tests share.
#pragma once

#include "trn3sim/models/hbm.hpp"

#include "support/test_chip.hpp"

namespace trn3sim::models {

using base::Bytes;
using base::nanoseconds;
using base::Rate;
using base::Time;

inline Time ns(double value) {
  return Time(static_cast<std::int64_t>(value * 1e6 + 0.5));
}

// Four 12-high HBM3e stacks at 9.6 Gb/s with the timing of Ramulator 2.1's HBM3 preset, no refresh
// and the whole bus.
inline config::HbmSpec hbm3e() {
  config::HbmSpec s;
  test::set_test_hbm(s);
  s.refresh = "none";
  s.derate = 1.0;
  return s;
}

// The 8.0 Gb/s bin: 1024 GB/s per stack over 32 pseudo-channels moves 32 B in exactly 1 ns.
inline config::HbmSpec one_nanosecond_bursts() {
  config::HbmSpec s = hbm3e();
  s.bandwidth = Rate(4'096'000'000'000);
  return s;
}

// Address in pseudo-channel 0 of the `unit`-th 256 B block that this pseudo-channel holds: its
// index in the group of 32 blocks is the XOR fold of the bits above.
inline std::int64_t in_channel_0(std::int64_t unit) {
  const std::int64_t fold = (unit ^ (unit >> 5) ^ (unit >> 10)) & 31;
  return (unit * 32 + fold) * 256;
}

// 3 SIDs x 4 banks x 8 column blocks x 2 group pairs: blocks of a pseudo-channel in one row index.
inline constexpr std::int64_t kUnitsPerRow = 3 * 4 * 8 * 2;

}  // namespace trn3sim::models
