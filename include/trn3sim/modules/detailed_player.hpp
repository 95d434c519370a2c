// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores of one rank on a detailed chip: runs the tile programs of its kernels on the clusters
// of its stacks. A kernel ends when its part on every stack has. Opaque work, which has no program,
// lasts as long as alone and moves its bytes at an even rate.
#pragma once

#include <systemc>
#include <vector>

#include "trn3sim/modules/compute_unit.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

namespace trn3sim::modules {

class DetailedPlayer : public sc_core::sc_module, public ComputeUnit, public TrafficEnd {
 public:
  using SC_CURRENT_USER_MODULE = DetailedPlayer;
  // `first_core`, `cores`: of the rank on each of its stacks.
  DetailedPlayer(const sc_core::sc_module_name& name, std::vector<StackCluster*> stacks,
                 std::int64_t first_core, std::int64_t cores, const Context& context,
                 PlayerEnd& end);

  void play(const KernelWork& work, base::Time hidden) override;
  void prefetch(const KernelWork& next, models::Ahead ahead) override;
  [[nodiscard]] Throttled throttled() const override;
  void shift(base::Time /*delta*/) override {}
  void fingerprint(base::StateHash& /*hash*/) const override {}  // no loops are skipped
  void traffic_ended(std::int32_t id) override;

 private:
  void part_ended();

  std::vector<StackCluster*> stacks_;
  std::int64_t first_core_, cores_;
  const Context& context_;
  PlayerEnd& end_;
  std::size_t parts_ = 0;
  const models::KernelProfile* profile_ = nullptr;  // of the last kernel, if it has a program
  sc_core::sc_event opaque_end_;
};

}  // namespace trn3sim::modules
