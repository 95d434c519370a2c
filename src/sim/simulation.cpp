// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/simulation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/sim/bench.hpp"

#include "collect.hpp"
#include "machine.hpp"
#include "profile_store.hpp"
#include "timeline_recorder.hpp"
#include <fmt/format.h>
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

// The least rate that a kernel can be granted if it asks for more: a stack is shared max-min fair
// by the kernels of its ranks and their collective flows, one for each stream that the program
// uses.
base::Rate least_grant(const MachineState& state, base::Rate capacity) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> ranks;  // by chip, stack
  std::int64_t most = 1;
  for (const compile::RankPlace& place : state.plan->places)
    for (std::int64_t s = 0; s < place.stacks; ++s)
      most = std::max(most, ++ranks[{place.chip, place.first_stack + s}]);
  std::set<std::int32_t> streams;
  for (const BlockInfo& block : state.tables.blocks)
    for (const std::int32_t queue : block.queue)
      if (queue >= kQueueStream0) streams.insert(queue);
  return base::Rate(capacity.count() / (most * (1 + std::int64_t(streams.size()))));
}

namespace {

// Simulated time ends at 9,223 s; kernels one after another must not pass it.
void check_kernel_time(const MachineState& state) {
  const auto seconds = [&](std::int32_t kernel) {
    return kernel < 0 ? 0
                      : base::to_seconds(state.profiles[static_cast<std::size_t>(kernel)].duration);
  };
  const double total = trace::sum_over_ops(*state.program, -1, [&](std::int32_t b, std::int32_t i) {
    const compile::OpPlan& plan =
        state.plan->ops[static_cast<std::size_t>(b)][static_cast<std::size_t>(i)];
    return seconds(plan.kernel) * plan.pieces + seconds(plan.last_piece);
  });
  if (total > compile::kMostSeconds)
    throw base::UserError(
        state.program->file.string(),
        fmt::format("the kernels of a rank would take {:.3g} s; at most {:.0f} s can be "
                    "simulated. Check counts, sizes and rates",
                    total, compile::kMostSeconds));
}

}  // namespace

struct Simulation::Impl {
  Machine machine;
  KernelBench bench;
  std::optional<ProfileStore> store;
  stats::RunInfo info;
  std::unique_ptr<TimelineRecorder> recorder;
  std::string cache_problem;

  Impl(const config::RunSpec& run, const topology::Graph& graph, const trace::Program& program,
       const compile::Plan& plan)
      : machine(run, graph, program, plan),
        bench("bench", run.system.chip, machine.state().context) {}

  models::KernelProfile profile(const compile::KernelSpec& kernel, base::Rate least);
  void profile_kernels();
};

models::KernelProfile Simulation::Impl::profile(const compile::KernelSpec& kernel,
                                                base::Rate least) {
  const config::ChipSpec& chip = machine.state().run->system.chip;
  const std::string key = store ? profile_key(model_version(), chip, kernel, least) : std::string();
  if (store) {
    if (std::optional<models::KernelProfile> known = store->load(key)) return *std::move(known);
  }
  models::KernelProfile measured = bench.profile(compile::compile_kernel(kernel, chip), least);
  info.bench_instructions += measured.instructions;
  if (store) store->save(key, measured);
  return measured;
}

// The order in which kernels are profiled must not matter; run.shuffle permutes it.
void Simulation::Impl::profile_kernels() {
  MachineState& state = machine.state();
  const auto& kernels = state.plan->kernels;
  const base::Rate least = least_grant(state, machine.stack_capacity());
  std::int64_t done = 0;
  for (std::size_t i : construction_order(kernels.size(), state.run->shuffle)) {
    state.profiles[i] = profile(kernels[i], least);
    state.longest_lead_in = std::max(state.longest_lead_in, state.profiles[i].lead_in);
    ++done;
    if (state.progress)
      state.progress(
          {done, static_cast<std::int64_t>(kernels.size()), base::Time(0), "profiling kernels"});
  }
  info.profiled_kernels = done;
  check_kernel_time(state);
  if (!store) return;
  info.profile_cache_hits = store->hits();
  info.profile_cache_misses = store->misses();
  info.profile_cache_errors = store->errors();
  cache_problem = store->problem();
}

std::optional<std::filesystem::path> profile_cache_directory() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::filesystem::path(text == nullptr ? "" : text);
  };
  if (std::getenv("TRN3SIM_CACHE_DIR") != nullptr) {
    const std::filesystem::path directory = value("TRN3SIM_CACHE_DIR");
    return directory.empty() ? std::nullopt : std::optional(directory);
  }
  // A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
  if (value("XDG_CACHE_HOME").is_absolute()) return value("XDG_CACHE_HOME") / "trn3sim";
  if (value("HOME").is_absolute()) return value("HOME") / ".cache" / "trn3sim";
  return std::nullopt;
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
  state.skipper = nullptr;  // a timeline shows every iteration
}

void Simulation::cache_profiles(const std::filesystem::path& directory) {
  impl_->store.emplace(directory);
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
  if (state.end.count() == 0)
    throw base::UserError(state.program->file.string(),
                          "the step takes no time: it has no work to simulate");
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

const std::string& Simulation::cache_problem() const {
  return impl_->cache_problem;
}

}  // namespace trn3sim::sim
