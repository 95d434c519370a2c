// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Results from a machine that has run.
#pragma once

#include "trn3sim/stats/results.hpp"

#include "machine.hpp"

namespace trn3sim::sim {

stats::Results collect(const Machine& machine);

// The version of everything that decides a simulated number: a hash over the sources, made at
// build.
const char* model_version();

}  // namespace trn3sim::sim
