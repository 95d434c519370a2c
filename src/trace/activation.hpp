// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Live activation bytes over program order, without unrolling loops. An op's `alloc` counts while
// it runs, its `free` after it.
#pragma once

#include "trn3sim/trace/program.hpp"

namespace trn3sim::trace {

// Change over the whole program, and extremes of its prefixes (relative to the start).
struct ActivationRange {
  std::int64_t net = 0, peak = 0, lowest = 0;
  bool fits = true;  // false: a number left 64 bits
};
ActivationRange activation_range(const Program& program, std::int64_t rank);

// Ranks whose programs cover all programs: one for each combination of the coordinates that `when`
// conditions name, and of one that they do not.
std::vector<std::int64_t> representative_ranks(const Program& program);

}  // namespace trn3sim::trace
