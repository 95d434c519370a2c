// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory side of messages and collectives on a detailed chip: their bytes are packets of the
// DMA engines of the rank's cores, and contend with the running kernels for engines and HBM.
#pragma once

#include <cstdint>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::modules {

// Told when the last byte of a piece of traffic has moved (and `Traffic::after` has passed).
class TrafficEnd {
 public:
  virtual ~TrafficEnd() = default;
  virtual void traffic_ended(std::int32_t id) = 0;
};

struct Traffic {
  std::int32_t first_core = 0, cores = 1;  // of the stack, whose DMA engines move it
  std::int32_t queue = 0;                  // pieces with one number move in order
  base::Bytes bytes;
  bool write = false;  // to HBM
  base::Rate rate;     // moves no faster than this
  base::Time after;    // from the last byte until traffic_ended()
};

class StackTraffic {
 public:
  virtual ~StackTraffic() = default;
  // Starts moving now; `end` gets `id` back.
  virtual void inject(const Traffic& traffic, TrafficEnd& end, std::int32_t id) = 0;
};

}  // namespace trn3sim::modules
