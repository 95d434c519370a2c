// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's bytes cost on a stack, relative to its nominal capacity. Two mechanisms, of which
// the dearer counts: short rows and accumulation take the DMA engines longer, which the bench
// measured; and writes between reads cost the HBM turnarounds, which a table over the share of
// writes gives, measured with the DMA engines and the stack in detail. Where the bench has run
// copies of the kernel side by side, its weight is the one with which such copies take as long on a
// share.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::models {

inline constexpr std::int64_t kUnitWeight = 1024;

// What a byte of a kernel costs, in 1/kUnitWeight: of the stack, and of the DMA engines of its
// cores.
struct ByteWeights {
  std::int64_t stack = kUnitWeight, engines = kUnitWeight;
};

// Rate at which the DMA engines of `cores` of a stack move long reads and writes side by side, of
// which the share `writes` / `whole` writes.
base::Rate mixed_rate(const config::ChipSpec& chip, std::int64_t cores, std::int64_t writes,
                      std::int64_t whole);

class ShareWeights {
 public:
  // `capacity`: nominal, of a stack and its DMA engines.
  ShareWeights(const config::ChipSpec& chip, base::Rate capacity);

  // `engines`: rate of the DMA engines of the kernel's cores, full packets.
  [[nodiscard]] ByteWeights of(const KernelProfile& profile, base::Rate engines) const;

  // Of a flow that writes one byte for every `touches` that it moves.
  [[nodiscard]] ByteWeights of_flow(std::int64_t touches) const;

 private:
  [[nodiscard]] std::int64_t of_stack(std::int64_t writes, std::int64_t whole) const;
  [[nodiscard]] std::int64_t measured(const KernelProfile& profile, ByteWeights first,
                                      base::Rate engines) const;

  static constexpr std::size_t kSteps = 4;
  base::Rate capacity_;
  base::Rate engines_;  // of one core, full packets
  const config::ChipSpec* chip_;
  std::array<std::int64_t, kSteps + 1> hbm_{};  // weight by share of writes in quarters
};

}  // namespace trn3sim::models
