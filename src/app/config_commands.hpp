// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// `trn3sim config ...`: each returns the exit code and throws base::UserError.
#pragma once

#include <string>
#include <vector>

#include "app/cli.hpp"

namespace trn3sim::app {

// `arguments` after "config".
Command parse_config(std::vector<std::string> arguments);

int config_list(const ConfigList& options);
int config_show(const ConfigShow& options);
int config_check(const ConfigCheck& options);
int config_schema(const ConfigSchema& options);

}  // namespace trn3sim::app
