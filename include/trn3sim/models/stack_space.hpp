// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses in one HBM stack. Each core has an equal share: the operands of its programs lie from
// the start, foreign traffic (messages, collectives) in its upper half, where the traffic of each
// number walks through a region of its own and starts over at its end.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::models {

class StackSpace {
 public:
  explicit StackSpace(const config::ChipSpec& chip);

  // Start of a core's share.
  [[nodiscard]] std::int64_t base_of(std::int64_t core) const { return share_ * core; }
  // Address of the next `bytes` of foreign traffic of a core. Traffic longer than its region, 1/32
  // of the share, runs into the regions after it.
  std::int64_t next_foreign(std::int64_t core, std::int32_t number, base::Bytes bytes);

 private:
  std::int64_t share_, region_;        // bytes
  std::vector<std::int64_t> cursors_;  // core x regions + region: offset of the next bytes
};

}  // namespace trn3sim::models
