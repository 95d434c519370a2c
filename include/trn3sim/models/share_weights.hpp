// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's bytes cost on a stack, relative to the cheapest traffic: long reads in full
// packets. Two mechanisms, of which the dearer counts: short rows and accumulation take the DMA
// engines longer, which the bench measured; and writes between reads cost the HBM turnarounds,
// which a table over the share of writes gives, measured with HbmStack.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::models {

inline constexpr std::int64_t kUnitWeight = 1024;

class ShareWeights {
 public:
  // `capacity`: what DMA and HBM of a stack grant to long reads.
  ShareWeights(const config::HbmSpec& hbm, std::int64_t stacks, base::Rate capacity);

  // At least kUnitWeight. `engines`: rate of the DMA engines of the kernel's cores, full packets.
  [[nodiscard]] std::int64_t of(const KernelProfile& profile, base::Rate engines) const;

 private:
  static constexpr std::size_t kSteps = 8;
  std::array<std::int64_t, kSteps + 1> hbm_{};  // weight by share of writes in eighths
};

}  // namespace trn3sim::models
