// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A chip in full detail: one StackCluster per HBM stack, the same module that benches use. What
// crosses stacks (messages, collectives) is the machine's business.
#pragma once

#include <memory>
#include <systemc>
#include <vector>

#include "trn3sim/modules/stack_cluster.hpp"

#include <fmt/format.h>

namespace trn3sim::modules {

class DetailedChip : public sc_core::sc_module {
 public:
  DetailedChip(const sc_core::sc_module_name& name, const config::ChipSpec& chip, Context& context)
      : sc_module(name) {
    for (std::int64_t s = 0; s < chip.stacks; ++s)
      stacks_.push_back(
          std::make_unique<StackCluster>(fmt::format("stack{}", s).c_str(), chip, context));
  }
  [[nodiscard]] StackCluster& stack(std::size_t i) { return *stacks_[i]; }
  [[nodiscard]] std::size_t stacks() const { return stacks_.size(); }

 private:
  std::vector<std::unique_ptr<StackCluster>> stacks_;
};

}  // namespace trn3sim::modules
