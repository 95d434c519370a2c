// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/kernel.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "trn3sim/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

using stats::KernelResults;

double seconds(std::int64_t fs) {
  return static_cast<double>(fs) * 1e-15;
}
double microseconds(std::int64_t fs) {
  return static_cast<double>(fs) * 1e-9;
}
double over(double amount, double by) {
  return by > 0 ? amount / by : 0;
}
double share_percent(const KernelResults& r, std::int64_t fs) {
  return 100 * over(static_cast<double>(fs), static_cast<double>(r.time_fs));
}
double bytes(const KernelResults& r) {
  return static_cast<double>(r.hbm_read_bytes + r.hbm_write_bytes);
}
double flops(const KernelResults& r) {
  return over(r.flop, seconds(r.time_fs));
}

// The bounds with their names, the largest first.
std::vector<std::pair<std::string, std::int64_t>> bounds_of(const KernelResults& r) {
  std::vector<std::pair<std::string, std::int64_t>> bounds = {{"tensor", r.bounds.tensor_fs},
                                                              {"vector", r.bounds.vector_fs},
                                                              {"dma", r.bounds.dma_fs},
                                                              {"hbm", r.bounds.hbm_fs}};
  std::stable_sort(bounds.begin(), bounds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return bounds;
}

class Text {
 public:
  explicit Text(const KernelResults& r) : r_(r) {}

  std::string all(bool explain) {
    line("{} on {} core{} of {}", r_.kernel, r_.cores, r_.cores == 1 ? "" : "s", r_.chip);
    head();
    line("");
    line("active");
    for (std::size_t e = 0; e < stats::kKernelEngines; ++e)
      active(stats::kKernelEngineNames[e], r_.active_fs[e]);
    active("dma", r_.dma_active_fs);
    memory();
    stalls();
    if (explain) mapping();
    return std::move(out_);
  }

 private:
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(values)...);
    out_ += '\n';
  }

  void head() {
    line("  {:<18}{:.3f} us", "time", microseconds(r_.time_fs));
    if (r_.flop > 0)
      line("  {:<18}{:.2f} TFLOPS, {:.1f} % of the {} peak ({:.1f} TFLOPS)", "rate",
           flops(r_) * 1e-12, 100 * over(flops(r_), r_.peak_flops), r_.dtype,
           r_.peak_flops * 1e-12);
    line("  {:<18}{} ({})", "energy", base::format_energy(r_.energy.total()), energy());
  }

  // The three largest accounts.
  [[nodiscard]] std::string energy() const {
    std::vector<std::size_t> order(base::kEnergyAccounts);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return r_.energy.of[a].count() > r_.energy.of[b].count();
    });
    std::string text;
    for (std::size_t i = 0; i < 3; ++i)
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", base::kEnergyAccountNames[order[i]],
                          base::format_energy(r_.energy.of[order[i]]));
    return text;
  }

  void active(std::string_view name, std::int64_t fs) {
    line("  {:<10}{:>14.3f} us{:>8.1f} %", name, microseconds(fs), share_percent(r_, fs));
  }

  void memory() {
    line("");
    line("memory");
    line("  {:<18}{} read, {} written; {:.1f} GB/s, {:.1f} GB/s while DMA is active", "HBM",
         base::format_bytes(base::Bytes(r_.hbm_read_bytes)),
         base::format_bytes(base::Bytes(r_.hbm_write_bytes)),
         over(bytes(r_), seconds(r_.time_fs)) * 1e-9,
         over(bytes(r_), seconds(r_.dma_active_fs)) * 1e-9);
    line("  {:<18}{} saved, {} reloaded", "spills",
         base::format_bytes(base::Bytes(r_.spill_save_bytes)),
         base::format_bytes(base::Bytes(r_.spill_reload_bytes)));
    line("  {:<18}{} of {} bytes per partition", "SBUF", r_.sbuf_bytes_per_partition,
         r_.sbuf_usable_per_partition);
    line("  {:<18}{} of {} banks", "PSUM", r_.psum_banks, r_.psum_banks_there);
    line("  {:<18}{} matmuls, {} transposes, {} DMA transfers, {} instructions", "work", r_.matmuls,
         r_.transposes, r_.transfers, r_.instructions);
  }

  void stalls() {
    line("");
    line("waiting while nothing runs (engine, what it waits for)");
    if (r_.stalls.empty()) line("  none");
    for (const stats::KernelStall& s : r_.stalls)
      line("  {:<8}{:>14.3f} us{:>8.1f} %  {}", s.engine, microseconds(s.time_fs),
           share_percent(r_, s.time_fs), s.waits_for);
  }

  void mapping() {
    line("");
    line("mapping");
    line("  {}", r_.mapping);
    if (!r_.tried.empty()) {
      line("");
      line("mappings tried");
      for (const auto& t : r_.tried)
        line("  {:>14.3f} us  {}{}", microseconds(t.time_fs), t.mapping,
             t.chosen ? "  chosen" : "");
    }
    line("");
    line("bounds");
    const auto bounds = bounds_of(r_);
    for (const auto& [name, fs] : bounds)
      line("  {:<10}{:>14.3f} us{:>8.1f} %{}", name, microseconds(fs), share_percent(r_, fs),
           name == bounds.front().first ? "  binds" : "");
  }

  const KernelResults& r_;
  std::string out_;
};

}  // namespace

std::string to_text(const KernelResults& results, bool explain) {
  return Text(results).all(explain);
}

std::string to_json(const KernelResults& r, bool explain) {
  nlohmann::ordered_json j;
  j["kernel"] = r.kernel;
  j["chip"] = r.chip;
  j["cores"] = r.cores;
  j["time_us"] = microseconds(r.time_fs);
  j["time_fs"] = r.time_fs;
  for (std::size_t e = 0; e < stats::kKernelEngines; ++e)
    j[fmt::format("{}_engine_active_us", stats::kKernelEngineNames[e])] =
        microseconds(r.active_fs[e]);
  j["dma_active_us"] = microseconds(r.dma_active_fs);
  j["hbm_read_bytes"] = r.hbm_read_bytes;
  j["hbm_write_bytes"] = r.hbm_write_bytes;
  j["hbm_gbps"] = over(bytes(r), seconds(r.time_fs)) * 1e-9;
  j["hbm_gbps_while_dma_active"] = over(bytes(r), seconds(r.dma_active_fs)) * 1e-9;
  j["spill_save_bytes"] = r.spill_save_bytes;
  j["spill_reload_bytes"] = r.spill_reload_bytes;
  j["flop"] = r.flop;
  j["tflops"] = flops(r) * 1e-12;
  j["peak_tflops"] = r.peak_flops * 1e-12;
  j["mfu_percent"] = 100 * over(flops(r), r.peak_flops);
  j["matmuls"] = r.matmuls;
  j["transposes"] = r.transposes;
  j["transfers"] = r.transfers;
  j["instructions"] = r.instructions;
  j["sbuf_bytes_per_partition"] = r.sbuf_bytes_per_partition;
  j["psum_banks"] = r.psum_banks;
  j["energy_j"] = static_cast<double>(r.energy.total().count()) * 1e-18;
  for (std::size_t a = 0; a < base::kEnergyAccounts; ++a)
    j["energy_by_account_j"][std::string(base::kEnergyAccountNames[a])] =
        static_cast<double>(r.energy.of[a].count()) * 1e-18;
  j["stalls"] = nlohmann::ordered_json::array();
  for (const stats::KernelStall& s : r.stalls)
    j["stalls"].push_back(
        {{"engine", s.engine}, {"waits_for", s.waits_for}, {"time_us", microseconds(s.time_fs)}});
  if (explain) {
    for (const auto& [name, fs] : bounds_of(r)) j["bounds_us"][name] = microseconds(fs);
    j["binds"] = bounds_of(r).front().first;
    j["mapping_text"] = r.mapping;
    for (const auto& t : r.tried)
      j["mappings_tried"].push_back({{"mapping", t.mapping},
                                     {"time_us", microseconds(t.time_fs)},
                                     {"chosen", t.chosen}});
    if (!r.mapping_json.empty())
      j["mapping"] = nlohmann::ordered_json::parse(r.mapping_json);
  }
  return j.dump(2) + "\n";
}

}  // namespace trn3sim::report
