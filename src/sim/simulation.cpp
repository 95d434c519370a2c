// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/simulation.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "timeline_recorder.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/sim/bench.hpp"

#include "collect.hpp"
#include "machine.hpp"
#include <sys/resource.h>
#include <unistd.h>

namespace trn3sim::sim {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data())
                                                        : std::string("unknown");
}

}  // namespace

struct Simulation::Impl {
  Machine machine;
  KernelBench bench;
  stats::RunInfo info;
  std::unique_ptr<TimelineRecorder> recorder;

  Impl(const config::RunSpec& run, const topology::Graph& graph, const trace::Program& program,
       const compile::Plan& plan)
      : machine(run, graph, program, plan),
        bench("bench", run.system.chip, machine.state().context) {}

  void profile_kernels();
};

// The order in which kernels are profiled must not matter; run.shuffle permutes it.
void Simulation::Impl::profile_kernels() {
  MachineState& state = machine.state();
  const auto& kernels = state.plan->kernels;
  std::int64_t done = 0;
  for (std::size_t i : construction_order(kernels.size(), state.run->shuffle)) {
    const models::TileProgram program = compile::compile_kernel(kernels[i], state.run->system.chip);
    state.profiles[i] = bench.profile(program);
    state.longest_lead_in = std::max(state.longest_lead_in, state.profiles[i].weight_lead_in);
    info.bench_instructions += state.profiles[i].instructions;
    ++done;
    if (state.progress)
      state.progress(
          {done, static_cast<std::int64_t>(kernels.size()), base::Time(0), "profiling kernels"});
  }
  info.profiled_kernels = done;
}

Simulation::Simulation(const config::RunSpec& run, const topology::Graph& graph,
                       const trace::Program& program, const compile::Plan& plan)
    : impl_(std::make_unique<Impl>(run, graph, program, plan)) {}

Simulation::~Simulation() = default;

void Simulation::on_progress(ProgressFunction function) {
  impl_->machine.state().progress = std::move(function);
}

void Simulation::record(stats::Timeline& timeline) {
  MachineState& state = impl_->machine.state();
  impl_->recorder = std::make_unique<TimelineRecorder>(state, timeline);
  state.timeline = impl_->recorder.get();
}

stats::Results Simulation::run() {
  const auto start = std::chrono::steady_clock::now();
  MachineState& state = impl_->machine.state();
  for (std::size_t r = 0; r < state.plan->places.size(); ++r)
    state.ops_total += trace::scan(*state.program, static_cast<std::int64_t>(r)).ops;
  impl_->profile_kernels();
  stats::RunInfo& info = impl_->info;
  info.profile_wall_s = seconds_since(start);
  const auto begin = std::chrono::steady_clock::now();
  impl_->machine.run();
  info.simulate_wall_s = seconds_since(begin);
  stats::Results results = collect(impl_->machine);
  info.wall_s = seconds_since(start);
  info.rank_ops = state.ops_done;
  info.kernel_events = impl_->machine.events();
  info.peak_rss_bytes = peak_rss();
  info.host = host_name();
  info.version = model_version();
  return results;
}

const stats::RunInfo& Simulation::info() const {
  return impl_->info;
}

}  // namespace trn3sim::sim
