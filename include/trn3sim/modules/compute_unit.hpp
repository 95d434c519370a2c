// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The cores of one rank, as its issue logic sees them: they run one kernel at a time.
#pragma once

#include "trn3sim/base/state_hash.hpp"
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
  const models::KernelProfile* loads = nullptr;  // ahead; nullptr: none worth it
  bool deferred = false;                         // the loads wait for other traffic
  const models::TileProgram* program =
      nullptr;                  // kept on detailed chips only; nullptr: opaque work
  models::ByteWeights weights;  // on a stack's share
};

// What the limiter of TensorE's current costs a kernel.
struct Throttled {
  base::Time cost;    // it takes longer
  base::Time passes;  // passes on the array take longer, mean over cores
};

class ComputeUnit {
 public:
  virtual ~ComputeUnit() = default;
  // Starts a kernel now. `hidden` of it has been done in the shadow of its predecessor, besides
  // what prefetch() brought.
  virtual void play(const KernelWork& work, base::Time hidden) = 0;
  // Begins loads of `next`, which is played after the kernel that has just started.
  virtual void prefetch(const KernelWork& next, models::Ahead ahead) = 0;
  // Of the running kernel, or the one that ends now.
  [[nodiscard]] virtual Throttled throttled() const = 0;
  // State, for the detection of repetition.
  virtual void fingerprint(base::StateHash& hash) const = 0;
  // Goes on as if `delta` had passed.
  virtual void shift(base::Time delta) = 0;
};

}  // namespace trn3sim::modules
