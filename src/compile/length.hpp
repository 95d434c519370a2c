// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulated time is int64 femtoseconds, 9,223 s. Work that would pass its end is the user's error.
#pragma once

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"

namespace trn3sim::compile {

// Seconds that the ops of one rank take at the least one after another, without kernels: delays,
// transfers at the rates of the chip, collectives at their slowest link, opaque work at peak.
double least_seconds(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
                     std::int64_t rank);

// A problem if least_seconds() of any rank passes what can be simulated.
void check_length(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
                  base::Problems& problems);

}  // namespace trn3sim::compile
