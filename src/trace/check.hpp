// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that need the whole program.
#pragma once

#include "trn3sim/trace/program.hpp"

#include "trace/fields.hpp"

namespace trn3sim::trace {

// Its length, its activations, its point-to-point peers, its traffic.
void check_program(const Program& program, Report& report);

// Members of a group that run different collectives; sends and receives that do not match.
void check_traffic(const Program& program, Report& report);

}  // namespace trn3sim::trace
