// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/compile/collective.hpp"

namespace trn3sim::compile {
namespace {

base::Rate least(base::Rate cap, base::Rate link) {
  return link.count() > 0 ? std::min(cap, link) : cap;
}

// The fastest single message of a part; `cap` is that of a message.
base::Time fastest_hop(const ProgramPart& part, const GroupPlan& group,
                       const topology::Graph& graph, base::Rate cap) {
  base::Time fastest = base::kTimeMax;
  if (part.ring < 0) {
    for (const auto& [latency, link] : group.pairs.hops)
      fastest = std::min(fastest, latency + base::transfer_time(part.bytes, least(cap, link)));
    return fastest;
  }
  for (const topology::Route& route : group.rings[static_cast<std::size_t>(part.ring)].hops) {
    const base::Rate link = route.empty() ? base::Rate(0) : graph.bottleneck(route);
    fastest =
        std::min(fastest, graph.latency(route) + base::transfer_time(part.bytes, least(cap, link)));
  }
  return fastest;
}

// All messages to the member that is reached best, over the links that lead to it.
base::Time fastest_intake(const ProgramPart& part, const GroupPlan& group, base::Rate cap) {
  base::Time latency = base::kTimeMax, fastest = base::kTimeMax;
  for (const auto& [hop, link] : group.pairs.hops) latency = std::min(latency, hop);
  for (const auto& [links, rate] : group.pairs.entries)
    fastest = std::min(fastest, base::transfer_time(part.bytes, least(cap, rate)) *
                                    ((part.receives + links - 1) / links));
  return latency + fastest;
}

// Dependent messages from the start of member `from` to the end of member `to` at least; -1: none.
std::int64_t dependent_hops(const CollectiveProgram& p, const ProgramPart& part,
                            const GroupPlan& group, std::size_t from, std::size_t to) {
  const auto n = static_cast<std::int64_t>(group.members.size());
  if (p.way != Way::Ring && p.used == 2) return n > 2 || from == to ? 2 : 1;
  if (part.ring < 0) return from == to ? 0 : 1;
  const std::vector<std::int64_t>& place = group.rings[static_cast<std::size_t>(part.ring)].place;
  const std::int64_t distance = place[to] - place[from];
  if (part.pipelined) return std::max<std::int64_t>(distance, -1);
  // The last message to `to` needs one of each member before it, around the ring and around again.
  const std::int64_t first = (distance + n) % n;
  return first > part.receives ? -1 : first + (part.receives - first) / n * n;
}

}  // namespace

base::Time least_end(const CollectiveProgram& p, const GroupPlan& group,
                     const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap,
                     const std::vector<base::Time>& starts, std::int64_t position) {
  const auto me = static_cast<std::size_t>(position);
  base::Time first = starts[me], end(0);
  for (const base::Time start : starts)
    if (start != kNotStarted) first = std::min(first, start);
  end = std::max(starts[me], first + least_time(p, group, graph, chip, cap));
  if (!p.moves()) return end;
  const base::Rate message(cap.count() / p.exits);
  for (std::size_t i = 0; i < p.used; ++i) {
    const ProgramPart& part = p.parts[i];
    const base::Time hop = fastest_hop(part, group, graph, message);
    // The last message of a ring starts no step, so in a burst it may be there before the others.
    const bool burst = part.ring >= 0 && !part.pipelined;
    const base::Time between = burst ? chip.dma.completion : step_delay(chip);
    for (std::size_t m = 0; m < starts.size(); ++m) {
      const std::int64_t hops = dependent_hops(p, part, group, m, me);
      if (starts[m] == kNotStarted || hops < 0) continue;
      base::Time least = start_delay(p, chip);
      if (hops > 0) least += hop * hops + between * (hops - 1) + chip.dma.completion;
      end = std::max(end, starts[m] + least);
    }
  }
  return end;
}

base::Time least_time(const CollectiveProgram& p, const GroupPlan& group,
                      const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap) {
  if (!p.moves()) return base::Time(0);
  const base::Time start = start_delay(p, chip);
  if (p.parts[0].receives == 0)
    return start;  // the root of a broadcast: done when all is under way
  const base::Rate message(cap.count() / p.exits);
  const base::Time between = step_delay(chip);
  if (p.way != Way::Ring) {
    base::Time sum = start + between * static_cast<std::int64_t>(p.used - 1);
    for (std::size_t i = 0; i < p.used; ++i)
      sum += std::max(fastest_hop(p.parts[i], group, graph, message),
                      fastest_intake(p.parts[i], group, message));
    return sum + chip.dma.completion;
  }
  base::Time longest(0);
  for (std::size_t i = 0; i < p.used; ++i) {
    const std::int64_t steps = p.parts[i].pipelined ? 1 : p.parts[i].receives;
    longest = std::max(
        longest, fastest_hop(p.parts[i], group, graph, message) * steps + between * (steps - 1));
  }
  return start + longest + chip.dma.completion;
}

base::Time expected_time(const CollectiveProgram& p, const Exchange& exchange,
                         const config::ChipSpec& chip, base::Rate cap) {
  if (!p.moves()) return base::Time(0);
  const ProgramPart& part = p.parts[0];
  const bool mesh = p.way != Way::Ring;
  const auto parts = static_cast<std::int64_t>(p.used);
  const std::int64_t steps = mesh ? parts : part.receives;
  const std::int64_t at_once = mesh ? part.sends : parts;  // messages of a member in a step
  const base::Rate message = least(base::Rate(cap.count() / p.exits), exchange.rate);
  const base::Time step =
      exchange.latency + std::max(base::transfer_time(part.bytes, message),
                                  base::transfer_time(part.bytes * at_once, cap));
  return start_delay(p, chip) + step * steps + step_delay(chip) * (steps - 1) + chip.dma.completion;
}

}  // namespace trn3sim::compile
