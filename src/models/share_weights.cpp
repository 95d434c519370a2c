// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/share_weights.hpp"

#include <algorithm>

#include "trn3sim/models/hbm.hpp"

namespace trn3sim::models {

ShareWeights::ShareWeights(const config::HbmSpec& hbm, std::int64_t stacks, base::Rate capacity) {
  for (std::size_t i = 0; i <= kSteps; ++i) {
    const base::Rate rate = mixed_rate(hbm, stacks, static_cast<std::int64_t>(i), kSteps);
    hbm_[i] = std::max<std::int64_t>(kUnitWeight, kUnitWeight * capacity.count() / rate.count());
  }
}

std::int64_t ShareWeights::of(const KernelProfile& profile, base::Rate engines) const {
  const std::int64_t bytes = profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes;
  if (bytes == 0) return kUnitWeight;
  const Int128 full = base::ceil_div(Int128(bytes) * base::kFemtosPerSecond, engines.count());
  const auto dma = static_cast<std::int64_t>(Int128(kUnitWeight) * profile.dma_busy.count() / full);
  // Share of writes in 1/1024 of a step, then between the two steps around it.
  const auto share = static_cast<std::int64_t>(Int128(profile.counts.hbm_write_bytes) *
                                               static_cast<std::int64_t>(kSteps) * 1024 / bytes);
  const std::size_t step = std::min(static_cast<std::size_t>(share / 1024), kSteps - 1);
  const std::int64_t part = share - static_cast<std::int64_t>(step) * 1024;
  const std::int64_t hbm = hbm_[step] + (hbm_[step + 1] - hbm_[step]) * part / 1024;
  return std::max({kUnitWeight, dma, hbm});
}

}  // namespace trn3sim::models
