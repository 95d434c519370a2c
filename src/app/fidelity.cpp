// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/fidelity.hpp"

#include <array>

#include "trn3sim/report/fidelity.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include "app/self_run.hpp"

namespace trn3sim::app {

int fidelity(const Fidelity& options) {
  static constexpr std::array<const char*, 2> kLevels = {"profiled", "detailed"};
  const TemporaryDirectory directory;
  std::vector<stats::Results> results;
  for (const char* level : kLevels) {
    std::vector<std::string> arguments = options.arguments;
    arguments.push_back(level == kLevels[0] ? "--fidelity=profiled" : options.detail);
    // One after the other: a wrong configuration is then reported once.
    if (const int code = run_self(std::move(arguments), directory.path() / level, results);
        code != kOk)
      return code;
  }
  const report::FidelityReport report = report::compare_fidelity(results[0], results[1]);
  print(options.format == Format::Json ? report::to_json(report) : report::to_text(report));
  return kOk;
}

}  // namespace trn3sim::app
