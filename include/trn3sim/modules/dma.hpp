// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The DMA engines of one stack's cores: one process, one wake event. Transfers that several engines
// start at one instant are served in the order of (job, core, engine).
#pragma once

#include <functional>
#include <systemc>
#include <vector>

#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/modules/hbm_controller.hpp"
#include "trn3sim/modules/program_clock.hpp"

namespace trn3sim::modules {

class Dma : public sc_core::sc_module {
 public:
  sc_core::sc_port<MemoryInterface> memory;

  // `completed`: called for each transfer at the time of its semaphore write.
  using Completed = std::function<void(const models::DmaCompletion&)>;
  Dma(const sc_core::sc_module_name& name, const config::ChipSpec& chip, const ProgramClock& clock,
      Completed completed);

  // A program alone, from the canonical state: the engines may work ahead of the simulated time.
  void load(const models::TileProgram& program) {
    alone_ = true;
    group_.load(program);
  }
  // A program beside others.

  void load(std::int32_t job, const models::TileProgram& program, std::int32_t first_core,
            std::int64_t address) {
    alone_ = false;
    group_.load(job, program, first_core, address);
  }
  // Starts transfers; none lies before the current time.
  void post(const std::vector<models::DmaTrigger>& triggers);
  // Starts a foreign transfer now.
  void inject(const models::ForeignTransfer& transfer);
  void defer(std::int32_t job, bool deferred) { group_.defer(job, deferred); }
  // See models::DmaGroup::record().
  void record(std::size_t limit) { group_.record(limit); }
  // `bound`: program time before which no core starts a transfer but after a completion.
  void work_ahead_until(std::function<base::Time()> bound) { bound_ = std::move(bound); }
  [[nodiscard]] const models::DmaGroup& group() const { return group_; }

 private:
  void step();

  models::DmaGroup group_;
  const ProgramClock* clock_;
  Completed completed_;
  std::function<base::Time()> bound_ = [] { return base::kTimeMax; };
  std::vector<models::DmaCompletion> due_;
  bool alone_ = false;
  sc_core::sc_event wake_;
};

}  // namespace trn3sim::modules
