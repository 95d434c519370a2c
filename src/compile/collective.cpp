// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/compile/collective.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::compile {
namespace {

using trace::CollectiveKind;

constexpr std::int64_t kBroadcastChunks = 8;  // pipeline depth of a ring broadcast
constexpr std::int64_t kBarrierBytes = 4;     // one semaphore write

std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

CollectiveProgram ring(std::int64_t steps, std::int64_t reduce_steps, std::int64_t bytes) {
  CollectiveProgram p;
  p.algorithm = "ring";
  p.sends = p.receives = steps;
  p.reduce_receives = reduce_steps;
  p.bytes = base::Bytes(bytes);
  return p;
}

CollectiveProgram broadcast(std::int64_t bytes, std::int64_t n, std::int64_t position) {
  CollectiveProgram p;
  p.algorithm = "ring pipeline";
  p.bytes = base::Bytes(ceil_ratio(bytes, kBroadcastChunks));
  p.pipelined = true;
  p.sends = position == n - 1 ? 0 : kBroadcastChunks;
  p.receives = position == 0 ? 0 : kBroadcastChunks;
  p.need_offset = position == 0 ? 0 : 1;
  return p;
}

}  // namespace

CollectiveProgram collective_program(const trace::Collective& c, std::int64_t n,
                                     std::int64_t position) {
  if (n == 1) {
    CollectiveProgram p;
    p.algorithm = "local";
    return p;
  }
  switch (c.kind) {
    case CollectiveKind::AllReduce:
      return ring(2 * (n - 1), n - 1, ceil_ratio(c.in, n));
    case CollectiveKind::AllGather:
      return ring(n - 1, 0, c.in);
    case CollectiveKind::ReduceScatter:
      return ring(n - 1, n - 1, c.out);
    case CollectiveKind::Barrier:
      return ring(2 * (n - 1), n - 1, kBarrierBytes);
    case CollectiveKind::Broadcast:
      return broadcast(c.in, n, position);
    case CollectiveKind::AllToAll: {
      CollectiveProgram p = ring(n - 1, 0, c.in / n);
      p.algorithm = "pairwise";
      p.pairwise = true;
      return p;
    }
  }
  TRN3SIM_CHECK(false, "unknown collective kind");
}

std::int64_t send_hbm_bytes(const CollectiveProgram& p) {
  return p.bytes.count();
}

std::int64_t receive_hbm_read_bytes(const CollectiveProgram& p, bool reduce) {
  return reduce ? p.bytes.count() : 0;
}

std::int64_t hbm_touches(const CollectiveProgram& p, std::int64_t index) {
  const bool reduce = index < p.reduce_receives;
  return (p.sends > 0 ? 1 : 0) + (p.receives > 0 ? (reduce ? 2 : 1) : 0);
}

bool may_send(const CollectiveProgram& p, std::int64_t sent, std::int64_t received) {
  return sent < p.sends && received >= std::min(sent + p.need_offset, p.receives);
}

bool is_done(const CollectiveProgram& p, std::int64_t sent, std::int64_t received) {
  return sent >= p.sends && received >= p.receives;
}

Hop hop_of(const CollectiveProgram& p, const GroupSet& set, std::int64_t rank,
           std::int64_t ring_index, std::int64_t index) {
  const auto me = static_cast<std::size_t>(rank);
  const GroupPlan& g = set.groups[static_cast<std::size_t>(set.group_of_rank[me])];
  const auto n = static_cast<std::int64_t>(g.members.size());
  if (p.pairwise) {
    const std::int64_t position = set.position_of_rank[me];
    const std::int64_t to = (position + index + 1) % n;
    return {g.members[static_cast<std::size_t>(to)],
            &g.pair_routes[static_cast<std::size_t>(position * n + to)]};
  }
  const Ring& ring = g.rings.front();
  const std::int64_t to = ring.order[static_cast<std::size_t>((ring_index + 1) % n)];
  return {g.members[static_cast<std::size_t>(to)],
          &ring.hops[static_cast<std::size_t>(ring_index)]};
}

base::Time start_delay(const CollectiveProgram& p, const config::ChipSpec& chip) {
  if (p.sends + p.receives == 0) return base::Time(0);
  return chip.collectives.start_overhead + chip.dma.start_latency;
}

base::Time arrival_delay(const CollectiveProgram& p, std::int64_t index,
                         const config::ChipSpec& chip) {
  if (index + 1 >= p.receives) return chip.dma.completion;
  return chip.dma.completion + chip.dma.start_latency + chip.collectives.step_overhead;
}

base::Rate flow_demand(const CollectiveProgram& p, const Hop& first, const topology::Graph& graph,
                       const config::ChipSpec& chip, const RankPlace& place) {
  base::Rate rate = dma_rate(chip, place, p.reduce_receives > 0);
  if (p.sends > 0 && !first.route->empty()) rate = std::min(rate, graph.bottleneck(*first.route));
  return base::Rate(rate.count() * hbm_touches(p, 0));
}

base::Rate dma_rate(const config::ChipSpec& chip, const RankPlace& place, bool reduce) {
  const std::int64_t rate = chip.dma.plateau_rate.count() * chip.dma.engines * place.cores;
  if (!reduce) return base::Rate(rate);
  const double share = std::max(chip.dma.inline_compute_rate, chip.dma.sbuf_accumulate_rate);
  return base::Rate(static_cast<std::int64_t>(static_cast<double>(rate) * share));
}

base::Time least_time(const CollectiveProgram& p, const GroupPlan& group,
                      const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap) {
  if (p.sends + p.receives == 0) return base::Time(0);
  base::Time hop = base::kTimeMax;
  auto consider = [&](const topology::Route& route) {
    const base::Rate rate = route.empty() ? cap : std::min(cap, graph.bottleneck(route));
    hop = std::min(hop, graph.latency(route) + base::transfer_time(p.bytes, rate));
  };
  if (p.pairwise) {
    for (std::size_t i = 0; i < group.pair_routes.size(); ++i)
      if (i / group.members.size() != i % group.members.size()) consider(group.pair_routes[i]);
  } else {
    for (const Ring& r : group.rings)
      for (const topology::Route& route : r.hops) consider(route);
  }
  const base::Time start = start_delay(p, chip);
  if (p.receives == 0) return start;  // the root of a broadcast is done when all is under way
  const std::int64_t steps = p.pipelined ? 1 : p.receives;
  const base::Time between =
      chip.dma.completion + chip.dma.start_latency + chip.collectives.step_overhead;
  return start + hop * steps + between * (steps - 1) + chip.dma.completion;
}

}  // namespace trn3sim::compile
