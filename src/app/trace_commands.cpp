// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/trace_commands.hpp"

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/generate/synthetic.hpp"
#include "trn3sim/report/files.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

void write(const std::string& file, const std::string& text) {
  if (file == "-") {
    print(text);
  } else {
    report::write_file(file, text);
  }
}

// Where option `name` goes in a plan.
std::int64_t& slot(generate::LlamaPlan& plan, const std::string& name) {
  if (name == "tp") return plan.tp;
  if (name == "dp") return plan.dp;
  if (name == "seq") return plan.seq;
  if (name == "mbs") return plan.mbs;
  if (name == "gbs") return plan.gbs;
  if (name == "layers") return plan.dims.layers;
  if (name == "hidden") return plan.dims.hidden;
  if (name == "heads") return plan.dims.heads;
  if (name == "kv-heads") return plan.dims.kv_heads;
  if (name == "ffn") return plan.dims.ffn;
  TRN3SIM_CHECK(name == "vocab", "no place for option " + name);
  return plan.dims.vocab;
}

void require_sizes(const generate::LlamaDims& dims) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", dims.layers},     {"hidden", dims.hidden}, {"heads", dims.heads},
      {"kv-heads", dims.kv_heads}, {"ffn", dims.ffn},       {"vocab", dims.vocab}};
  std::string missing;
  for (const auto& [name, value] : sizes) {
    if (value == 0) missing += fmt::format("{}--{}", missing.empty() ? "" : ", ", name);
  }
  if (missing.empty()) return;
  throw base::UserError("command line",
                        fmt::format("sizes of the model are missing: {}; give them or --preset {}",
                                    missing, fmt::join(generate::llama_preset_names(), "|")));
}

}  // namespace

generate::LlamaPlan llama_plan(const GenerateLlama& options) {
  generate::LlamaPlan plan;
  plan.name = options.preset.empty() ? "llama" : options.preset;
  if (!options.preset.empty()) plan.dims = generate::llama_preset(options.preset);
  for (const auto& [name, value] : options.values) slot(plan, name) = value;
  if (plan.dims.kv_heads == 0) plan.dims.kv_heads = plan.dims.heads;  // no grouped queries
  require_sizes(plan.dims);
  if (options.rank_unit == "chip") plan.rank_unit = base::RankUnit::Chip;
  if (options.rank_unit == "logical_core") plan.rank_unit = base::RankUnit::LogicalCore;
  if (options.rank_unit == "core") plan.rank_unit = base::RankUnit::Core;
  for (const generate::Recompute r :
       {generate::Recompute::None, generate::Recompute::Selective, generate::Recompute::Full})
    if (options.recompute == generate::recompute_name(r)) plan.recompute = r;
  plan.zero1 = options.zero1;
  plan.overlap_grad_reduce = options.overlap_grad_reduce;
  return plan;
}

int generate_llama(const GenerateLlama& options) {
  write(options.out, generate::generate_llama(llama_plan(options)));
  return kOk;
}

int generate_synthetic(const GenerateSynthetic& options) {
  write(options.out, options.name == "residual_add" ? generate::generate_residual_add()
                                                    : generate::generate_optimizer_only());
  return kOk;
}

int trace_info(const TraceInfo& options) {
  const trace::Program program = trace::read(config::find_trace(options.file));
  const std::int64_t ranks = program.header.mesh.ranks();
  if (options.rank >= ranks) {
    throw base::UserError("command line",
                          fmt::format("--rank {}: {} has ranks 0 to {}", options.rank,
                                      program.file.string(), ranks - 1));
  }
  print(options.format == Format::Json ? info_json(program, options.rank)
                                       : info_text(program, options.rank));
  return kOk;
}

int trace_check(const TraceCheck& options) {
  const trace::Program program = trace::read(config::find_trace(options.file));
  const trace::Totals totals = trace::scan(program, 0);
  print(fmt::format("{}: ok, {} blocks, {} ranks, {} operations on rank 0\n", program.file.string(),
                    program.blocks.size(), program.header.mesh.ranks(), totals.ops));
  return kOk;
}

}  // namespace trn3sim::app
