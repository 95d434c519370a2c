// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/stats/checks.hpp"

#include <algorithm>

#include "trn3sim/base/text.hpp"
#include "trn3sim/stats/results_describe.hpp"

#include <fmt/format.h>

namespace trn3sim::stats {
namespace {

std::string time_text(std::int64_t fs) {
  return base::format_time(Time(fs));
}

CheckResult step_above_bounds(const Results& r) {
  const LowerBounds& b = r.bounds;
  const std::pair<const char*, std::int64_t> bounds[] = {{"compute", b.compute_fs},
                                                         {"DMA", b.dma_fs},
                                                         {"HBM", b.hbm_fs},
                                                         {"link", b.link_fs},
                                                         {"critical path", b.critical_path_fs}};
  CheckResult check{"step time above every lower bound", true, ""};
  for (const auto& [name, fs] : bounds) {
    if (r.step_fs >= fs) continue;
    check.passed = false;
    check.detail += fmt::format("{}{} bound {} fs above step {} fs",
                                check.detail.empty() ? "" : "; ", name, fs, r.step_fs);
  }
  return check;
}

CheckResult classes_fill_step(const Results& r) {
  std::int64_t sum = 0;
  bool negative = false;
  for (const std::int64_t fs : r.breakdown.mean_fs) {
    sum += fs;
    negative = negative || fs < 0;
  }
  const bool passed = sum == r.step_fs && !negative;
  return {"classes of time fill the step", passed,
          passed ? "" : fmt::format("classes sum to {} fs of {} fs", sum, r.step_fs)};
}

CheckResult busy_within_step(const Results& r) {
  CheckResult check{"nothing busy longer than the step", true, ""};
  const auto look = [&](std::string_view name, std::int64_t fs) {
    if (fs <= r.step_fs || !check.passed) return;
    check.passed = false;
    check.detail =
        fmt::format("{} busy {} in a step of {}", name, time_text(fs), time_text(r.step_fs));
  };
  for (std::size_t i = 0; i < kEngineNames.size(); ++i) look(kEngineNames[i], r.engine_busy_fs[i]);
  for (const LinkResult& link : r.links) look(link.name, link.busy_fs);
  return check;
}

CheckResult bytes_arrive(const Results& r) {
  const bool passed = r.bytes_sent == r.bytes_received;
  return {"bytes sent = bytes received", passed,
          passed ? "" : fmt::format("{} B sent, {} B received", r.bytes_sent, r.bytes_received)};
}

CheckResult energy_adds_up(const Results& r) {
  CheckResult check{"no energy account is negative", true, ""};
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    if (r.energy.of[i].count() >= 0) continue;
    check.passed = false;
    check.detail = fmt::format("{} is negative", base::kEnergyAccountNames[i]);
  }
  return check;
}

}  // namespace

std::vector<CheckResult> physics_checks(const Results& results) {
  return {step_above_bounds(results), classes_fill_step(results), busy_within_step(results),
          bytes_arrive(results), energy_adds_up(results)};
}

std::vector<CheckResult> all_checks(const Results& results) {
  std::vector<CheckResult> checks = results.checks;
  for (CheckResult& check : physics_checks(results)) {
    const bool known = std::any_of(checks.begin(), checks.end(), [&](const CheckResult& c) {
      return c.name == check.name && c.passed == check.passed;
    });
    if (!known) checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace trn3sim::stats
