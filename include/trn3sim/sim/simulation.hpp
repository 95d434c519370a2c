// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One simulation: benches and machine are elaborated, kernels profiled, then the program runs. One
// per process (SystemC elaborates once).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/stats/results.hpp"
#include "trn3sim/stats/timeline.hpp"
#include "trn3sim/topology/graph.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::sim {

// Called now and then while running: rank operations done and in all, and simulated time.
struct Progress {
  std::int64_t done = 0, total = 0;
  base::Time simulated;
  const char* stage = "";  // "profiling kernels" | "simulating"
};
using ProgressFunction = std::function<void(const Progress&)>;

// Where profiles of kernels are kept between runs: TRN3SIM_CACHE_DIR, else trn3sim in
// XDG_CACHE_HOME, else ~/.cache/trn3sim. None if TRN3SIM_CACHE_DIR is set to nothing, or without a
// home.
std::optional<std::filesystem::path> profile_cache_directory();

class Simulation {
 public:
  // References must outlive the simulation.
  Simulation(const config::RunSpec& run, const topology::Graph& graph,
             const trace::Program& program, const compile::Plan& plan);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  void on_progress(ProgressFunction function);
  // Records the run into `timeline`, which must outlive the simulation. Call before run().
  void record(stats::Timeline& timeline);
  // Takes profiles from `directory` and leaves new ones there. No byte of the results depends on
  // it.
  void cache_profiles(const std::filesystem::path& directory);
  // Runs to the end. Throws base::UserError on a deadlock of the workload (who waits for whom).
  stats::Results run();
  // Wall times and counts of the run, after run().
  [[nodiscard]] const stats::RunInfo& info() const;
  // What kept the run from using the profile cache, "" if nothing did.
  [[nodiscard]] const std::string& cache_problem() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trn3sim::sim
