// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "rings.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/collective.hpp"

namespace trn3sim::compile {
namespace {

using topology::NodeId;
using topology::Route;

constexpr base::Bytes kProbe{1 << 20};  // size whose transfer time ranks the routes

topology::NodeId port_of(const GroupPlan& group, const std::vector<RankPlace>& places,
                         std::int64_t position) {
  const auto rank = static_cast<std::size_t>(group.members[static_cast<std::size_t>(position)]);
  return places[rank].nodes.front();
}

base::Time probe_time(const topology::Graph& graph, const Route& route) {
  if (route.empty()) return base::Time(0);
  return graph.latency(route) + base::transfer_time(kProbe, graph.bottleneck(route));
}

// Always on to the nearest member not yet visited; with `by_chip`, one of the same chip if any.
std::vector<std::int64_t> tour(const GroupPlan& group, std::int64_t start, bool by_chip,
                               const Embedding& embedding) {
  const std::vector<RankPlace>& places = embedding.places;
  const auto n = static_cast<std::int64_t>(group.members.size());
  const auto chip = [&](std::int64_t position) {
    return places[static_cast<std::size_t>(group.members[static_cast<std::size_t>(position)])].chip;
  };
  while (by_chip && start > 0 && chip(start - 1) == chip(start)) --start;
  std::vector<std::int64_t> order{start};
  std::vector<bool> seen(static_cast<std::size_t>(n), false);
  seen[static_cast<std::size_t>(start)] = true;
  while (static_cast<std::int64_t>(order.size()) < n) {
    const std::int64_t at = order.back();
    std::tuple<bool, base::Time, std::int64_t, std::int64_t> best{true, base::kTimeMax, 0, 0};
    for (std::int64_t next = 0; next < n; ++next) {
      if (seen[static_cast<std::size_t>(next)]) continue;
      const Route& r =
          embedding.routes.route(port_of(group, places, at), port_of(group, places, next));
      best = std::min(best, {by_chip && chip(next) != chip(at),
                             probe_time(embedding.routes.graph(), r), std::abs(next - at), next});
    }
    const std::int64_t chosen = std::get<3>(best);
    seen[static_cast<std::size_t>(chosen)] = true;
    order.push_back(chosen);
  }
  return order;
}

std::size_t chips_of(const GroupPlan& group, const std::vector<RankPlace>& places) {
  std::set<std::int64_t> chips;
  for (std::int64_t r : group.members) chips.insert(places[static_cast<std::size_t>(r)].chip);
  return chips.size();
}

// Whether no link is crossed twice, but for those between a stack and its ports.
bool link_disjoint(const std::vector<Ring>& rings, const topology::Graph& graph) {
  std::set<topology::LinkId> used;
  for (const Ring& ring : rings)
    for (const Route& hop : ring.hops)
      for (topology::LinkId id : hop)
        if (graph.link(id).kind != topology::LinkKind::PortLink && !used.insert(id).second)
          return false;
  return true;
}

Ring backwards(const GroupPlan& group, const Ring& ring, const Embedding& embedding) {
  std::vector<std::int64_t> order = ring.order;
  std::reverse(order.begin(), order.end());
  return make_ring(group, std::move(order), embedding);
}

// Rings of every group; empty if a group has none of that kind.
using Choice = std::vector<std::vector<Ring>>;

// One ring per group, every second one backwards.
Choice one_ring(const GroupSet& set, bool by_chip, const Embedding& embedding) {
  const auto groups = static_cast<std::int64_t>(set.groups.size());
  const auto n = static_cast<std::int64_t>(set.groups.front().members.size());
  Choice tours;
  for (std::int64_t g = 0; g < groups; ++g) {
    const GroupPlan& group = set.groups[static_cast<std::size_t>(g)];
    std::vector<std::int64_t> order = tour(group, g * n / groups % n, by_chip, embedding);
    if (g % 2 == 1) std::reverse(order.begin(), order.end());
    tours.push_back({make_ring(group, std::move(order), embedding)});
  }
  return tours;
}

Choice both_directions(const GroupSet& set, const Choice& tours, const Embedding& embedding) {
  Choice both = tours;
  for (std::size_t g = 0; g < both.size(); ++g) {
    const GroupPlan& group = set.groups[g];
    if (group.members.size() < 3 || chips_of(group, embedding.places) == 1) return {};
    both[g].push_back(backwards(group, both[g].front(), embedding));
    if (!link_disjoint(both[g], embedding.routes.graph())) return {};
  }
  return both;
}

Choice two_cycles(const GroupSet& set, const Embedding& embedding) {
  Choice cycles;
  for (const GroupPlan& group : set.groups) {
    cycles.push_back(hamiltonian_rings(group, embedding));
    if (cycles.back().empty()) return {};
  }
  return cycles;
}

// A step of every member, with all groups at once.
base::Time step_time(const Choice& choice, const Embedding& embedding, base::Bytes step) {
  trace::Collective probe;
  probe.kind = trace::CollectiveKind::AllGather;
  probe.in = step.count();
  const Exchange exchange = measure_rings(choice, embedding.routes.graph(), nullptr);
  CollectiveShape shape;
  shape.members = 2;
  shape.rings = static_cast<std::int64_t>(choice.front().size());
  shape.exits = exchange.exits;
  return expected_time(collective_program(probe, shape), exchange, embedding.chip,
                       dma_rate(embedding.chip, embedding.places.front(), false));
}

}  // namespace

const Route& RouteCache::route(NodeId from, NodeId to, topology::Ties ties) {
  auto it = from_.find({ties, from});
  if (it == from_.end())
    it = from_.emplace(std::pair(ties, from), graph_.routes_from(from, ties)).first;
  const Route& found = it->second[static_cast<std::size_t>(to)];
  if (found.empty() && from != to)
    throw base::UserError(
        "topology", "no route from " + graph_.node(from).name + " to " + graph_.node(to).name);
  return found;
}

Ring make_ring(const GroupPlan& group, std::vector<std::int64_t> order,
               const Embedding& embedding) {
  Ring ring;
  ring.order = std::move(order);
  const std::size_t n = ring.order.size();
  ring.place.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t from = ring.order[i], to = ring.order[(i + 1) % n];
    ring.place[static_cast<std::size_t>(from)] = static_cast<std::int64_t>(i);
    ring.hops.push_back(embedding.routes.route(port_of(group, embedding.places, from),
                                               port_of(group, embedding.places, to)));
  }
  return ring;
}

void embed_rings(GroupSet& set, const Embedding& embedding, std::int64_t most, base::Bytes step) {
  if (set.groups.front().members.size() == 1) return;
  const GroupPlan& group = set.groups.front();
  const std::size_t chips = chips_of(group, embedding.places);
  std::vector<Choice> choices = {one_ring(set, false, embedding)};
  if (chips > 1 && chips < group.members.size()) choices.push_back(one_ring(set, true, embedding));
  for (std::size_t i = 0, tours = choices.size(); i < tours && most >= 2; ++i)
    choices.push_back(both_directions(set, choices[i], embedding));
  if (most >= 4) choices.push_back(two_cycles(set, embedding));
  const Choice* best = nullptr;
  base::Time least = base::kTimeMax;
  for (const Choice& choice : choices) {
    if (choice.empty()) continue;
    const base::Time time = step_time(choice, embedding, step);
    if (time >= least) continue;
    least = time;
    best = &choice;
  }
  std::vector<std::string> worst;
  set.ring = measure_rings(*best, embedding.routes.graph(), &worst);
  for (std::size_t g = 0; g < best->size(); ++g) {
    set.groups[g].rings = (*best)[g];
    set.groups[g].worst_link = worst[g];
  }
}

}  // namespace trn3sim::compile
