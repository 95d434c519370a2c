// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/dma.hpp"

#include <utility>

#include "trn3sim/base/error.hpp"

namespace trn3sim::modules {

Dma::Dma(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
         const ProgramClock& clock, Completed completed, std::function<void()> idle)
    : sc_module(name),
      memory("memory"),
      group_(chip),
      clock_(&clock),
      completed_(std::move(completed)),
      idle_(std::move(idle)) {
  SC_HAS_PROCESS(Dma);
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

void Dma::load(const models::TileProgram& program) {
  group_.load(program);
  last_completion_ = base::Time(0);
}

void Dma::post(const std::vector<models::DmaTrigger>& triggers) {
  if (triggers.empty()) return;
  for (const models::DmaTrigger& t : triggers) {
    TRN3SIM_CHECK(t.at >= clock_->now(), "a stream started DMA in the past");
    group_.post(t);
  }
  clock_->notify(wake_, group_.next());
}

void Dma::step() {
  due_.clear();
  group_.advance(clock_->now(), *memory.operator->(), due_);
  for (const models::DmaCompletion& c : due_) {
    last_completion_ = c.at;
    completed_(c);
  }
  // What completions set off is posted in the next delta.
  if (due_.empty()) group_.run_ahead(*memory.operator->());
  if (group_.idle())
    idle_();
  else
    clock_->notify(wake_, group_.next());
}

}  // namespace trn3sim::modules
