// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/fidelity.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

constexpr std::size_t kShown = 20;

double percent_off(std::int64_t profiled, std::int64_t detailed) {
  if (detailed == 0) return profiled == 0 ? 0 : 100;
  return 100.0 * static_cast<double>(profiled - detailed) / static_cast<double>(detailed);
}

// The smallest error that at least `share` of the time does not exceed.
double percentile(const std::vector<KernelFidelity>& largest_first, double share) {
  double covered = 0;
  for (auto it = largest_first.rbegin(); it != largest_first.rend(); ++it) {
    covered += it->share_percent / 100;
    if (covered >= share - 1e-9) return std::abs(it->error_percent);
  }
  return 0;
}

std::string time_text(std::int64_t fs) {
  return base::format_time(base::Time(fs));
}

// Kernels of one label taken together.
std::map<std::string, stats::KernelResult> by_label(const stats::Results& results) {
  std::map<std::string, stats::KernelResult> kernels;
  for (const stats::KernelResult& k : results.kernels) {
    stats::KernelResult& sum = kernels[k.label];
    sum.label = k.label;
    sum.count += k.count;
    sum.total_fs += k.total_fs;
    sum.alone_fs = std::max(sum.alone_fs, k.alone_fs);
  }
  return kernels;
}

}  // namespace

FidelityReport compare_fidelity(const stats::Results& profiled, const stats::Results& detailed) {
  const std::map<std::string, stats::KernelResult> replayed = by_label(profiled);
  const std::map<std::string, stats::KernelResult> run = by_label(detailed);
  FidelityReport report;
  std::int64_t profiled_total = 0, detailed_total = 0;
  for (const auto& [label, d] : run) {
    const auto it = replayed.find(label);
    if (it == replayed.end() || it->second.count != d.count || d.count == 0)
      throw base::UserError("fidelity",
                            fmt::format("the two runs do not execute \"{}\" alike", label));
    const stats::KernelResult& p = it->second;
    profiled_total += p.total_fs;
    detailed_total += d.total_fs;
    report.kernels.push_back({d.label, d.count, p.total_fs / d.count, d.total_fs / d.count,
                              d.alone_fs, percent_off(p.total_fs, d.total_fs),
                              static_cast<double>(d.total_fs)});
  }
  if (replayed.size() != run.size())
    throw base::UserError("fidelity", "the two runs execute different kernels");
  for (KernelFidelity& k : report.kernels)
    k.share_percent =
        detailed_total > 0 ? 100.0 * k.share_percent / static_cast<double>(detailed_total) : 0.0;
  std::sort(report.kernels.begin(), report.kernels.end(), [](const auto& a, const auto& b) {
    const double left = std::abs(a.error_percent), right = std::abs(b.error_percent);
    return left != right ? left > right : a.label < b.label;
  });
  report.p50_percent = percentile(report.kernels, 0.50);
  report.p95_percent = percentile(report.kernels, 0.95);
  if (!report.kernels.empty())
    report.worst_percent = std::abs(report.kernels.front().error_percent);
  report.kernel_time_error_percent = percent_off(profiled_total, detailed_total);
  report.profiled_step_fs = profiled.step_fs;
  report.detailed_step_fs = detailed.step_fs;
  report.step_error_percent = percent_off(profiled.step_fs, detailed.step_fs);
  return report;
}

std::string to_text(const FidelityReport& r) {
  std::string out = "Kernel profiles against full detail; + : the profiled run takes longer\n";
  out += fmt::format("  step         {} profiled, {} detailed, error {:+.3f} %\n",
                     time_text(r.profiled_step_fs), time_text(r.detailed_step_fs),
                     r.step_error_percent);
  out += fmt::format(
      "  kernel time  error {:+.3f} %; by execution p50 {:.3f} %, p95 {:.3f} %, worst {:.3f} %\n",
      r.kernel_time_error_percent, r.p50_percent, r.p95_percent, r.worst_percent);
  out += fmt::format("  {:>9}  {:>7}  {:>6}  {:>10}  {:>10}  {:>10}  {}\n", "error", "share",
                     "count", "profiled", "detailed", "alone", "kernel");
  for (std::size_t i = 0; i < std::min(kShown, r.kernels.size()); ++i) {
    const KernelFidelity& k = r.kernels[i];
    out += fmt::format("  {:+8.3f} %  {:5.2f} %  {:>6}  {:>10}  {:>10}  {:>10}  {}\n",
                       k.error_percent, k.share_percent, k.count, time_text(k.profiled_fs),
                       time_text(k.detailed_fs), time_text(k.alone_fs), k.label);
  }
  if (r.kernels.size() > kShown)
    out += fmt::format("  and {} more kernels with smaller errors\n", r.kernels.size() - kShown);
  return out;
}

std::string to_json(const FidelityReport& r) {
  nlohmann::json out;
  out["profiled_step_fs"] = r.profiled_step_fs;
  out["detailed_step_fs"] = r.detailed_step_fs;
  out["step_error_percent"] = r.step_error_percent;
  out["kernel_time_error_percent"] = r.kernel_time_error_percent;
  out["kernel_error_p50_percent"] = r.p50_percent;
  out["kernel_error_p95_percent"] = r.p95_percent;
  out["kernel_error_worst_percent"] = r.worst_percent;
  out["kernels"] = nlohmann::json::array();
  for (const KernelFidelity& k : r.kernels)
    out["kernels"].push_back({{"label", k.label},
                              {"count", k.count},
                              {"profiled_fs", k.profiled_fs},
                              {"detailed_fs", k.detailed_fs},
                              {"alone_fs", k.alone_fs},
                              {"error_percent", k.error_percent},
                              {"share_percent", k.share_percent}});
  return out.dump(2) + "\n";
}

}  // namespace trn3sim::report
