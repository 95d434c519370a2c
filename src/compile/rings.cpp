// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "rings.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "trn3sim/base/error.hpp"

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

std::vector<std::int64_t> tour(const GroupPlan& group, const std::vector<RankPlace>& places,
                               std::int64_t start, RouteCache& routes) {
  const auto n = static_cast<std::int64_t>(group.members.size());
  std::vector<std::int64_t> order{start};
  std::vector<bool> seen(static_cast<std::size_t>(n), false);
  seen[static_cast<std::size_t>(start)] = true;
  while (static_cast<std::int64_t>(order.size()) < n) {
    const std::int64_t at = order.back();
    std::tuple<base::Time, std::int64_t, std::int64_t> best{base::kTimeMax, 0, 0};
    for (std::int64_t next = 0; next < n; ++next) {
      if (seen[static_cast<std::size_t>(next)]) continue;
      const Route& r = routes.route(port_of(group, places, at), port_of(group, places, next));
      best = std::min(best, {probe_time(routes.graph(), r), std::abs(next - at), next});
    }
    const std::int64_t chosen = std::get<2>(best);
    seen[static_cast<std::size_t>(chosen)] = true;
    order.push_back(chosen);
  }
  return order;
}

void name_worst_links(GroupSet& set, const topology::Graph& graph) {
  std::vector<std::int64_t> rings_over(graph.links().size(), 0);
  for (const GroupPlan& g : set.groups)
    for (const Ring& ring : g.rings)
      for (const Route& hop : ring.hops)
        for (topology::LinkId id : hop) ++rings_over[static_cast<std::size_t>(id)];
  std::int64_t worst = INT64_MAX;
  for (GroupPlan& g : set.groups) {
    std::int64_t least = INT64_MAX;
    for (const Ring& ring : g.rings)
      for (const Route& hop : ring.hops)
        for (topology::LinkId id : hop) {
          const std::int64_t share =
              graph.link(id).bandwidth.count() / rings_over[static_cast<std::size_t>(id)];
          if (share >= least) continue;
          least = share;
          g.worst_link = graph.link(id).name;
        }
    if (least < worst) {
      worst = least;
      set.worst_link = g.worst_link;
    }
  }
}

}  // namespace

const Route& RouteCache::route(NodeId from, NodeId to) {
  auto it = from_.find(from);
  if (it == from_.end()) it = from_.emplace(from, graph_.routes_from(from)).first;
  const Route& found = it->second[static_cast<std::size_t>(to)];
  if (found.empty() && from != to)
    throw base::UserError(
        "topology", "no route from " + graph_.node(from).name + " to " + graph_.node(to).name);
  return found;
}

void embed_rings(GroupSet& set, const std::vector<RankPlace>& places, RouteCache& routes) {
  const auto groups = static_cast<std::int64_t>(set.groups.size());
  for (std::int64_t g = 0; g < groups; ++g) {
    GroupPlan& group = set.groups[static_cast<std::size_t>(g)];
    const auto n = static_cast<std::int64_t>(group.members.size());
    if (n == 1) continue;
    Ring ring;
    ring.order = tour(group, places, g * n / groups % n, routes);
    if (g % 2 == 1) std::reverse(ring.order.begin(), ring.order.end());
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t from = ring.order[static_cast<std::size_t>(i)];
      const std::int64_t to = ring.order[static_cast<std::size_t>((i + 1) % n)];
      ring.hops.push_back(routes.route(port_of(group, places, from), port_of(group, places, to)));
    }
    group.rings = {std::move(ring)};
  }
  name_worst_links(set, routes.graph());
}

void embed_pairs(GroupSet& set, const std::vector<RankPlace>& places, RouteCache& routes) {
  for (GroupPlan& group : set.groups) {
    const auto n = static_cast<std::int64_t>(group.members.size());
    group.pair_routes.clear();
    for (std::int64_t from = 0; from < n; ++from)
      for (std::int64_t to = 0; to < n; ++to)
        group.pair_routes.push_back(
            routes.route(port_of(group, places, from), port_of(group, places, to)));
  }
}

}  // namespace trn3sim::compile
