// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that need the whole program: its length, its activations, its point-to-point peers.
#pragma once

#include "trn3sim/trace/program.hpp"

#include "trace/fields.hpp"

namespace trn3sim::trace {

void check_program(const Program& program, Report& report);

}  // namespace trn3sim::trace
