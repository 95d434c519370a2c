// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/text.hpp"

#include <algorithm>
#include <numeric>

#include "trn3sim/report/summary.hpp"
#include "trn3sim/stats/energy_nj.hpp"

#include <fmt/format.h>

namespace trn3sim::report {
namespace {

constexpr std::size_t kTopKernels = 6;
constexpr std::size_t kTopCollectives = 5;
constexpr std::size_t kColumns = 100;

std::string time_text(std::int64_t fs) {
  return base::format_time(base::Time(fs));
}
std::string bytes_text(std::int64_t bytes) {
  return base::format_bytes(base::Bytes(bytes));
}
std::string seconds_text(double s) {
  return base::format_si(s, "s");
}

// At most `width` characters; a longer text ends in "..".
std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// "1 chip", "64 chips"
std::string count_text(std::int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

bool multiplies(const stats::Results& r) {
  return r.hardware_flop > 0 || r.model_flop > 0;
}

class Text {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    out_ += cut(text.substr(0, text.find_last_not_of(' ') + 1), kColumns) + "\n";
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void step(Text& t, const Summary& s, const stats::Results& r) {
  if (r.tokens_per_step == 0) {
    t.line("Step time  {}", seconds_text(s.step_time_s));
    return;
  }
  t.line("Step time  {:<12} {:>14}   {} per step", seconds_text(s.step_time_s),
         base::format_si(s.tokens_per_s, "tokens/s"),
         base::format_si(static_cast<double>(r.tokens_per_step), "tokens"));
}

void utilisation(Text& t, const Summary& s, const stats::Results& r) {
  const std::int64_t spilled = r.spill_save_bytes + r.spill_reload_bytes;
  const std::string moved = fmt::format(
      "MBU {:.1f} % ({} moved{}, peak {})", s.mbu_estimated_percent,
      bytes_text(r.hbm_read_bytes + r.hbm_write_bytes),
      spilled > 0 ? fmt::format(", {} of it spilled", bytes_text(spilled)) : std::string(),
      base::format_rate(base::Rate(r.hbm_peak_rate)));
  if (!multiplies(r)) {
    t.line("MFU        no matmuls in this step     {}", moved);
    return;
  }
  t.line("MFU        full {:.1f} %, causal {:.1f} % of the bf16 geometry peak ({})",
         s.mfu_estimated_percent, s.mfu_causal_percent,
         base::format_si(r.peak_geometry_flops, "FLOP/s"));
  t.line("           full {:.1f} %, causal {:.1f} % of the bf16 headline peak ({})",
         s.mfu_headline_percent, s.mfu_headline_causal_percent,
         base::format_si(r.peak_headline_flops, "FLOP/s"));
  t.line("           full {:.1f} % of the peak of the formats used ({})", s.mfu_dtype_peak_percent,
         base::format_si(r.peak_dtype_flops, "FLOP/s"));
  t.line("HFU        {:.1f} % executed     {}", s.hfu_estimated_percent, moved);
}

void head(Text& t, const Summary& s, const stats::Results& r, const TextContext& context) {
  t.line("trn3sim {}  {} x {}", context.version, cut(r.config_name, 38), cut(r.trace_name, 38));
  t.line("           {}, {}, {}; compile level {}", count_text(r.chips, "chip"),
         count_text(r.ranks, "rank"), count_text(r.cores_used, "core"), r.compile_level);
  step(t, s, r);
  utilisation(t, s, r);
  t.line("Memory     {} of {} on the fullest rank ({:.0f} %)", bytes_text(r.peak_memory_bytes),
         bytes_text(r.memory_capacity_bytes), share(r.peak_memory_bytes, r.memory_capacity_bytes));
}

// The phases of the step; nothing if the trace names none.
void phases(Text& t, const stats::Results& r) {
  if (r.phases.size() == 1 && r.phases.front().phase.empty()) return;
  for (const stats::PhaseResult& phase : r.phases) {
    const double flop_s = r.peak_geometry_flops * base::to_seconds(base::Time(phase.busy_fs));
    const std::string mfu =
        phase.model_flop > 0 && flop_s > 0
            ? fmt::format("MFU {:.1f} % in the phase", 100.0 * phase.model_flop / flop_s)
            : "no model FLOP";
    t.line("  {:<22}{:>6.1f} % {:>9}  {}",
           phase.phase.empty() ? "outside phases" : cut(phase.phase, 20),
           share(phase.busy_fs, r.step_fs), time_text(phase.busy_fs), mfu);
  }
}

void breakdown(Text& t, const Summary& s, const stats::Results& r) {
  const auto& fs = r.breakdown.mean_fs;
  const std::vector<std::int64_t> tenths = tenths_of_percent({fs.begin(), fs.end()});
  const std::int64_t sum = std::accumulate(tenths.begin(), tenths.end(), std::int64_t{0});
  t.line("");
  t.line("Time of a step, mean over ranks (parts add up to {}.{} %)", sum / 10, sum % 10);
  for (std::size_t i = 0; i < tenths.size(); ++i) {
    if (fs[i] == 0) continue;
    const auto bar = static_cast<std::size_t>(std::max<std::int64_t>(0, (tenths[i] + 12) / 25));
    t.line("  {:<22}{:>4}.{} % {:>9}  {}", stats::kTimeClassNames[i], tenths[i] / 10,
           tenths[i] % 10, time_text(fs[i]), std::string(bar, '#'));
  }
  if (multiplies(r)) {
    const double compute = s.breakdown_percent[0];
    t.line("  compute {:.1f} % = matmuls at peak {:.1f} + the rest of compute {:.1f}", compute,
           s.tensor_at_peak_percent, compute - s.tensor_at_peak_percent);
    t.line(
        "  MFU full {:.1f} % = HFU {:.1f} - recompute and padding {:.1f} + causal half not run "
        "{:.1f}",
        s.mfu_estimated_percent, s.hfu_estimated_percent, s.recompute_and_padding_percent,
        s.causal_skipped_percent);
  }
  phases(t, r);
}

void energy(Text& t, const Summary& s, const stats::Results& r, const TextContext& context) {
  const stats::EnergyNanojoules nj = stats::to_nanojoules(r.energy);
  const double tdp = static_cast<double>(context.tdp.count()) * 1e-6;
  const double chip = r.chips > 0 ? s.average_power_w / static_cast<double>(r.chips) : 0.0;
  std::string limit;
  if (tdp > 0) limit = fmt::format(", {:.0f} % of the {:.0f} W TDP", 100.0 * chip / tdp, tdp);
  t.line("");
  t.line("Energy     {} per step{}   average {}, {} per chip{}", base::format_si(s.energy_j, "J"),
         s.energy_per_token_j ? ", " + base::format_si(*s.energy_per_token_j, "J/token") : "",
         base::format_si(s.average_power_w, "W"), base::format_si(chip, "W"), limit);
  const std::vector<std::int64_t> tenths = tenths_of_percent({nj.of.begin(), nj.of.end()});
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    if (nj.of[i] == 0) continue;
    const double joules = static_cast<double>(nj.of[i]) * 1e-9;
    const auto tokens = static_cast<double>(r.tokens_per_step);
    const std::string token =
        tokens > 0 ? fmt::format(" {:>14}", base::format_si(joules / tokens, "J/token")) : "";
    cells.push_back(fmt::format("  {:<10}{:>9}{} {:>4}.{} %", base::kEnergyAccountNames[i],
                                base::format_si(joules, "J"), token, tenths[i] / 10,
                                tenths[i] % 10));
  }
  const std::size_t rows = (cells.size() + 1) / 2;
  for (std::size_t row = 0; row < rows; ++row) {
    t.line("{}   {}", cells[row], row + rows < cells.size() ? cells[row + rows] : "");
  }
}

// Share of all ranks' time.
double rank_share(std::int64_t total_fs, const stats::Results& r) {
  return r.ranks > 0 ? share(total_fs, r.step_fs) / static_cast<double>(r.ranks) : 0.0;
}

// "Kernels (6 of 28)" if not all are shown.
std::string top_title(const char* what, std::size_t shown, std::size_t all) {
  return all > shown ? fmt::format("{} ({} of {})", what, shown, all) : std::string(what);
}

void kernels(Text& t, const stats::Results& r) {
  if (r.kernels.empty()) return;
  t.line("");
  t.line("{:<54}{:>11} {:>8} {:>9}  {}", top_title("Kernels", kTopKernels, r.kernels.size()),
         "count", "time", "each", "bound by");
  for (std::size_t i = 0; i < std::min(kTopKernels, r.kernels.size()); ++i) {
    const stats::KernelResult& k = r.kernels[i];
    const std::int64_t each = k.count > 0 ? k.total_fs / k.count : 0;
    t.line("  {:<52}{:>11} {:>6.1f} % {:>9}  {}", cut(k.label, 51), k.count,
           rank_share(k.total_fs, r), time_text(each), k.bound);
  }
}

void collectives(Text& t, const stats::Results& r) {
  if (r.collectives.empty()) return;
  t.line("{:<30}{:>8} {:>8} {:>9} {:>10}  {}",
         top_title("Collectives", kTopCollectives, r.collectives.size()), "count", "time", "each",
         "bus", "worst link");
  for (std::size_t i = 0; i < std::min(kTopCollectives, r.collectives.size()); ++i) {
    const stats::CollectiveResult& c = r.collectives[i];
    const std::int64_t each = c.count > 0 && c.ranks > 0 ? c.total_fs / c.count / c.ranks : 0;
    t.line("  {:<28}{:>8} {:>6.1f} % {:>9} {:>10}  {}", cut(c.label, 27), c.count,
           rank_share(c.total_fs, r), time_text(each), base::format_rate(base::Rate(c.bus_rate)),
           cut(c.worst_link, 30));
  }
}

void limits(Text& t, const Summary& s, const stats::Results& r) {
  if (!r.links.empty()) {
    const auto hottest =
        std::max_element(r.links.begin(), r.links.end(),
                         [](const auto& a, const auto& b) { return a.busy_fs < b.busy_fs; });
    t.line("Link       {} is the hottest: busy {:.1f} %, {}", cut(hottest->name, 40),
           share(hottest->busy_fs, r.step_fs), bytes_text(hottest->bytes));
  }
  t.line("Bound      {} {}; the step is {:.1f} % above it", kLowerBoundNames[s.bound],
         seconds_text(s.lower_bounds_s[s.bound]), s.above_bound_percent);
  std::string all;
  for (std::size_t i = 0; i < kLowerBounds; ++i) {
    all += fmt::format("{}{} {}", i == 0 ? "" : ", ", kLowerBoundNames[i],
                       seconds_text(s.lower_bounds_s[i]));
  }
  t.line("           all: {}", all);
}

void checks(Text& t, const Summary& s) {
  const auto failed =
      std::count_if(s.checks.begin(), s.checks.end(), [](const auto& c) { return !c.passed; });
  if (failed == 0) {
    t.line(
        "Physics    all {} checks ok (time adds up and is above every bound, bytes arrive, energy "
        "adds up)",
        s.checks.size());
    return;
  }
  t.line("Physics    {} of {} checks FAILED", failed, s.checks.size());
  for (const stats::CheckResult& check : s.checks) {
    t.line("  {:<7}{}{}", check.passed ? "ok" : "FAILED", check.name,
           check.detail.empty() ? "" : ": " + check.detail);
  }
}

void assumed(Text& t, const stats::Results& r) {
  if (r.assumed.empty()) {
    t.line("Assumed    no assumed number was used");
    return;
  }
  // As many as fit; those that set a time first.
  std::vector<stats::AssumedUse> order = r.assumed;
  std::stable_partition(order.begin(), order.end(), [](const stats::AssumedUse& a) {
    return a.path.find(".energy.") == std::string::npos;
  });
  const bool one = order.size() == 1;
  std::string text = fmt::format(
      "Assumed    {} no source (see results.json):",
      count_text(static_cast<std::int64_t>(order.size()), "number") + (one ? " has" : " have"));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string next =
        fmt::format("{} {} = {}", i == 0 ? "" : ",", order[i].path, order[i].value);
    const bool last = i + 1 == order.size();
    if (text.size() + next.size() + (last ? 0 : 5) > kColumns) {
      text += i == 0 ? " ..." : ", ...";
      break;
    }
    text += next;
  }
  t.line("{}", text);
}

}  // namespace

std::string to_text(const Summary& summary, const stats::Results& results,
                    const TextContext& context) {
  Text t;
  head(t, summary, results, context);
  breakdown(t, summary, results);
  energy(t, summary, results, context);
  kernels(t, results);
  collectives(t, results);
  limits(t, summary, results);
  checks(t, summary);
  assumed(t, results);
  return t.take();
}

}  // namespace trn3sim::report
