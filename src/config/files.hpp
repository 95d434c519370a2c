// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Where configuration files are found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trn3sim::config {

// The directories of TRN3SIM_CONFIG_PATH, then the installed and the source `configs/`; those that
// do not exist are left out.
std::vector<std::filesystem::path> config_directories();

// Resolves `name`: as given, then below each of `first`, then below each config directory; inside
// a directory each of `subfolders` ("" = the directory itself) in order. Throws base::UserError,
// placed at `place`, that lists where it looked and suggests the nearest existing name. `what` is
// the kind of file: "configuration", "chip", "trace".
std::filesystem::path find_file(const std::string& name, const std::string& what,
                                const std::string& place,
                                const std::vector<std::filesystem::path>& first,
                                const std::vector<std::string>& subfolders);

}  // namespace trn3sim::config
