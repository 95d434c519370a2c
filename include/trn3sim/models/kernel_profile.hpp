// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What a bench learns about one kernel on the cores of one HBM stack.
#pragma once

#include <array>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/models/event_counts.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

struct ProfilePoint {
  base::Rate served;      // data rate that DMA and HBM together grant
  base::Time duration;
};

// Loads of weights that a kernel's cores can do before it starts, in the shadow of another kernel,
// as far as its buffers go.
struct AheadLoads {
  base::Bytes bytes;                          // of all cores of the stack; 0: no loads worth it
  base::Time duration;                        // with nothing else on the stack
  base::Time saves;                           // the kernel is that much shorter once they are done
  std::int64_t sbuf_bytes_per_partition = 0;  // that they fill, on the fullest core
};

// How a kernel meets the limiter of TensorE's current. The kernel's other numbers are those of a cold
// entry, with TensorE idle before. All zero without work on TensorE or without a limiter.
struct TensorEntry {
  base::Time head;       // start until the first instruction of TensorE
  base::Time tail;       // end of the last one until the end
  base::Time age;        // then: since the limit was last engaged, at most its ramp
  base::Time idle;       // then: idle time in the limiter's window
  base::Time passes;     // what passes on the array take longer, mean over cores
  base::Time cost;       // what the kernel takes longer than without a limiter
  base::Time active;     // what its compute_active is longer
  base::Time saves;      // a hot entry, with the limit released, is that much shorter
  base::Time passes_less;  // and the passes
};

struct KernelProfile {
  base::Time duration;                    // with nothing else on the stack
  std::vector<ProfilePoint> curve;        // ascending served rate; the last is the unlimited point
  base::Time lead_in;                     // start until the first compute instruction runs
  base::Time drain;                       // last compute instruction until the end
  base::Time compute_active;              // time with at least one compute engine of the cores busy
  base::Time tensor_ideal;                // executed MACs at the array's peak for their format
  std::array<base::Time, kEngines> engine_busy{};  // mean over the cores
  base::Time dma_busy;                    // mean over DMA engines
  EventCounts counts;                     // of all cores of the stack
  // With `copies` of the kernel side by side, on all cores of the stack; 0: one takes them all.
  std::int64_t copies = 0;
  base::Time shared;
  AheadLoads ahead;
  TensorEntry tensor;
  std::int64_t sbuf_bytes_per_partition = 0;  // that the kernel takes
  std::int64_t instructions = 0;              // simulated on the bench, all points

  // Duration when `served` bytes per second are granted: interpolated in 1/rate; below the lowest
  // point it grows by bytes/rate.
  [[nodiscard]] base::Time at(base::Rate served) const;
  // The rate above which more does not help (the curve's knee), 0 if the kernel moves no data.
  [[nodiscard]] base::Rate demand() const;
};

// The loads ahead as work of their own on a stack.
KernelProfile ahead_profile(const AheadLoads& ahead);

}  // namespace trn3sim::models
