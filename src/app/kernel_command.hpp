// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// `trn3sim kernel ...`: one kernel alone in full detail.
#pragma once

#include <string>
#include <vector>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"

#include "app/cli.hpp"

namespace trn3sim::app {

// `arguments` after "kernel".
Command parse_kernel(std::vector<std::string> arguments);

// The kernel that the options ask for, on a chip of the run. Throws base::UserError (place "command
// line") with all problems at once.
compile::KernelSpec kernel_spec(const RunKernel& options, const config::RunSpec& run);

// Inside SystemC. Returns the exit code.
int run_kernel(const RunKernel& options);

}  // namespace trn3sim::app
