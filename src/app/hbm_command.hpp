// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// trn3sim hbm: an HBM stack alone.
#pragma once

#include "app/cli.hpp"
#include "app/options.hpp"

namespace trn3sim::app {

Command parse_hbm(const Arguments& arguments);
int drive_hbm_stack(const DriveHbm& options);

}  // namespace trn3sim::app
