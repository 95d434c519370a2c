// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores of one rank in profiled mode: plays one kernel at a time on the stacks of the rank. A
// kernel on several stacks ends when its part on every stack has. Loads ahead are work of their own
// on each stack, beside the running kernel; the next kernel is shorter by the share of them that is
// done when it starts, and by what it saves if it finds the limiter of TensorE released.
#pragma once

#include <systemc>
#include <vector>

#include "trn3sim/models/limiter_replay.hpp"
#include "trn3sim/modules/compute_unit.hpp"
#include "trn3sim/modules/hbm_share.hpp"

namespace trn3sim::modules {

class KernelPlayer : public sc_core::sc_module, public ComputeUnit, public KernelEnd {
 public:
  // `group`: of the rank's DMA engines on each stack.
  KernelPlayer(const sc_core::sc_module_name& name, std::vector<HbmShare*> shares,
               std::int32_t group, PlayerEnd& end, const config::ThrottleSpec& limiter)
      : sc_module(name),
        shares_(std::move(shares)),
        group_(group),
        end_(end),
        loads_(shares_.size()),
        limiter_(limiter) {}

  void play(const KernelWork& work, base::Time hidden) override;
  void prefetch(const KernelWork& next, models::Ahead ahead) override;
  void fingerprint(base::StateHash& hash) const override;
  [[nodiscard]] Throttled throttled() const override { return throttled_; }
  void shift(base::Time delta) override { limiter_.shift(delta); }
  void kernel_part_ended() override;

 private:
  // Loads ahead on one stack.
  struct Loads : public KernelEnd {
    models::ShareModel::Handle handle = 0;
    bool running = false;
    void kernel_part_ended() override { running = false; }
  };

  std::vector<HbmShare*> shares_;
  std::int32_t group_;
  PlayerEnd& end_;
  std::size_t parts_ = 0;
  std::vector<Loads> loads_;                      // by stack
  const models::KernelProfile* ahead_ = nullptr;  // of the kernel that is loaded ahead
  models::LimiterReplay limiter_;
  Throttled throttled_;
};

}  // namespace trn3sim::modules
