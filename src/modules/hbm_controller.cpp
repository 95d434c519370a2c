// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/hbm_controller.hpp"

#include <algorithm>

namespace trn3sim::modules {

HbmController::HbmController(const sc_core::sc_module_name& name, const config::ChipSpec& chip)
    : sc_module(name), stack_(chip.hbm, chip.stacks) {
  idle_latency_ = stack_.access(base::Time(0), 0, chip.hbm.burst.count(), false);
  stack_.reset();
}

void HbmController::load(base::Rate served_cap) {
  stack_.reset();
  limiter_.reset(served_cap);
  capped_ = served_cap.count() > 0;
  read_bytes_ = write_bytes_ = 0;
}

base::Time HbmController::access(base::Time now, std::int64_t address, std::int64_t bytes,
                                 bool write) {
  (write ? write_bytes_ : read_bytes_) += bytes;
  if (!capped_) return stack_.access(now, address, bytes, write);
  return limiter_.serve(now, bytes).end + idle_latency_;
}

}  // namespace trn3sim::modules
