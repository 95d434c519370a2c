// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and messages that the configuration tests share.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <unistd.h>

namespace trn3sim::config {

namespace fs = std::filesystem;

// What load_run() says; empty if nothing is wrong.
inline std::string error_of(const std::string& config, const std::vector<std::string>& overrides) {
  try {
    load_run(config, overrides);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

// A directory of its own, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("trn3sim_config_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace trn3sim::config
