// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Time since the start of the program that a cluster runs: what its models see.
#pragma once

#include "trn3sim/modules/context.hpp"

namespace trn3sim::modules {

class ProgramClock {
 public:
  explicit ProgramClock(Context& context) : context_(&context) {}
  void start() { start_ = context_->now(); }
  [[nodiscard]] base::Time now() const { return context_->now() - start_; }
  // Schedules `event` at program time `at` (not before now). An earlier notification stays.
  void notify(sc_core::sc_event& event, base::Time at) const {
    notify_at(event, *context_, at + start_);
  }

 private:
  Context* context_;
  base::Time start_;
};

}  // namespace trn3sim::modules
