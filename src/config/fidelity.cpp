// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <fmt/format.h>

namespace trn3sim::config {

void choose_detailed_chips(RunSpec& run, bool all, std::vector<std::int64_t> chips) {
  const std::int64_t there = run.system.chips();
  base::Problems problems;
  for (const std::int64_t chip : chips)
    if (chip < 0 || chip >= there)
      problems.add("--detailed-chips", fmt::format("no chip {}: {} has chips 0 to {}", chip,
                                                   run.config_file.filename().string(), there - 1));
  problems.throw_if_any();
  if (all) {
    chips.resize(static_cast<std::size_t>(there));
    std::iota(chips.begin(), chips.end(), std::int64_t{0});
  }
  std::sort(chips.begin(), chips.end());
  chips.erase(std::unique(chips.begin(), chips.end()), chips.end());
  run.detailed_chips = std::move(chips);
  // What a detailed stack holds is no part of the state in which loops are found to repeat.
  if (!run.detailed_chips.empty()) run.fast_forward = false;
}

}  // namespace trn3sim::config
