// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/summary.hpp"

#include <algorithm>
#include <numeric>

#include "trn3sim/base/error.hpp"
#include "trn3sim/stats/checks.hpp"
#include "trn3sim/stats/energy_nj.hpp"

namespace trn3sim::report {
namespace {

double percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}
double percent(std::int64_t part, std::int64_t whole) {
  return percent(static_cast<double>(part), static_cast<double>(whole));
}

void utilisation(const stats::Results& r, Summary& s) {
  const double geometry = r.peak_geometry_flops * s.step_time_s;
  const double headline = r.peak_headline_flops * s.step_time_s;
  s.mfu_estimated_percent = percent(r.model_flop, geometry);
  s.mfu_causal_percent = percent(r.model_flop_causal, geometry);
  s.mfu_headline_percent = percent(r.model_flop, headline);
  s.mfu_headline_causal_percent = percent(r.model_flop_causal, headline);
  s.mfu_dtype_peak_percent = percent(r.model_flop, r.peak_dtype_flops * s.step_time_s);
  s.hfu_estimated_percent = percent(r.hardware_flop, geometry);
  s.mbu_estimated_percent = percent(static_cast<double>(r.hbm_read_bytes + r.hbm_write_bytes),
                                    static_cast<double>(r.hbm_peak_rate) * s.step_time_s);
  s.tensor_at_peak_percent = percent(r.tensor_ideal_fs, r.step_fs);
  s.recompute_and_padding_percent = percent(r.hardware_flop - r.model_flop_causal, geometry);
  s.causal_skipped_percent = percent(r.model_flop - r.model_flop_causal, geometry);
}

void energy(const stats::Results& r, Summary& s) {
  const stats::EnergyNanojoules nj = stats::to_nanojoules(r.energy);
  s.energy_j = static_cast<double>(nj.total) * 1e-9;
  s.average_power_w = s.energy_j / s.step_time_s;
  if (r.tokens_per_step > 0) {
    s.energy_per_token_j = s.energy_j / static_cast<double>(r.tokens_per_step);
  }
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    s.energy_percent[i] = percent(nj.of[i], nj.total);
  }
}

void bounds(const stats::Results& r, Summary& s) {
  const std::array<std::int64_t, kLowerBounds> fs = {r.bounds.compute_fs, r.bounds.dma_fs,
                                                     r.bounds.hbm_fs, r.bounds.link_fs,
                                                     r.bounds.critical_path_fs};
  for (std::size_t i = 0; i < kLowerBounds; ++i) {
    s.lower_bounds_s[i] = base::to_seconds(base::Time(fs[i]));
    if (fs[i] > fs[s.bound]) s.bound = i;
  }
  s.above_bound_percent = percent(r.step_fs - fs[s.bound], fs[s.bound]);
}

}  // namespace

Summary summarise(const stats::Results& results) {
  TRN3SIM_CHECK(results.step_fs > 0, "the step has no length");
  Summary s;
  s.step_time_s = base::to_seconds(base::Time(results.step_fs));
  s.tokens_per_s = static_cast<double>(results.tokens_per_step) / s.step_time_s;
  utilisation(results, s);
  energy(results, s);
  bounds(results, s);
  for (std::size_t i = 0; i < stats::kTimeClasses; ++i) {
    s.breakdown_percent[i] = percent(results.breakdown.mean_fs[i], results.step_fs);
  }
  s.checks = stats::all_checks(results);
  s.checks_passed = std::all_of(s.checks.begin(), s.checks.end(),
                                [](const stats::CheckResult& c) { return c.passed; });
  return s;
}

std::vector<std::int64_t> tenths_of_percent(const std::vector<std::int64_t>& parts) {
  std::vector<std::int64_t> tenths(parts.size(), 0);
  const Int128 sum = std::accumulate(parts.begin(), parts.end(), Int128(0));
  if (sum <= 0) return tenths;
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Int128> remainder(parts.size());
  std::int64_t left = 1000;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Int128 scaled = Int128(parts[i]) * 1000;
    tenths[i] = static_cast<std::int64_t>(scaled / sum);
    remainder[i] = scaled % sum;
    left -= tenths[i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; i < order.size() && left > 0; ++i, --left) ++tenths[order[i]];
  return tenths;
}

}  // namespace trn3sim::report
