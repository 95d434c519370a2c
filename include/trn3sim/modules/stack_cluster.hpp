// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One HBM stack with the NeuronCores that share it, in full detail: engines, semaphores, DMA
// engines and the HBM controller. The same module is the bench that profiles kernels and a quarter
// of a detailed chip.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <systemc>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/event_counts.hpp"
#include "trn3sim/models/instruction.hpp"
#include "trn3sim/modules/context.hpp"

namespace trn3sim::modules {

// What one execution of a tile program on a cluster measured. Times since the start of the program.
struct ClusterRun {
  base::Time duration;        // all streams done and all DMA complete
  base::Time first_compute;   // start of the first compute instruction
  base::Time last_compute;    // end of the last
  base::Time compute_active;  // union over cores and compute engines of busy intervals
  std::array<base::Time, models::kEngines> engine_busy{};  // summed over cores
  base::Time dma_busy;                                     // summed over DMA engines
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, hbm_activates = 0;
  std::int64_t instructions = 0;
  // Every operand that DMA touched before the first compute instruction is a weight.
  bool lead_in_weights_only = false;
};

class StackCluster : public sc_core::sc_module {
 public:
  // `reverse`: construct the parts in reverse order (for the tests that results do not depend on
  // it).
  StackCluster(const sc_core::sc_module_name& name, const config::ChipSpec& chip, Context& context,
               bool reverse = false);
  ~StackCluster() override;

  // Resets every model to its canonical state and loads a program; `served_cap` limits what DMA and
  // HBM together grant (0: no limit); with a limit the HBM stack is replaced by it and its idle
  // latency. The program must outlive the run.
  void load(const models::TileProgram& program, base::Rate served_cap);
  // Starts the loaded program now. `done` is called once, at its end.
  void arm(std::function<void()> done);
  // Valid after `done`. Throws base::InternalError if the program has not finished (deadlock), with
  // who waits for what.
  [[nodiscard]] ClusterRun result() const;
  [[nodiscard]] bool finished() const;
  // Who waits for what, for deadlock reports.
  [[nodiscard]] std::string waiting() const;

 private:
  void end_run();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trn3sim::modules
