// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs of this program by itself, for commands that compare steps: SystemC simulates one machine
// per process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trn3sim/stats/results.hpp"

namespace trn3sim::app {

// A directory that goes away with the object. Throws base::UserError if it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Simulates a step with `arguments`, writes its files to `out` and appends its results. Returns the
// exit code of the run, which has reported what is wrong; `results` is as it was unless it is 0.
// Throws base::UserError if the program cannot be started or was ended by a signal.
int run_self(std::vector<std::string> arguments, const std::filesystem::path& out,
             std::vector<stats::Results>& results);

}  // namespace trn3sim::app
