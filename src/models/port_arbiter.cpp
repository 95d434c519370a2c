// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/port_arbiter.hpp"

#include <algorithm>
#include <bit>

namespace trn3sim::models {
namespace {

using Streams = PortArbiter::Streams;

// The earliest time at which the next instruction of a stream may start. `seen`: streams that wait
// for this one; a circle of waiting streams never goes on.
base::Time bound(std::size_t engine, const Streams& streams, const SemaphoreBank& semaphores,
                 base::Time now, std::uint32_t seen = 0) {
  const EngineStream& stream = *streams[engine];
  const std::uint32_t bit = std::uint32_t{1} << engine;
  if (stream.done() || (seen & bit) != 0) return base::kTimeMax;
  if (stream.asking() != 0) return stream.asked();
  const EngineStream::Lacks lacks = stream.lacks(semaphores);
  base::Time earliest = stream.asked();
  if (lacks.dma) earliest = std::max(earliest, now + stream.dma_latency());
  if (!lacks.dma && lacks.engines == 0) earliest = std::max(earliest, now);  // until its release
  for (std::uint32_t left = lacks.engines; left != 0; left &= left - 1) {
    const base::Time other =
        bound(std::size_t(std::countr_zero(left)), streams, semaphores, now, seen | bit);
    if (other == base::kTimeMax) return other;
    earliest = std::max(earliest, other + base::Time(1));  // its instruction takes time
  }
  return earliest;
}

}  // namespace

void PortArbiter::load(const Streams& streams) {
  std::uint32_t once = 0, twice = 0;
  free_ = {};
  for (const EngineStream* s : streams) {
    twice |= once & s->ports();
    once |= s->ports();
  }
  contested_ = static_cast<std::uint8_t>(twice);
  for (EngineStream* s : streams) s->contest(contested_);
}

bool PortArbiter::safe(std::size_t engine, const Streams& streams, const SemaphoreBank& semaphores,
                       base::Time now) const {
  const EngineStream& asker = *streams[engine];
  for (std::size_t e = 0; e < streams.size(); ++e) {
    if (e == engine || (streams[e]->ports() & asker.asking()) == 0) continue;
    const base::Time other = bound(e, streams, semaphores, now);
    if (other < asker.asked() || (other == asker.asked() && e < engine)) return false;
  }
  return true;
}

PortArbiter::Choice PortArbiter::next(const Streams& streams, const SemaphoreBank& semaphores,
                                      base::Time now) const {
  Choice choice;
  for (std::size_t e = 0; e < streams.size(); ++e) {
    const EngineStream& stream = *streams[e];
    if (stream.asking() == 0) continue;
    if (!safe(e, streams, semaphores, now)) {
      // Later tokens of DMA come later still.
      const base::Time least = std::max(now, stream.asked() - stream.dma_latency());
      choice.retry = std::min(choice.retry, least + base::Time(1));
      continue;
    }
    choice.engine = e;
    choice.at = stream.asked();
    for (std::size_t p = 0; p < kPorts; ++p)
      if ((stream.asking() >> p & 1) != 0) choice.at = std::max(choice.at, free_[p]);
    return choice;
  }
  return choice;
}

void PortArbiter::give_back(std::uint8_t ports, base::Time back) {
  for (std::size_t p = 0; p < kPorts; ++p)
    if ((ports >> p & 1) != 0) free_[p] = std::max(free_[p], back);
}

}  // namespace trn3sim::models
