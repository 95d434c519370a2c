// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/detailed_player.hpp"

#include <algorithm>
#include <utility>

namespace trn3sim::modules {
namespace {

constexpr std::int32_t kOpaqueQueue = 15;  // of foreign traffic; collectives use the first ones

}  // namespace

DetailedPlayer::DetailedPlayer(const sc_core::sc_module_name& name,
                               std::vector<StackCluster*> stacks, std::int64_t first_core,
                               std::int64_t cores, const Context& context, PlayerEnd& end)
    : sc_module(name),
      stacks_(std::move(stacks)),
      first_core_(first_core),
      cores_(cores),
      context_(context),
      end_(end) {
  SC_METHOD(part_ended);
  sensitive << opaque_end_;
  dont_initialize();
}

void DetailedPlayer::play(const KernelWork& work, base::Time /*hidden*/) {
  parts_ = stacks_.size();
  profile_ = work.program == nullptr ? nullptr : work.profile;
  if (work.program != nullptr) {
    for (StackCluster* stack : stacks_)
      stack->start(first_core_, *work.program, [this] { part_ended(); });
    return;
  }
  const base::Time duration = work.profile->duration;
  const std::int64_t bytes = work.profile->counts.hbm_read_bytes;
  if (bytes > 0) {
    Traffic traffic;
    traffic.first_core = static_cast<std::int32_t>(first_core_);
    traffic.cores = static_cast<std::int32_t>(cores_);
    traffic.queue = kOpaqueQueue;
    traffic.bytes = base::Bytes(bytes);
    traffic.rate = std::max(base::average_rate(traffic.bytes, duration), base::Rate(1));
    for (StackCluster* stack : stacks_) stack->inject(traffic, *this, 0);
  } else {
    parts_ = 0;
  }
  ++parts_;
  notify_at(opaque_end_, context_, context_.now() + duration);
}

void DetailedPlayer::prefetch(const KernelWork& next, models::Ahead ahead) {
  if (next.program == nullptr) return;
  for (StackCluster* stack : stacks_) stack->prefetch(first_core_, *next.program, ahead);
}

// What the kernel takes longer is known of its profile only.
Throttled DetailedPlayer::throttled() const {
  if (profile_ == nullptr) return {};
  base::Time sum;
  for (const StackCluster* stack : stacks_) sum += stack->throttled(first_core_);
  const base::Time passes(sum.count() / static_cast<std::int64_t>(stacks_.size()));
  return {std::min(profile_->tensor.cost, passes), passes};
}

void DetailedPlayer::traffic_ended(std::int32_t /*id*/) {
  part_ended();
}

void DetailedPlayer::part_ended() {
  if (--parts_ == 0) end_.kernel_ended();
}

}  // namespace trn3sim::modules
