// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's bytes cost on a stack, relative to its nominal capacity. Two mechanisms, of which
// the dearer counts: short rows and accumulation take the DMA engines longer, which the bench
// measured; and writes between reads cost the HBM turnarounds, which a table over the share of
// writes gives, measured with the DMA engines and the stack in detail.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::models {

inline constexpr std::int64_t kUnitWeight = 1024;

// Rate at which all DMA engines of a stack's cores move long reads and writes side by side, of
// which the share `writes` / `whole` writes.
base::Rate mixed_rate(const config::ChipSpec& chip, std::int64_t writes, std::int64_t whole);

class ShareWeights {
 public:
  // `capacity`: nominal, of a stack and its DMA engines.
  ShareWeights(const config::ChipSpec& chip, base::Rate capacity);

  // At least kUnitWeight. `engines`: rate of the DMA engines of the kernel's cores, full packets.
  [[nodiscard]] std::int64_t of(const KernelProfile& profile, base::Rate engines) const;

 private:
  static constexpr std::size_t kSteps = 4;
  std::array<std::int64_t, kSteps + 1> hbm_{};  // weight by share of writes in quarters
};

}  // namespace trn3sim::models
