// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a StackCluster and the programs that run on its cores.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trn3sim/models/busy_union.hpp"
#include "trn3sim/models/stack_space.hpp"
#include "trn3sim/modules/core.hpp"
#include "trn3sim/modules/dma.hpp"
#include "trn3sim/modules/hbm_controller.hpp"
#include "trn3sim/modules/program_clock.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

namespace trn3sim::modules {

inline constexpr auto kTensor = static_cast<std::size_t>(models::Engine::Tensor);

struct StackCluster::Impl {
  // A program on some of the cores.
  struct Job {
    const models::TileProgram* program = nullptr;
    std::vector<Core*> cores;
    std::size_t first_core = 0;
    base::Time start;                  // of its clock
    base::Time last_completion;        // program time
    std::int64_t in_flight = 0;        // transfers
    base::Time released;               // program time
    std::vector<std::int64_t> loaded;  // bytes of completed transfers while held, by core
    bool active = false, held = false;
    base::Time ends = base::kTimeMax;  // cluster time, once known
    std::function<void()> done;
  };
  struct Foreign {
    TrafficEnd* end = nullptr;
    std::int32_t id = 0;
  };
  // A core's limiter of TensorE after its last program, in cycles since `origin`.
  struct Limiter {
    models::DidtLimiter state;
    base::Time origin;
    bool used = false;
    base::Time cost;  // of the program, mean over its cores
  };

  Impl(const config::ChipSpec& spec, Context& context, bool reverse);

  void make_dma();
  void make_core(std::size_t index, std::size_t set, bool reverse);
  void load(const models::TileProgram& tile_program, base::Rate served_cap, models::Ahead ahead);
  void release(std::size_t slot);
  void arm(std::function<void()> callback);
  void bind(std::size_t slot, std::size_t first_core, const models::TileProgram& tile_program);
  void check(const models::TileProgram& tile_program) const;
  void launch(std::size_t first_core, const models::TileProgram& tile_program, models::Ahead ahead,
              std::function<void()> callback);
  void inject(const Traffic& traffic, TrafficEnd& end, std::int32_t id);
  void post(std::size_t slot, std::vector<models::DmaTrigger>& triggers);
  void completed(const models::DmaCompletion& c);
  // All streams of the job have ended and its DMA is idle: sleeps until the last of their times.
  void maybe_end(std::size_t slot);
  void end_due();
  void measure(Job& job);
  void take_limiters(Job& job);
  void leave_limiters(const Job& job);
  void collect(Core& changed);

  const config::ChipSpec* chip;
  bool measuring = false;  // one program alone since load()
  ProgramClock clock;
  models::StackSpace space;
  HbmController hbm;
  std::unique_ptr<Dma> dma;
  std::vector<std::unique_ptr<Core>> cores;  // core x kSets + set
  std::vector<std::size_t> slot_of;          // of the core: index into jobs
  std::vector<Job> jobs;                     // first core x kSets + set
  std::vector<Limiter> limiters;             // by core
  std::vector<Foreign> foreign;
  std::vector<std::int32_t> free_foreign;
  models::BusyUnion active;
  sc_core::sc_event end_event;
  bool finished = false;
  ClusterRun run;
};

}  // namespace trn3sim::modules
