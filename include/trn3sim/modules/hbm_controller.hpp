// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The HBM stack as seen by the DMA engines of its cores.
#pragma once

#include <systemc>

#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/rate_limiter.hpp"

namespace trn3sim::modules {

// Memory boundary: times are since the start of the cluster's program.
class MemoryInterface : virtual public sc_core::sc_interface, public models::Memory {};

class HbmController : public sc_core::sc_module, public MemoryInterface {
 public:
  HbmController(const sc_core::sc_module_name& name, const config::ChipSpec& chip)
      : sc_module(name), stack_(chip.hbm, chip.stacks) {}

  // `served_cap`: what the memory grants to this cluster at most, 0 = no limit.
  void load(base::Rate served_cap) {
    stack_.reset();
    limiter_.reset(served_cap);
  }
  base::Time access(base::Time now, std::int64_t address, std::int64_t bytes, bool write) override {
    const models::RateLimiter::Slot slot = limiter_.serve(now, bytes);
    return std::max(slot.end, stack_.access(slot.start, address, bytes, write));
  }
  [[nodiscard]] const models::HbmStack& stack() const { return stack_; }

 private:
  models::HbmStack stack_;
  models::RateLimiter limiter_;
};

}  // namespace trn3sim::modules
