// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/kernel_command.hpp"

#include "trn3sim/report/files.hpp"
#include "trn3sim/report/kernel.hpp"
#include "trn3sim/report/timeline.hpp"
#include "trn3sim/sim/kernel_run.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include <spdlog/spdlog.h>

namespace trn3sim::app {

int run_kernel(const RunKernel& options) {
  const config::RunSpec run = config::load_run(options.config, options.overrides);
  for (const std::string& path : config::overrides_without_effect(options.overrides))
    spdlog::warn("--set {}: no model reads this key, so it changes no number", path);
  const config::ChipSpec& chip = run.system.chip;
  const compile::KernelSpec spec = kernel_spec(options, run);
  std::optional<config::MappingSpec> given;
  if (!options.mapping.empty()) given = config::load_mapping(options.mapping);
  const config::MappingSpec* const mapping = given ? &*given : nullptr;
  const models::TileProgram program = compile::compile_kernel(spec, chip, mapping);
  stats::TimelineSpec bounds;
  if (options.timeline_limit) bounds.limit = *options.timeline_limit;
  stats::Timeline timeline(bounds);
  sim::KernelRun bench(chip);
  stats::KernelResults results =
      bench.run(spec, program, options.timeline.empty() ? nullptr : &timeline);
  results.mapping = compile::describe_mapping(spec, chip, mapping);
  if (spec.kind == compile::KernelKind::Gemm) {
    results.mapping_json =
        config::mapping_text(given ? *given : compile::chosen_mapping(spec, chip));
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
