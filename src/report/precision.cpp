// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/precision.hpp"

#include <string_view>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/report/summary.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kParts = {"from", "rate", "bytes", "quantise"};
constexpr std::array<std::string_view, 5> kEngines = {"tensor", "vector", "scalar", "gpsimd",
                                                      "sync"};

PrecisionFigures figures_of(const stats::Results& r) {
  const Summary s = summarise(r);
  return {r.step_fs,
          s.mfu_estimated_percent,
          r.hbm_read_bytes + r.hbm_write_bytes,
          r.hbm_scale_bytes,
          r.engine_busy_fs,
          stats::to_nanojoules(r.energy),
          s.energy_per_token_j.value_or(0)};
}

PrecisionFigures difference(const PrecisionFigures& a, const PrecisionFigures& b) {
  PrecisionFigures d{a.step_fs - b.step_fs,
                     a.mfu_percent - b.mfu_percent,
                     a.hbm_bytes - b.hbm_bytes,
                     a.scale_bytes - b.scale_bytes,
                     {},
                     {},
                     a.joules_per_token - b.joules_per_token};
  for (std::size_t i = 0; i < kEngines.size(); ++i)
    d.engine_busy_fs[i] = a.engine_busy_fs[i] - b.engine_busy_fs[i];
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i)
    d.energy.of[i] = a.energy.of[i] - b.energy.of[i];
  d.energy.total = a.energy.total - b.energy.total;
  return d;
}

// "+1.23 GB"; `text` writes numbers of at least zero.
template <class Text>
std::string with_sign(std::int64_t n, const Text& text) {
  return fmt::format("{}{}", n < 0 ? "-" : n > 0 ? "+" : "", text(n < 0 ? -n : n));
}

std::string time_text(std::int64_t fs) {
  return base::format_time(base::Time(fs));
}
std::string bytes_text(std::int64_t bytes) {
  return base::format_bytes(base::Bytes(bytes));
}
std::string energy_text(std::int64_t nj) {
  return base::format_energy(base::Energy(Int128(nj) * stats::kAttojoulesPerNanojoule));
}
std::string per_token(double joules) {
  return base::format_si(joules, "J");
}

std::string total_row(std::string_view name, const PrecisionFigures& f) {
  return fmt::format("  {:<10}  {:>10}  {:>9.2f}  {:>11}  {:>11}  {:>10}  {:>10}\n", name,
                     time_text(f.step_fs), f.mfu_percent, bytes_text(f.hbm_bytes),
                     bytes_text(f.scale_bytes), energy_text(f.energy.total),
                     per_token(f.joules_per_token));
}

std::string change_row(std::string_view name, const PrecisionFigures& f) {
  const std::string joules =
      fmt::format("{}{}", f.joules_per_token > 0 ? "+" : "", per_token(f.joules_per_token));
  return fmt::format("  {:<10}  {:>10}  {:>+9.2f}  {:>11}  {:>11}  {:>10}  {:>10}\n", name,
                     with_sign(f.step_fs, time_text), f.mfu_percent,
                     with_sign(f.hbm_bytes, bytes_text), with_sign(f.scale_bytes, bytes_text),
                     with_sign(f.energy.total, energy_text), joules);
}

// Energy accounts and engines as rows, parts as columns; rows without a change are left out.
std::string change_table(const PrecisionReport& r) {
  std::string out = fmt::format("  {:<18}", "what changes");
  for (std::size_t i = 1; i < r.stages.size(); ++i) out += fmt::format("  {:>10}", kParts[i]);
  out += fmt::format("  {:>10}\n", "all");
  const auto row = [&](const std::string& name, const auto& of, const auto& text) {
    std::string line = fmt::format("  {:<18}", name);
    bool any = false;
    for (std::size_t i = 1; i < r.stages.size(); ++i) {
      const std::int64_t n = of(r.stages[i].change);
      any |= n != 0;
      line += fmt::format("  {:>10}", with_sign(n, text));
    }
    line += fmt::format("  {:>10}\n", with_sign(of(r.change), text));
    if (any) out += line;
  };
  for (std::size_t e = 0; e < kEngines.size(); ++e)
    row(
        fmt::format("busy, {}", kEngines[e]),
        [e](const PrecisionFigures& f) { return f.engine_busy_fs[e]; }, time_text);
  for (std::size_t a = 0; a < base::kEnergyAccounts; ++a)
    row(
        fmt::format("energy, {}", base::kEnergyAccountNames[a]),
        [a](const PrecisionFigures& f) { return f.energy.of[a]; }, energy_text);
  return out;
}

json figures_json(const PrecisionFigures& f) {
  json busy = json::object(), energy = json::object();
  for (std::size_t i = 0; i < kEngines.size(); ++i)
    busy[std::string(kEngines[i])] = f.engine_busy_fs[i];
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i)
    energy[std::string(base::kEnergyAccountNames[i])] = f.energy.of[i];
  energy["total"] = f.energy.total;
  return {{"step_fs", f.step_fs},
          {"mfu_estimated_percent", f.mfu_percent},
          {"hbm_bytes", f.hbm_bytes},
          {"hbm_scale_bytes", f.scale_bytes},
          {"engine_busy_fs", std::move(busy)},
          {"energy_nj", std::move(energy)},
          {"energy_per_token_j", f.joules_per_token}};
}

}  // namespace

PrecisionReport attribute_precision(const std::string& from, const std::string& to,
                                    const std::array<stats::Results, 4>& runs) {
  PrecisionReport report{from, to, {}, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].trace_sha256 != runs[0].trace_sha256 || runs[i].chips != runs[0].chips)
      throw base::UserError("precision", "the runs are not of one trace and system");
    PrecisionStage stage{std::string(kParts[i]), figures_of(runs[i]), {}};
    if (i > 0) stage.change = difference(stage.total, report.stages.back().total);
    report.stages.push_back(std::move(stage));
  }
  report.change = difference(report.stages.back().total, report.stages.front().total);
  return report;
}

std::string to_text(const PrecisionReport& r) {
  std::string out = fmt::format("Matmul format {} to {}, one part after the other\n", r.from, r.to);
  const std::string head = fmt::format("{:>10}  {:>9}  {:>11}  {:>11}  {:>10}  {:>10}\n", "step",
                                       "MFU %", "HBM bytes", "of scales", "energy", "per token");
  out += fmt::format("  {:<10}  {}", "run", head);
  for (std::size_t i = 0; i < r.stages.size(); ++i)
    out += total_row(i == 0                     ? r.from
                     : i + 1 == r.stages.size() ? r.to
                                                : "+ " + r.stages[i].part,
                     r.stages[i].total);
  out += fmt::format("  {:<10}  {}", "change by", head);
  for (std::size_t i = 1; i < r.stages.size(); ++i)
    out += change_row(r.stages[i].part, r.stages[i].change);
  out += change_row("all", r.change);
  out += change_table(r);
  out +=
      "rate: TensorE multiplies in the new format. bytes: weights lie in HBM in it, in both "
      "orientations\nand with their scales, and operands in SBUF. quantise: the work of the "
      "conversions.\n";
  return out;
}

std::string to_json(const PrecisionReport& r) {
  json out = {{"from", r.from},
              {"to", r.to},
              {"stages", json::array()},
              {"change", figures_json(r.change)}};
  for (const PrecisionStage& s : r.stages)
    out["stages"].push_back(
        {{"part", s.part}, {"total", figures_json(s.total)}, {"change", figures_json(s.change)}});
  return out.dump(2) + "\n";
}

}  // namespace trn3sim::report
