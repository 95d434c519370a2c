// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Drives an HBM stack alone: an in-order front end that offers the bursts of a pattern as fast as
// the queues of the controller take them.
#pragma once

#include <cstdint>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::models {

struct HbmPattern {
  bool random = false;            // blocks at random addresses; else streams
  std::int64_t block = 4096;      // bytes of a random block, and of a stream's turn
  std::int64_t streams = 1;       // at equal distances, served in turns of a block
  double reads = 1.0;             // chance of a turn to read
  std::int64_t turn = 128;        // bursts of a turn in one direction
  std::int64_t bursts = 200'000;  // the first tenth is not measured
  std::uint64_t seed = 1;
};

struct HbmDriven {
  double share = 0;  // of the raw peak of the driven channels
  double bytes_per_second = 0;
  double mean_latency_ns = 0, p99_latency_ns = 0;  // of reads, queue to end of data
  std::int64_t activates = 0, refreshes = 0;       // of the whole run, in per-bank equivalents
  double row_hit_rate = 0;                         // bursts that opened no row
};

// `channels` of the stack; spec.mode says which model. Throws base::UserError for what the pattern
// cannot be on this stack.
HbmDriven drive_hbm(const config::HbmSpec& spec, std::int64_t stacks, std::int64_t channels,
                    const HbmPattern& pattern);

}  // namespace trn3sim::models
