// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/compile/collective.hpp"

#include <algorithm>
#include <map>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using trace::CollectiveKind;

constexpr std::int64_t kBroadcastChunks = 8;  // pipeline depth of a ring broadcast
constexpr std::int64_t kBarrierBytes = 4;     // one semaphore write

std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The same steps on every ring, each with its part of the bytes.
CollectiveProgram rings(std::int64_t steps, std::int64_t reduce_steps, std::int64_t bytes,
                        const CollectiveShape& shape) {
  CollectiveProgram p;
  p.algorithm = shape.rings == 1 ? "ring" : fmt::format("{} rings", shape.rings);
  p.exits = shape.exits;
  p.used = static_cast<std::size_t>(shape.rings);
  TRN3SIM_CHECK(p.used >= 1 && p.used <= kProgramParts, "too many rings");
  for (std::size_t i = 0; i < p.used; ++i) {
    ProgramPart& part = p.parts[i];
    part.sends = part.receives = steps;
    part.reduce_receives = reduce_steps;
    part.bytes = base::Bytes(ceil_ratio(bytes, shape.rings));
    part.ring = static_cast<std::int32_t>(i);
  }
  return p;
}

// Direct messages of `bytes` to all others, `times` one after another; the first reduces.
CollectiveProgram mesh(std::size_t times, bool reduce, std::int64_t bytes,
                       const CollectiveShape& shape) {
  CollectiveProgram p;
  p.algorithm = shape.way == Way::OneStep ? "one-step mesh" : "mesh";
  p.exits = shape.exits;
  p.used = times;
  p.way = shape.way;
  for (std::size_t i = 0; i < times; ++i) {
    ProgramPart& part = p.parts[i];
    part.sends = part.receives = shape.members - 1;
    part.reduce_receives = reduce && i == 0 ? part.receives : 0;
    part.bytes = base::Bytes(bytes);
    part.ring = -1;
    part.after = static_cast<std::int32_t>(i) - 1;
    part.at_once = true;
  }
  return p;
}

CollectiveProgram broadcast(std::int64_t bytes, const CollectiveShape& shape) {
  CollectiveProgram p;
  p.algorithm = "ring pipeline";
  ProgramPart& part = p.parts[0];
  part.bytes = base::Bytes(ceil_ratio(bytes, kBroadcastChunks));
  part.pipelined = true;
  part.to_last = shape.ring_place == shape.members - 2;
  part.sends = shape.ring_place == shape.members - 1 ? 0 : kBroadcastChunks;
  part.receives = shape.ring_place == 0 ? 0 : kBroadcastChunks;
  part.need_offset = shape.ring_place == 0 ? 0 : 1;
  return p;
}

CollectiveProgram pairwise(std::int64_t bytes, const CollectiveShape& shape) {
  CollectiveProgram p;
  p.algorithm = "pairwise";
  p.parts[0].sends = p.parts[0].receives = shape.members - 1;
  p.parts[0].bytes = base::Bytes(bytes);
  p.parts[0].ring = -1;
  return p;
}

CollectiveProgram all_reduce(std::int64_t bytes, const CollectiveShape& s) {
  const std::int64_t n = s.members, shard = ceil_ratio(bytes, n);
  if (s.way == Way::Mesh) return mesh(2, true, shard, s);
  if (s.way == Way::OneStep) return mesh(1, true, bytes, s);
  return rings(2 * (n - 1), n - 1, shard, s);
}

const GroupPlan& group_of(const GroupSet& set, std::int64_t rank) {
  return set.groups[static_cast<std::size_t>(set.group_of_rank[static_cast<std::size_t>(rank)])];
}

}  // namespace

CollectiveShape shape_of(const GroupSet& set, std::int64_t rank, Way way) {
  const GroupPlan& g = group_of(set, rank);
  CollectiveShape s;
  s.members = static_cast<std::int64_t>(g.members.size());
  s.way = way;
  if (s.members == 1) return s;
  s.ring_place =
      g.rings.front()
          .place[static_cast<std::size_t>(set.position_of_rank[static_cast<std::size_t>(rank)])];
  s.rings = static_cast<std::int64_t>(g.rings.size());
  s.exits = way == Way::Ring ? set.ring.exits : set.mesh.exits;
  return s;
}

CollectiveProgram collective_program(const trace::Collective& c, const CollectiveShape& s) {
  const std::int64_t n = s.members;
  if (n == 1) {
    CollectiveProgram p;
    p.algorithm = "local";
    return p;
  }
  const bool ring = s.way == Way::Ring;
  switch (c.kind) {
    case CollectiveKind::AllReduce:
      return all_reduce(c.in, s);
    case CollectiveKind::AllGather:
      return ring ? rings(n - 1, 0, c.in, s) : mesh(1, false, c.in, s);
    case CollectiveKind::ReduceScatter:
      return ring ? rings(n - 1, n - 1, c.out, s) : mesh(1, true, c.out, s);
    case CollectiveKind::Barrier:
      return ring ? rings(2 * (n - 1), n - 1, kBarrierBytes, s) : mesh(1, true, kBarrierBytes, s);
    case CollectiveKind::Broadcast:
      return broadcast(c.in, s);
    case CollectiveKind::AllToAll:
      return ring ? pairwise(c.in / n, s) : mesh(1, false, c.in / n, s);
  }
  TRN3SIM_CHECK(false, "unknown collective kind");
}

std::int64_t send_hbm_bytes(const ProgramPart& p) {
  return p.bytes.count();
}

std::int64_t receive_hbm_read_bytes(const ProgramPart& p, bool reduce) {
  return reduce ? p.bytes.count() : 0;
}

std::int64_t hbm_touches(const ProgramPart& p, std::int64_t index) {
  const bool reduce = index < p.reduce_receives;
  return (p.sends > 0 ? 1 : 0) + (p.receives > 0 ? (reduce ? 2 : 1) : 0);
}

bool may_send(const CollectiveProgram& p, const CollectiveProgress& at, std::size_t i) {
  const ProgramPart& part = p.parts[i];
  if (at.sent[i] >= part.sends) return false;
  if (part.after >= 0) {
    const auto before = static_cast<std::size_t>(part.after);
    if (at.received[before] < p.parts[before].receives) return false;
  }
  return part.at_once || at.received[i] >= std::min(at.sent[i] + part.need_offset, part.receives);
}

bool is_done(const CollectiveProgram& p, const CollectiveProgress& at) {
  for (std::size_t i = 0; i < p.used; ++i)
    if (at.sent[i] < p.parts[i].sends || at.received[i] < p.parts[i].receives) return false;
  return true;
}

Hop hop_of(const ProgramPart& p, const GroupSet& set, std::int64_t rank, std::int64_t index) {
  const GroupPlan& g = group_of(set, rank);
  const auto n = static_cast<std::int64_t>(g.members.size());
  const std::int64_t position = set.position_of_rank[static_cast<std::size_t>(rank)];
  if (p.ring < 0) {
    const std::int64_t to = (position + index + 1) % n;
    return {g.members[static_cast<std::size_t>(to)],
            &g.pair_routes[static_cast<std::size_t>(position * n + to)]};
  }
  const Ring& ring = g.rings[static_cast<std::size_t>(p.ring)];
  const std::int64_t place = ring.place[static_cast<std::size_t>(position)];
  const std::int64_t to = ring.order[static_cast<std::size_t>((place + 1) % n)];
  return {g.members[static_cast<std::size_t>(to)], &ring.hops[static_cast<std::size_t>(place)]};
}

base::Time start_delay(const CollectiveProgram& p, const config::ChipSpec& chip) {
  if (!p.moves()) return base::Time(0);
  return chip.collectives.start_overhead + chip.dma.start_latency;
}

base::Time step_delay(const config::ChipSpec& chip) {
  return chip.dma.completion + chip.dma.start_latency + chip.collectives.step_overhead;
}

base::Time arrival_delay(const CollectiveProgram& p, std::size_t i, std::int64_t index,
                         const config::ChipSpec& chip) {
  const ProgramPart& part = p.parts[i];
  bool goes_on = index + 1 < part.receives;
  if (part.at_once) goes_on = i + 1 < p.used;
  if (part.pipelined) goes_on = !part.to_last;
  return goes_on ? step_delay(chip) : chip.dma.completion;
}

base::Rate carried(const std::vector<const topology::Route*>& routes,
                   const topology::Graph& graph) {
  std::map<topology::LinkId, base::Rate> by_first;
  for (const topology::Route* route : routes) {
    if (route->empty()) return base::Rate(0);
    by_first.try_emplace(route->front(), 0).first->second += graph.bottleneck(*route);
  }
  base::Rate sum(0);
  for (const auto& [first, rate] : by_first) sum += std::min(rate, graph.link(first).bandwidth);
  return sum;
}

FlowDemand flow_demand(const CollectiveProgram& p, const GroupSet& set, std::int64_t rank,
                       const topology::Graph& graph, const config::ChipSpec& chip,
                       const RankPlace& place) {
  base::Rate routes(0);
  bool paced = false;
  if (p.way != Way::Ring) {
    const std::int64_t position = set.position_of_rank[static_cast<std::size_t>(rank)];
    routes = group_of(set, rank).pairs.carried[static_cast<std::size_t>(position)];
  } else if (p.parts[0].sends > 0) {
    std::vector<const topology::Route*> first;
    for (std::size_t i = 0; i < p.used; ++i)
      first.push_back(hop_of(p.parts[i], set, rank, 0).route);
    routes = carried(first, graph);
    // In the long run no member of a ring sends faster than the slowest.
    const std::int64_t pace = set.ring.rate.count() * static_cast<std::int64_t>(p.used);
    paced = pace > 0 && (routes.count() == 0 || routes.count() > pace);
    if (paced) routes = base::Rate(pace);
  }
  base::Rate rate = dma_rate(chip, place, p.parts[0].reduce_receives > 0);
  if (routes.count() > 0) rate = std::min(rate, routes);
  return {base::Rate(rate.count() * hbm_touches(p.parts[0], 0)), paced};
}

base::Rate granted_rate(const FlowDemand& wanted, base::Rate granted, std::int64_t touches,
                        base::Rate cap) {
  if (wanted.paced && granted >= wanted.rate) return cap;
  return base::Rate(granted.count() / touches);
}

base::Rate dma_rate(const config::ChipSpec& chip, const RankPlace& place, bool reduce) {
  const std::int64_t rate = chip.dma.plateau_rate.count() * chip.dma.engines * place.cores;
  if (!reduce) return base::Rate(rate);
  const double share = std::max(chip.dma.inline_compute_rate, chip.dma.sbuf_accumulate_rate);
  return base::Rate(static_cast<std::int64_t>(static_cast<double>(rate) * share));
}

base::Rate message_rate(const CollectiveProgram& p, const ProgramPart& part, std::int64_t index,
                        const config::ChipSpec& chip, const RankPlace& place) {
  return base::Rate(dma_rate(chip, place, index < part.reduce_receives).count() / p.exits);
}

}  // namespace trn3sim::compile
