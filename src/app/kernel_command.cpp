// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/kernel_command.hpp"

#include "trn3sim/report/files.hpp"
#include "trn3sim/report/kernel.hpp"
#include "trn3sim/report/timeline.hpp"
#include "trn3sim/sim/kernel_run.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace trn3sim::app {

namespace {

constexpr std::size_t kCandidates = 3;

// Runs the analytic search's best mappings and returns the index of the fastest, on a tie the
// first.
std::size_t fastest(sim::KernelRun& bench, const compile::KernelSpec& spec,
                    const config::ChipSpec& chip,
                    const std::vector<config::MappingSpec>& candidates,
                    std::vector<stats::KernelResults::Tried>& tried) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    // The first is the compiler's own choice.
    const config::MappingSpec* const mapping = i == 0 ? nullptr : &candidates[i];
    const config::PanelMapping& p = candidates[i].panels;
    const std::int64_t time = bench.run(spec, compile::compile_kernel(spec, chip, mapping)).time_fs;
    tried.push_back(
        {fmt::format("blocks of {} of {} {}, panels of {}; split {}", p.outer_block, p.outer,
                     p.outer_resident ? "resident" : "streamed", p.inner_block, p.split),
         time});
    if (time < tried[best].time_fs) best = i;
  }
  tried[best].chosen = true;
  return best;
}

}  // namespace

int run_kernel(const RunKernel& options) {
  const config::RunSpec run = config::load_run(options.config, options.overrides);
  for (const std::string& path : config::overrides_without_effect(options.overrides))
    spdlog::warn("--set {}: no model reads this key, so it changes no number", path);
  const config::ChipSpec& chip = run.system.chip;
  const compile::KernelSpec spec = kernel_spec(options, run);
  std::optional<config::MappingSpec> given;
  if (!options.mapping.empty()) given = config::load_mapping(options.mapping);
  const config::MappingSpec* mapping = given ? &*given : nullptr;
  sim::KernelRun bench(chip);
  std::vector<config::MappingSpec> candidates;
  std::vector<stats::KernelResults::Tried> tried;
  if (spec.kind == compile::KernelKind::Gemm && !given) {
    compile::compile_kernel(spec, chip);  // formats that the chip lacks are an error here
    candidates = compile::candidate_mappings(spec, chip, kCandidates);
    const std::size_t best = fastest(bench, spec, chip, candidates, tried);
    if (best > 0) mapping = &candidates[best];
  }
  const models::TileProgram program = compile::compile_kernel(spec, chip, mapping);
  stats::TimelineSpec bounds;
  if (options.timeline_limit) bounds.limit = *options.timeline_limit;
  stats::Timeline timeline(bounds);
  stats::KernelResults results =
      bench.run(spec, program, options.timeline.empty() ? nullptr : &timeline);
  results.tried = std::move(tried);
  results.mapping = compile::describe_mapping(spec, chip, mapping);
  if (spec.kind == compile::KernelKind::Gemm) {
    results.mapping_json =
        config::mapping_text(mapping != nullptr ? *mapping : compile::chosen_mapping(spec, chip));
    if (options.dump_mapping == "-") {
      print(results.mapping_json);
      return kOk;
    }
    if (!options.dump_mapping.empty())
      report::write_file(options.dump_mapping, results.mapping_json);
  }
  if (!options.timeline.empty())
    report::write_file(options.timeline, report::timeline_json(timeline, 1));
  print(options.format == Format::Json ? report::to_json(results, options.explain)
                                       : report::to_text(results, options.explain));
  return kOk;
}

}  // namespace trn3sim::app
