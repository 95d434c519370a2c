// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Counted hardware events. Energy is their product with EnergySpec; see models/energy.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/base/dtype.hpp"

namespace trn3sim::models {

struct EventCounts {
  std::array<std::int64_t, base::kDTypes> macs{};  // by operand format
  std::int64_t transpose_macs = 0;                 // PE passes that move data only
  std::int64_t sbuf_read_bytes = 0, sbuf_write_bytes = 0;
  std::int64_t psum_read_bytes = 0, psum_write_bytes = 0;
  std::int64_t vector_ops = 0, scalar_ops = 0, gpsimd_ops = 0;  // element operations
  std::int64_t vector_transcendental_ops = 0, scalar_transcendental_ops = 0;  // not in the above
  std::int64_t quantize_ops = 0;                   // on VectorE, not in the above
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, hbm_activates = 0;
  std::int64_t hbm_scale_bytes = 0;                // MX block scales, in the bytes above
  std::int64_t spill_save_bytes = 0, spill_reload_bytes = 0;  // intermediates, in the bytes above
  std::int64_t hbm_refreshes = 0;                  // per-bank refreshes
  std::int64_t dma_bytes = 0;                      // moved between HBM and SBUF or over the die
  std::int64_t die_crossing_bytes = 0;
  std::int64_t link_bytes = 0;                     // sent over NeuronLink (each traversal counts)

  EventCounts& operator+=(const EventCounts& o);
  EventCounts& operator*=(std::int64_t n);
};

}  // namespace trn3sim::models
