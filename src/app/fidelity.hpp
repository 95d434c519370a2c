// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The fidelity command: runs this program twice, profiled and detailed, and compares.
#pragma once

#include "app/cli.hpp"

namespace trn3sim::app {

// Prints the comparison; returns the exit code. A failed run is reported with its own exit code.
int fidelity(const Fidelity& options);

}  // namespace trn3sim::app
