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

struct KernelProfile {
  base::Time duration;                    // with nothing else on the stack
  std::vector<ProfilePoint> curve;        // ascending served rate; the last is the unlimited point
  base::Time lead_in;                     // start until the first compute instruction runs
  base::Time weight_lead_in;              // part of lead_in that loads weights (prefetchable)
  base::Time drain;                       // last compute instruction until the end
  base::Time compute_active;              // time with at least one compute engine of the cores busy
  base::Time tensor_ideal;                // executed MACs at the array's peak for their format
  std::array<base::Time, kEngines> engine_busy{};  // mean over the cores
  base::Time dma_busy;                    // mean over DMA engines
  EventCounts counts;                     // of all cores of the stack
  std::int64_t instructions = 0;          // simulated on the bench, all points

  // Duration when `served` bytes per second are granted: interpolated in 1/rate, extrapolated below
  // the lowest point by bytes/rate scaling.
  [[nodiscard]] base::Time at(base::Rate served) const;
  // The rate above which more does not help (the curve's knee), 0 if the kernel moves no data.
  [[nodiscard]] base::Rate demand() const;
};

}  // namespace trn3sim::models
