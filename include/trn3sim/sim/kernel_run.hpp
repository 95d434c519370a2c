// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel in full detail on a bench of its own.
#pragma once

#include <memory>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/instruction.hpp"
#include "trn3sim/stats/kernel_results.hpp"
#include "trn3sim/stats/timeline.hpp"

namespace trn3sim::sim {

// Elaborates the bench: make one before the first sc_start(). `chip` must outlive it.
class KernelRun {
 public:
  explicit KernelRun(const config::ChipSpec& chip);
  ~KernelRun();

  // Runs the program of `spec` alone. With a timeline, instructions and transfers go there: a track
  // per engine and per DMA queue. Throws base::InternalError for a program that deadlocks.
  stats::KernelResults run(const compile::KernelSpec& spec, const models::TileProgram& program,
                           stats::Timeline* timeline = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trn3sim::sim
