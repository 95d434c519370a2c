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
  std::int64_t writes = 0;  // share of the bytes that are written, in 1/kUnitWeight
};

// What a byte of long reads and writes costs a stack by the share of writes, in 1/kUnitWeight of its
// nominal `capacity`.
class MixWeights {
 public:
  MixWeights() { weights_.fill(kUnitWeight); }
  MixWeights(const config::ChipSpec& chip, base::Rate capacity);
  // Share of writes in 1/kUnitWeight, 0 to kUnitWeight.
  [[nodiscard]] std::int64_t at(std::int64_t writes) const;

 private:
  static constexpr std::int64_t kSteps = 4;
  std::array<std::int64_t, kSteps + 1> weights_{};
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
  [[nodiscard]] const MixWeights& mix() const { return mix_; }

 private:
  [[nodiscard]] std::int64_t measured(const KernelProfile& profile, ByteWeights first,
                                      base::Rate engines) const;

  base::Rate capacity_;
  base::Rate engines_;  // of one core, full packets
  const config::ChipSpec* chip_;
  MixWeights mix_;
};

}  // namespace trn3sim::models
