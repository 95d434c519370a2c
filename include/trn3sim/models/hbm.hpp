// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One HBM stack with its controller: pseudo-channels, bank groups, banks and rows, row misses under
// tRRD and tFAW, read/write turnaround and refresh, advanced per run of columns in a row. No kernel
// event per burst: an access returns the time of its last data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::models {

class HbmStack {
 public:
  // `spec.bandwidth` is shared evenly by `stacks` stacks. Throws base::UserError (place "chip:
  // hbm.KEY") for values that the model cannot use, such as a number of channels that is no power
  // of two.
  HbmStack(const config::HbmSpec& spec, std::int64_t stacks);
  ~HbmStack();

  // Canonical state: rows closed, buses idle, refresh phase 0, counts 0.
  void reset();
  // Moves `bytes` at `address` (byte address in the stack, wraps at the capacity). A read returns
  // the time at which its last byte is on the wire plus the controller latency. A write returns
  // when the write queues have taken it, which is later than at once when they are full, plus the
  // same latency; queues drain in batches. Calls must come in ascending `now`; equal times are
  // served in call order. Callers bound the accesses in flight.
  base::Time access(base::Time now, std::int64_t address, std::int64_t bytes, bool write);

  [[nodiscard]] std::int64_t read_bytes() const;
  [[nodiscard]] std::int64_t write_bytes() const;
  [[nodiscard]] std::int64_t activates() const;  // those that queued writes still need included
  [[nodiscard]] base::Rate peak() const;         // raw, of the stack
  // Refresh operations that the stack must do in `elapsed` (per-bank equivalents).
  [[nodiscard]] std::int64_t refreshes(base::Time elapsed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Rate that long sequential reads reach on an idle stack: peak x derate less refresh. For bounds
// and capacity; measured with HbmStack itself, once per spec.
base::Rate streaming_rate(const config::HbmSpec& spec, std::int64_t stacks);

}  // namespace trn3sim::models
