// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Physics that any run must obey, checked from its results alone. A failure is a bug of the
// simulator.
#pragma once

#include <vector>

#include "trn3sim/stats/results.hpp"

namespace trn3sim::stats {

// In a fixed order: step above every lower bound; classes of time fill the step;
// no engine or link busy longer than the step; bytes sent = bytes received; no energy
// account negative (their sum is exact by construction).
std::vector<CheckResult> physics_checks(const Results& results);

// results.checks, then those of physics_checks() that are not among them by name and verdict.
std::vector<CheckResult> all_checks(const Results& results);

}  // namespace trn3sim::stats
