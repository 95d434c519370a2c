// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A bench: one HBM stack with its cores in full detail, on which kernels run to get their profiles.
#pragma once

#include <systemc>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/instruction.hpp"
#include "trn3sim/models/kernel_profile.hpp"
#include "trn3sim/modules/context.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

namespace trn3sim::sim {

// Elaborate it before the first sc_start(). While it profiles, nothing else may be scheduled in the
// kernel; it restarts the context's epoch for every run, so profiles do not depend on their order.
class KernelBench {
 public:
  // `chip` must outlive the bench.
  KernelBench(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
              modules::Context& context);

  // Runs `program` without a limit, then with limits on the data rate: at `least`, around its
  // average rate, at the knee above which more does not help (the last point of the curve) and
  // until interpolation in 1 / rate errs by less than 1 %, at most 12 points. Rates below `least`
  // are never granted, so they are measured only to find the knee. A run begins with weights that have
  // been loaded ahead, two with the limiter of TensorE released at the start and for good, where that can matter; one has copies of the kernel on the other cores. Throws InternalError for a
  // program that deadlocks.
  models::KernelProfile profile(const models::TileProgram& program,
                                base::Rate least = base::Rate(0));

  // One run. `served_cap`: see StackCluster::load().
  modules::ClusterRun run(const models::TileProgram& program, base::Rate served_cap);

 private:
  void measure(models::KernelProfile& profile, const models::TileProgram& program,
               base::Rate served);
  void find_knee(models::KernelProfile& profile, const models::TileProgram& program,
                 double average);
  void refine(models::KernelProfile& profile, const models::TileProgram& program);
  void add_curve(models::KernelProfile& profile, const models::TileProgram& program,
                 base::Rate least);
  // Runs as many copies as the stack's cores take.
  void measure_copies(models::KernelProfile& profile, const models::TileProgram& program);
  // What the kernel gains if its first weights are there when it starts.
  models::AheadLoads loads_ahead(const models::TileProgram& program, base::Time duration);
  // What the limiter of TensorE costs, and what the kernel gains if it is released at the start.
  void measure_limiter(models::KernelProfile& profile, const models::TileProgram& program,
                       const modules::ClusterRun& cold);
  // `hot`: released at the start only; else it never engages.
  modules::ClusterRun run_beside_limiter(models::KernelProfile& profile,
                                         const models::TileProgram& program, bool hot);
  [[nodiscard]] base::Rate least_data_rate(const models::KernelProfile& profile, std::int64_t cores,
                                           base::Rate least) const;
  // What DMA and HBM can grant at most.
  [[nodiscard]] base::Rate limit(std::size_t cores) const;

  const config::ChipSpec* chip_;
  modules::Context* context_;
  modules::StackCluster cluster_;
};

}  // namespace trn3sim::sim
