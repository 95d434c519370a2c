// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The precision command: what each part of a change of the matmul format does to a step.
#pragma once

#include "app/cli.hpp"

namespace trn3sim::app {

// Prints the attribution; returns the exit code. A failed run is reported with its own exit code.
int precision(const AttributePrecision& options);

}  // namespace trn3sim::app
