// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics derived from the facts of a run, and the one-screen report about them. Metric names
// follow Neuron Explorer (https://awsdocs-neuron.readthedocs-hosted.com, Neuron Explorer, "Summary
// metrics"). Everything is computed from Results alone, so a report from results.json is the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/stats/results.hpp"

namespace trn3sim::report {

inline constexpr std::size_t kLowerBounds = 5;
inline constexpr std::array<std::string_view, kLowerBounds> kLowerBoundNames = {
    "compute", "dma", "hbm", "link", "critical_path"};

// Percentages are of the step unless named otherwise; a metric whose denominator is zero is 0.
struct Summary {
  double step_time_s = 0;
  double tokens_per_s = 0;
  double mfu_estimated_percent = 0;  // full attention, bf16 geometry peak (MX may exceed 100)
  double mfu_causal_percent = 0;     // causal attention counted as half, same peak
  double mfu_headline_percent = 0;   // full attention, headline bf16 peak
  double mfu_headline_causal_percent = 0;
  double mfu_dtype_peak_percent = 0;  // full attention, peak of the formats the run multiplies in
  double hfu_estimated_percent = 0;   // executed FLOP, bf16 geometry peak
  double mbu_estimated_percent = 0;   // bytes of all stacks over the peak of all stacks
  // mfu_estimated = hfu - recompute_and_padding + causal_skipped, exactly.
  double tensor_at_peak_percent = 0;         // executed matmuls at the peak of their format
  double recompute_and_padding_percent = 0;  // executed FLOP beyond the causal model FLOP
  double causal_skipped_percent = 0;         // counted by full attention, never executed
  double energy_j = 0;                       // sum of the accounts as results.json writes them
  std::optional<double> energy_per_token_j;  // none without tokens
  double average_power_w = 0;                // whole machine
  std::array<double, stats::kTimeClasses> breakdown_percent{};
  std::array<double, base::kEnergyAccounts> energy_percent{};
  std::array<double, kLowerBounds> lower_bounds_s{};
  std::size_t bound = 0;           // index of the highest lower bound
  double above_bound_percent = 0;  // step above it, in percent of it
  std::vector<stats::CheckResult> checks;
  bool checks_passed = true;
};

// Throws base::InternalError if the step has no length.
Summary summarise(const stats::Results& results);

// What the text says that is no fact of the run.
struct TextContext {
  base::Power tdp;      // of one chip
  std::string version;  // of trn3sim
};

// At most 50 lines of 100 columns, every number with its unit.
std::string to_text(const Summary& summary, const stats::Results& results,
                    const TextContext& context);

// The same as one JSON object, sorted keys.
std::string to_json(const Summary& summary, const stats::Results& results);

// `parts` as tenths of a percent of their sum that add up to exactly 1000 (largest remainders;
// ties: the earlier part). All zero if the sum is not positive.
std::vector<std::int64_t> tenths_of_percent(const std::vector<std::int64_t>& parts);

}  // namespace trn3sim::report
