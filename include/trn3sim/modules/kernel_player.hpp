// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores of one rank in profiled mode: plays one kernel at a time on the stacks of the rank. A
// kernel on several stacks ends when its part on every stack has.
#pragma once

#include <systemc>
#include <vector>

#include "trn3sim/modules/compute_unit.hpp"
#include "trn3sim/modules/hbm_share.hpp"

namespace trn3sim::modules {

class KernelPlayer : public sc_core::sc_module, public ComputeUnit, public KernelEnd {
 public:
  KernelPlayer(const sc_core::sc_module_name& name, std::vector<HbmShare*> shares, PlayerEnd& end)
      : sc_module(name), shares_(std::move(shares)), end_(end) {}

  void play(const KernelWork& work, base::Time hidden) override {
    parts_ = shares_.size();
    for (HbmShare* share : shares_) share->start_kernel(*work.profile, hidden, work.weight, *this);
  }
  void kernel_part_ended() override {
    if (--parts_ == 0) end_.kernel_ended();
  }

 private:
  std::vector<HbmShare*> shares_;
  PlayerEnd& end_;
  std::size_t parts_ = 0;
};

}  // namespace trn3sim::modules
