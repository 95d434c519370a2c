// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/event_counts.hpp"

namespace trn3sim::models {
namespace {

// Every scalar counter once, so that no operator can miss one.
constexpr std::int64_t EventCounts::*kCounters[] = {
    &EventCounts::transpose_macs,
    &EventCounts::sbuf_read_bytes,
    &EventCounts::sbuf_write_bytes,
    &EventCounts::psum_read_bytes,
    &EventCounts::psum_write_bytes,
    &EventCounts::vector_ops,
    &EventCounts::scalar_ops,
    &EventCounts::gpsimd_ops,
    &EventCounts::vector_transcendental_ops,
    &EventCounts::scalar_transcendental_ops,
    &EventCounts::quantize_ops,
    &EventCounts::hbm_read_bytes,
    &EventCounts::hbm_write_bytes,
    &EventCounts::hbm_activates,
    &EventCounts::hbm_scale_bytes,
    &EventCounts::spill_save_bytes,
    &EventCounts::spill_reload_bytes,
    &EventCounts::hbm_refreshes,
    &EventCounts::dma_bytes,
    &EventCounts::die_crossing_bytes,
    &EventCounts::link_bytes,
};

static_assert(sizeof(EventCounts) ==
                  (base::kDTypes + sizeof(kCounters) / sizeof(kCounters[0])) * sizeof(std::int64_t),
              "a counter is missing from kCounters");

}  // namespace

EventCounts& EventCounts::operator+=(const EventCounts& o) {
  for (std::size_t i = 0; i < macs.size(); ++i) macs[i] += o.macs[i];
  for (auto counter : kCounters) this->*counter += o.*counter;
  return *this;
}

EventCounts& EventCounts::operator*=(std::int64_t n) {
  for (std::int64_t& m : macs) m *= n;
  for (auto counter : kCounters) this->*counter *= n;
  return *this;
}

}  // namespace trn3sim::models
