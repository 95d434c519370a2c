// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/share_weights.hpp"

#include <algorithm>

#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/share_model.hpp"

namespace trn3sim::models {

namespace {

class Stack : public Memory {
 public:
  explicit Stack(const config::ChipSpec& chip) : stack_(chip.hbm, chip.stacks) {}
  base::Time access(base::Time now, std::int64_t address, std::int64_t bytes, bool write) override {
    return stack_.access(now, address, bytes, write);
  }

 private:
  HbmStack stack_;
};

// Time of copies that share `capacity`.
base::Time shared_time(const KernelProfile& profile, base::Rate capacity, base::Rate engines,
                       ByteWeights weights) {
  ShareModel share(capacity, engines);
  for (std::int64_t i = 0; i < profile.copies; ++i)
    share.add_kernel(base::Time(0), profile, base::Time(0),
                     {static_cast<std::int32_t>(i), weights});
  return share.next_end();
}

}  // namespace

base::Rate mixed_rate(const config::ChipSpec& chip, std::int64_t cores, std::int64_t writes,
                      std::int64_t whole) {
  constexpr std::int64_t kTotal = 16 << 20;
  constexpr std::int64_t kPieces = 2;  // of each direction, side by side
  Stack stack(chip);
  DmaGroup group(chip);
  group.reset();
  // Both directions are paced to finish together, by more than the engines can do.
  const std::int64_t limit =
      chip.dma.bus_rate.count() * chip.dma.engines * cores / kPieces;
  for (std::int32_t i = 0; i < 2 * kPieces; ++i) {
    ForeignTransfer t;
    t.write = i >= kPieces;
    const std::int64_t share = t.write ? writes : whole - writes;
    if (share == 0) continue;
    t.cores = static_cast<std::int32_t>(cores);
    t.queue = i;
    t.address = chip.hbm.capacity.count() / (2 * kPieces) / chip.dma.packet.count() *
                chip.dma.packet.count() * i;
    t.bytes = base::Bytes(kTotal / kPieces * share / whole);
    t.rate = base::Rate(limit * share / whole);
    group.inject(base::Time(0), t);
  }
  std::vector<DmaCompletion> done;
  base::Time last;
  while (!group.idle()) {
    last = group.next();
    group.advance(last, stack, done);
  }
  return base::average_rate(base::Bytes(kTotal), last);
}

MixWeights::MixWeights(const config::ChipSpec& chip, base::Rate capacity) {
  for (std::int64_t i = 0; i <= kSteps; ++i) {
    const base::Rate rate = mixed_rate(chip, chip.cores_per_stack(), i, kSteps);
    weights_[static_cast<std::size_t>(i)] =
        std::max<std::int64_t>(kUnitWeight, kUnitWeight * capacity.count() / rate.count());
  }
}

std::int64_t MixWeights::at(std::int64_t writes) const {
  const std::int64_t step = std::min(writes * kSteps / kUnitWeight, kSteps - 1);
  const std::int64_t low = weights_[static_cast<std::size_t>(step)];
  const std::int64_t high = weights_[static_cast<std::size_t>(step) + 1];
  return low + (high - low) * (writes * kSteps - step * kUnitWeight) / kUnitWeight;
}

ShareWeights::ShareWeights(const config::ChipSpec& chip, base::Rate capacity)
    : capacity_(capacity),
      engines_(chip.dma.plateau_rate.count() * chip.dma.engines),
      chip_(&chip),
      mix_(chip, capacity) {}

ByteWeights ShareWeights::of(const KernelProfile& profile, base::Rate engines) const {
  const std::int64_t bytes = profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes;
  if (bytes == 0) return {};
  const Int128 full = base::ceil_div(Int128(bytes) * base::kFemtosPerSecond, engines.count());
  const auto dma = static_cast<std::int64_t>(Int128(kUnitWeight) * profile.dma_busy.count() / full);
  const auto writes =
      static_cast<std::int64_t>(Int128(kUnitWeight) * profile.counts.hbm_write_bytes / bytes);
  const std::int64_t hbm = mix_.at(writes);
  if (profile.copies < 2)
    return {std::max({kUnitWeight, dma, hbm}), std::max(kUnitWeight, dma), writes};
  const ByteWeights first{std::max(kUnitWeight, hbm), std::max(kUnitWeight, dma), writes};
  return {measured(profile, first, engines), first.engines, writes};
}

ByteWeights ShareWeights::of_flow(std::int64_t touches) const {
  const std::int64_t engines =
      kUnitWeight * engines_.count() / mixed_rate(*chip_, 1, 1, touches).count();
  const std::int64_t writes = kUnitWeight / touches;
  return {mix_.at(writes), std::max(kUnitWeight, engines), writes};
}

// The weight on the stack nearest to `first` with which copies take what the bench measured.
std::int64_t ShareWeights::measured(const KernelProfile& profile, ByteWeights first,
                                    base::Rate engines) const {
  const auto time = [&](std::int64_t weight) {
    return shared_time(profile, capacity_, engines, {weight, first.engines});
  };
  const bool up = time(first.stack) < profile.shared;
  std::int64_t low = up ? first.stack : kUnitWeight / 4, high = up ? 8 * kUnitWeight : first.stack;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    const base::Time t = time(middle);
    (t < profile.shared || (!up && t == profile.shared) ? low : high) = middle;
  }
  return up ? high : low;
}

}  // namespace trn3sim::models
