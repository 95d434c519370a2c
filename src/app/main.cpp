// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The program. SystemC starts only for commands that simulate.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <systemc>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/report/files.hpp"
#include "trn3sim/report/summary.hpp"
#include "trn3sim/sim/simulation.hpp"
#include "trn3sim/topology/graph.hpp"
#include "trn3sim/trace/program.hpp"

#include "app/cli.hpp"
#include "app/config_commands.hpp"
#include "app/exit_code.hpp"
#include "app/fidelity.hpp"
#include "app/hbm_command.hpp"
#include "app/kernel_command.hpp"
#include "app/output.hpp"
#include "app/precision.hpp"
#include "app/progress.hpp"
#include "app/trace_commands.hpp"
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace trn3sim::app {
namespace {

// Writes the files, then the report; returns the exit code.
int report_run(const Simulate& options, const config::RunSpec& run, const stats::Results& results,
               const stats::RunInfo& info, const stats::Timeline& timeline) {
  const report::Summary summary = report::summarise(results);
  if (!options.out.empty())
    report::write_files(options.out, results, info, options.timeline ? &timeline : nullptr);
  const report::TextContext context{run.system.chip.energy.tdp, version()};
  print(options.format == Format::Json ? report::to_json(summary, results)
                                       : report::to_text(summary, results, context));
  if (summary.checks_passed) return kOk;
  for (const stats::CheckResult& check : summary.checks) {
    if (!check.passed) fmt::print(stderr, "bug in trn3sim: {}: {}\n", check.name, check.detail);
  }
  return kBug;
}

stats::TimelineSpec timeline_spec(const Simulate& options, std::int64_t chips) {
  stats::TimelineSpec spec;
  if (!options.timeline_chips.empty()) spec.chips = options.timeline_chips;
  if (options.timeline_limit) spec.limit = *options.timeline_limit;
  spec.gzip = options.timeline_gzip;
  for (const std::int64_t chip : options.timeline_chips) {
    if (chip < chips) continue;
    throw base::UserError(
        "--timeline-chips",
        fmt::format("there is no chip {}; {} has chips 0 to {}", chip, options.config, chips - 1));
  }
  return spec;
}

int simulate(const Simulate& options) {
  config::RunSpec run = config::load_run(options.config, options.overrides);
  config::choose_detailed_chips(run, options.detailed, options.detailed_chips);
  for (const std::string& path : config::overrides_without_effect(options.overrides))
    spdlog::warn("--set {}: no model reads this key, so it changes no number", path);
  const topology::Graph graph = topology::build(run.system);
  const trace::Program program =
      compile::rewrite(trace::read(config::find_trace(options.trace)), run.compile);
  const compile::Plan plan = compile::place(program, graph, run);
  if (!options.out.empty()) report::check_directory(options.out);

  stats::Timeline timeline(timeline_spec(options, graph.chips()));
  sim::Simulation machine(run, graph, program, plan);
  if (options.timeline) machine.record(timeline);
  const std::unique_ptr<Progress> progress = options.quiet ? nullptr : terminal_progress();
  if (progress) machine.on_progress([&](const sim::Progress& p) { progress->update(p); });
  if (const auto cache = sim::profile_cache_directory(); cache && options.cache)
    machine.cache_profiles(*cache);
  const stats::Results results = machine.run();
  if (progress) progress->finish();
  if (!machine.cache_problem().empty())
    spdlog::warn("the cache of kernel profiles is not used: {}", machine.cache_problem());
  return report_run(options, run, results, machine.info(), timeline);
}

// What sc_main() is to do; SystemC hands it no context.
std::function<int()> in_systemc;

// SystemC's own messages: errors become exceptions, the rest goes to the log.
void forward_report(const sc_core::sc_report& report, const sc_core::sc_actions& actions) {
  const std::string text = fmt::format("SystemC: {}: {}", report.get_msg_type(), report.get_msg());
  if ((actions & sc_core::SC_THROW) != 0) throw sc_core::sc_report(report);
  if (report.get_severity() == sc_core::SC_INFO) {
    spdlog::debug(text);
  } else if (report.get_severity() == sc_core::SC_WARNING) {
    spdlog::warn(text);
  } else {
    spdlog::error(text);
  }
  if ((actions & sc_core::SC_ABORT) != 0) std::abort();
}

int start_systemc(std::function<int()> body) {
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  sc_core::sc_report_handler::set_handler(forward_report);
  in_systemc = std::move(body);
  char name[] = "trn3sim";
  char* arguments[] = {name, nullptr};
  const int code = sc_core::sc_elab_and_sim(1, arguments);
  in_systemc = {};
  return code;
}

int run(const Command& command) {
  if (const auto* show = std::get_if<ShowText>(&command)) {
    print(show->text);
    return kOk;
  }
  if (const auto* options = std::get_if<Fidelity>(&command)) return fidelity(*options);
  if (const auto* options = std::get_if<AttributePrecision>(&command)) return precision(*options);
  if (const auto* options = std::get_if<DriveHbm>(&command)) return drive_hbm_stack(*options);
  if (const auto* options = std::get_if<GenerateLlama>(&command)) return generate_llama(*options);
  if (const auto* options = std::get_if<GenerateSynthetic>(&command))
    return generate_synthetic(*options);
  if (const auto* options = std::get_if<TraceInfo>(&command)) return trace_info(*options);
  if (const auto* options = std::get_if<TraceCheck>(&command)) return trace_check(*options);
  if (const auto* options = std::get_if<ConfigList>(&command)) return config_list(*options);
  if (const auto* options = std::get_if<ConfigShow>(&command)) return config_show(*options);
  if (const auto* options = std::get_if<ConfigCheck>(&command)) return config_check(*options);
  if (const auto* options = std::get_if<ConfigSchema>(&command)) return config_schema(*options);
  if (const auto* options = std::get_if<RunKernel>(&command))
    return start_systemc([options] { return run_kernel(*options); });
  const auto& options = std::get<Simulate>(command);
  return start_systemc([&options] { return simulate(options); });
}

// The body of sc_main(); nothing may escape into SystemC.
int simulate_from_systemc() {
  return guarded(in_systemc);
}

}  // namespace
}  // namespace trn3sim::app

int sc_main(int /*argc*/, char** /*argv*/) {
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
  return trn3sim::app::simulate_from_systemc();
}

int main(int argc, char** argv) {
  trn3sim::app::reserve_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit of its size is an error like a full disk
  return trn3sim::app::guarded([&] {
    spdlog::set_default_logger(spdlog::stderr_logger_st("trn3sim"));
    spdlog::set_pattern("%l: %v");
    return trn3sim::app::run(trn3sim::app::parse({argv + 1, argv + argc}));
  });
}
