// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores of one rank, as its issue logic sees them: they run one kernel at a time.
#pragma once

#include "trn3sim/models/engine_stream.hpp"
#include "trn3sim/models/kernel_profile.hpp"
#include "trn3sim/models/share_weights.hpp"

namespace trn3sim::modules {

class PlayerEnd {
 public:
  virtual ~PlayerEnd() = default;
  virtual void kernel_ended() = 0;
};

// A kernel to run on each stack of the rank; references must outlive the run.
struct KernelWork {
  const models::KernelProfile* profile = nullptr;
  const models::TileProgram* program =
      nullptr;  // kept on detailed chips only; nullptr: opaque work
  std::int64_t weight = models::kUnitWeight;  // on a stack's share
};

class ComputeUnit {
 public:
  virtual ~ComputeUnit() = default;
  // Starts a kernel now. `hidden` of it has been done in the shadow of its predecessor, unless the
  // unit prefetches by itself.
  virtual void play(const KernelWork& work, base::Time hidden) = 0;
  // Whether prefetch() is wanted: `next` will be played after the kernel that has just started.
  [[nodiscard]] virtual bool prefetches() const { return false; }
  virtual void prefetch(const KernelWork& /*next*/, models::Ahead /*ahead*/) {}
};

}  // namespace trn3sim::modules
