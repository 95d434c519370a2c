// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/text.hpp"

#include "app/trace_commands.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::app {
namespace {

using nlohmann::json;

std::string bytes(std::int64_t n) {
  return base::format_bytes(base::Bytes(n));
}
std::string flop(double n) {
  return base::format_si(n, "FLOP");
}

}  // namespace

std::string info_text(const trace::Program& program, std::int64_t rank) {
  const trace::Header& header = program.header;
  const trace::Totals totals = trace::scan(program, rank);
  const auto ranks = static_cast<double>(header.mesh.ranks());
  std::string mesh;
  for (const base::MeshAxis& axis : header.mesh.axes()) {
    mesh += fmt::format("{}{} {}", mesh.empty() ? "" : " x ", axis.name, axis.size);
  }
  std::string out = fmt::format("{}  ({})\n", header.name, program.file.string());
  out += fmt::format("  ranks        {} ({}), rank = {}\n", header.mesh.ranks(), mesh,
                     base::name(header.rank_unit));
  out += fmt::format("  tokens       {} per step, {} by default\n", header.tokens_per_step,
                     base::name(header.dtype));
  out += fmt::format("  sha256       {}\n", program.content_sha256);
  out += fmt::format("Rank {}\n", rank);
  out += fmt::format("  operations   {}", totals.ops);
  for (const auto& [kind, count] : totals.ops_by_kind) out += fmt::format(", {} {}", kind, count);
  out += fmt::format("\n  model work   {} full attention, {} causal, {} recomputed\n",
                     flop(totals.model_flop), flop(totals.model_flop_causal),
                     flop(totals.recompute_flop));
  out += fmt::format("               {} of all ranks, if all are alike\n",
                     flop(totals.model_flop * ranks));
  out += fmt::format("  memory       {} at the peak, of which activations {}\n",
                     bytes(trace::peak_memory_bytes(program, rank)),
                     bytes(totals.activation_peak_bytes));
  for (const trace::MemoryEntry& entry : header.memory) {
    out += fmt::format("    {:<12} {:>10}  live: {}\n", entry.kind, bytes(entry.bytes), entry.live);
  }
  out += fmt::format("  {:<12}{:>10} {:>14} {:>14} {:>14}\n", "phase", "ops", "full", "causal",
                     "recomputed");
  for (const trace::PhaseTotals& phase : totals.phases) {
    out +=
        fmt::format("  {:<12}{:>10} {:>14} {:>14} {:>14}\n",
                    phase.phase.empty() ? "(none)" : phase.phase, phase.ops, flop(phase.model_flop),
                    flop(phase.model_flop_causal), flop(phase.recompute_flop));
  }
  if (totals.collectives.empty()) return out;
  out += fmt::format("  {:<16}{:<8}{:<12}{:>10} {:>12} {:>12}\n", "collective", "group", "phase",
                     "count", "in", "out");
  for (const trace::GroupTotals& c : totals.collectives) {
    out += fmt::format("  {:<16}{:<8}{:<12}{:>10} {:>12} {:>12}\n", c.kind, c.group,
                       c.phase.empty() ? "(none)" : c.phase, c.count, bytes(c.in_bytes),
                       bytes(c.out_bytes));
  }
  return out;
}

std::string info_json(const trace::Program& program, std::int64_t rank) {
  const trace::Header& header = program.header;
  const trace::Totals totals = trace::scan(program, rank);
  json out = {{"name", header.name},
              {"file", program.file.string()},
              {"sha256", program.content_sha256},
              {"ranks", header.mesh.ranks()},
              {"rank_unit", base::name(header.rank_unit)},
              {"dtype", base::name(header.dtype)},
              {"tokens_per_step", header.tokens_per_step},
              {"rank", rank},
              {"ops", totals.ops},
              {"model_flop", totals.model_flop},
              {"model_causal_flop", totals.model_flop_causal},
              {"recompute_flop", totals.recompute_flop},
              {"activation_peak_bytes", totals.activation_peak_bytes},
              {"peak_memory_bytes", trace::peak_memory_bytes(program, rank)},
              {"mesh", json::array()},
              {"memory", json::array()},
              {"phases", json::array()},
              {"collectives", json::array()},
              {"ops_by_kind", json::object()}};
  for (const base::MeshAxis& axis : header.mesh.axes())
    out["mesh"].push_back({{"name", axis.name}, {"size", axis.size}});
  for (const trace::MemoryEntry& entry : header.memory) {
    out["memory"].push_back({{"kind", entry.kind}, {"bytes", entry.bytes}, {"live", entry.live}});
  }
  for (const auto& [kind, count] : totals.ops_by_kind) out["ops_by_kind"][kind] = count;
  for (const trace::PhaseTotals& phase : totals.phases) {
    out["phases"].push_back({{"phase", phase.phase},
                             {"ops", phase.ops},
                             {"model_flop", phase.model_flop},
                             {"model_causal_flop", phase.model_flop_causal},
                             {"recompute_flop", phase.recompute_flop}});
  }
  for (const trace::GroupTotals& c : totals.collectives) {
    out["collectives"].push_back({{"kind", c.kind},
                                  {"group", c.group},
                                  {"phase", c.phase},
                                  {"count", c.count},
                                  {"in_bytes", c.in_bytes},
                                  {"out_bytes", c.out_bytes}});
  }
  return out.dump(1) + "\n";
}

}  // namespace trn3sim::app
