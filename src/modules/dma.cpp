// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/dma.hpp"

#include <utility>

#include "trn3sim/base/error.hpp"

namespace trn3sim::modules {

Dma::Dma(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
         const ProgramClock& clock, Completed completed)
    : sc_module(name),
      memory("memory"),
      group_(chip),
      clock_(&clock),
      completed_(std::move(completed)) {
  SC_HAS_PROCESS(Dma);
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

void Dma::post(const std::vector<models::DmaTrigger>& triggers) {
  if (triggers.empty()) return;
  for (const models::DmaTrigger& t : triggers) {
    TRN3SIM_CHECK(t.at >= clock_->now(), "a stream started DMA in the past");
    group_.post(t);
  }
  clock_->notify(wake_, group_.next());
}

void Dma::inject(const models::ForeignTransfer& transfer) {
  alone_ = false;
  group_.inject(clock_->now(), transfer);
  clock_->notify(wake_, group_.next());
}

void Dma::step() {
  due_.clear();
  group_.advance(clock_->now(), *memory.operator->(), due_);
  for (const models::DmaCompletion& c : due_) completed_(c);
  // What completions set off is posted in the next delta.
  if (due_.empty() && alone_) group_.run_ahead(*memory.operator->(), bound_());
  if (!group_.idle()) clock_->notify(wake_, group_.next());
}

}  // namespace trn3sim::modules
