// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/summary.hpp"

#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

using nlohmann::json;  // objects are std::map: keys come out sorted

template <std::size_t N>
json table(const std::array<std::string_view, N>& names, const std::array<double, N>& values) {
  json out = json::object();
  for (std::size_t i = 0; i < N; ++i) out[std::string(names[i])] = values[i];
  return out;
}

double seconds(std::int64_t fs) {
  return base::to_seconds(base::Time(fs));
}

json lists(const stats::Results& r) {
  json out = {
      {"kernels", json::array()}, {"collectives", json::array()}, {"phases", json::array()}};
  for (const stats::KernelResult& k : r.kernels) {
    out["kernels"].push_back({{"label", k.label},
                              {"count", k.count},
                              {"total_s", seconds(k.total_fs)},
                              {"alone_s", seconds(k.alone_fs)},
                              {"bound", k.bound}});
  }
  for (const stats::CollectiveResult& c : r.collectives) {
    out["collectives"].push_back({{"label", c.label},
                                  {"count", c.count},
                                  {"total_s", seconds(c.total_fs)},
                                  {"bus_bytes_per_s", c.bus_rate},
                                  {"algorithm", c.algorithm},
                                  {"worst_link", c.worst_link}});
  }
  for (const stats::PhaseResult& p : r.phases) {
    out["phases"].push_back(
        {{"phase", p.phase}, {"busy_s", seconds(p.busy_fs)}, {"model_flop", p.model_flop}});
  }
  return out;
}

}  // namespace

std::string to_json(const Summary& s, const stats::Results& r) {
  json out = lists(r);
  out["config"] = r.config_name;
  out["trace"] = r.trace_name;
  out["compile_level"] = r.compile_level;
  out["chips"] = r.chips;
  out["ranks"] = r.ranks;
  out["cores_used"] = r.cores_used;
  out["tokens_per_step"] = r.tokens_per_step;
  out["step_time_s"] = s.step_time_s;
  out["tokens_per_s"] = s.tokens_per_s;
  out["mfu_estimated_percent"] = s.mfu_estimated_percent;
  out["mfu_causal_percent"] = s.mfu_causal_percent;
  out["mfu_headline_percent"] = s.mfu_headline_percent;
  out["mfu_headline_causal_percent"] = s.mfu_headline_causal_percent;
  out["mfu_dtype_peak_percent"] = s.mfu_dtype_peak_percent;
  out["hfu_estimated_percent"] = s.hfu_estimated_percent;
  out["mbu_estimated_percent"] = s.mbu_estimated_percent;
  out["tensor_at_peak_percent"] = s.tensor_at_peak_percent;
  out["recompute_and_padding_percent"] = s.recompute_and_padding_percent;
  out["causal_skipped_percent"] = s.causal_skipped_percent;
  out["energy_j"] = s.energy_j;
  out["energy_per_token_j"] = s.energy_per_token_j ? json(*s.energy_per_token_j) : json();
  out["average_power_w"] = s.average_power_w;
  out["breakdown_percent"] = table(stats::kTimeClassNames, s.breakdown_percent);
  out["energy_percent"] = table(base::kEnergyAccountNames, s.energy_percent);
  out["lower_bounds_s"] = table(kLowerBoundNames, s.lower_bounds_s);
  out["bound"] = kLowerBoundNames[s.bound];
  out["above_bound_percent"] = s.above_bound_percent;
  out["peak_memory_bytes"] = r.peak_memory_bytes;
  out["memory_capacity_bytes"] = r.memory_capacity_bytes;
  out["checks_passed"] = s.checks_passed;
  out["checks"] = json::array();
  for (const stats::CheckResult& c : s.checks) {
    out["checks"].push_back({{"name", c.name}, {"passed", c.passed}, {"detail", c.detail}});
  }
  out["assumed"] = json::array();
  for (const stats::AssumedUse& a : r.assumed) {
    out["assumed"].push_back({{"path", a.path}, {"value", a.value}, {"reason", a.reason}});
  }
  return out.dump(1) + "\n";
}

}  // namespace trn3sim::report
