// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The HBM stack as seen by the DMA engines of its cores.
#pragma once

#include <systemc>

#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/rate_limiter.hpp"

namespace trn3sim::modules {

// Memory boundary: times are since the start of the cluster's program.
class MemoryInterface : virtual public sc_core::sc_interface, public models::Memory {};

// Without a cap the stack is modelled in full. A cap stands for what the whole memory system grants
// when others use it too; it then replaces the stack's own timing (but for the idle latency), so
// that the runs that find a kernel's rate curve are cheap.
class HbmController : public sc_core::sc_module, public MemoryInterface {
 public:
  HbmController(const sc_core::sc_module_name& name, const config::ChipSpec& chip);

  // `served_cap`: what the memory grants to this cluster at most, 0 = no cap.
  void load(base::Rate served_cap);
  base::Time access(base::Time now, std::int64_t address, std::int64_t bytes, bool write) override;

  [[nodiscard]] std::int64_t read_bytes() const { return read_bytes_; }
  [[nodiscard]] std::int64_t write_bytes() const { return write_bytes_; }
  [[nodiscard]] std::int64_t activates() const { return stack_.activates(); }  // 0 with a cap

 private:
  models::HbmStack stack_;
  models::RateLimiter limiter_;
  base::Time idle_latency_;  // of a read burst on an idle stack
  bool capped_ = false;
  std::int64_t read_bytes_ = 0, write_bytes_ = 0;
};

}  // namespace trn3sim::modules
