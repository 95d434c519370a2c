// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What there is: files on the search path, and the values of one configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trn3sim/config/run_spec.hpp"

namespace trn3sim::config {

// A file as the user would name it, and where it is.
struct FoundFile {
  std::string name;  // "chip1.json", "chips/trn3.json", "llama7b.trace"
  std::filesystem::path path;
};

// Files of the search path whose name is taken by no earlier directory, sorted by name.
std::vector<FoundFile> list_configurations();  // *.json of the directories and their chips/
std::vector<FoundFile> list_traces();

// What a configuration file is.
struct CheckedFile {
  std::filesystem::path path;
  std::string kind;        // "system" or "chip"
  std::string name;        // its "name"
  std::int64_t chips = 1;  // of a system
};

// Reads a system file, with the chip file it names, or a chip file and checks everything. `name`
// resolves as in load_run(). Throws base::UserError with all problems at once.
CheckedFile check_file(const std::string& name);

// One value of a resolved configuration.
struct ResolvedValue {
  std::string path;        // "chip.hbm.bandwidth"
  std::string value;       // "4.9152"
  std::string unit;        // "TB/s"; empty for counts, ratios, texts and flags
  std::string confidence;  // empty where nobody gave one
  std::string source;
};

// Every value in the order of the reference.
std::vector<ResolvedValue> resolved_values(const RunSpec& run);

}  // namespace trn3sim::config
