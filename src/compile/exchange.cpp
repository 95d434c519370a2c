// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What messages find when all members of all groups of a set send at once.
#include <algorithm>
#include <limits>
#include <set>

#include "trn3sim/compile/collective.hpp"

#include "rings.hpp"

namespace trn3sim::compile {
namespace {

using topology::LinkId;
using topology::Route;

// Counts the messages over each link.
class Load {
 public:
  explicit Load(const topology::Graph& graph) : graph_(graph), messages_(graph.links().size(), 0) {}

  void add(const Route& route) {
    for (LinkId id : route) ++messages_[static_cast<std::size_t>(id)];
    exchange_.latency = std::max(exchange_.latency, graph_.latency(route));
  }
  // The messages of one member: the links by which they leave at once. (Approximation: a copy on
  // its own stack takes nothing from them.)
  void add_exits(const std::set<LinkId>& links) {
    exchange_.exits = std::max(exchange_.exits, static_cast<std::int64_t>(links.size()));
  }
  // Least bandwidth per message on the way if one more took it.
  [[nodiscard]] base::Rate left(const Route& route) const {
    base::Rate least(std::numeric_limits<std::int64_t>::max());
    for (LinkId id : route)
      least = std::min(least, base::Rate(graph_.link(id).bandwidth.count() /
                                         (messages_[static_cast<std::size_t>(id)] + 1)));
    return least;
  }
  // Bandwidth of a link per message that crosses it.
  [[nodiscard]] base::Rate share(LinkId id) const {
    return base::Rate(graph_.link(id).bandwidth.count() / messages_[static_cast<std::size_t>(id)]);
  }
  // Lowers `least` to the share of a link on the route, and names it.
  void worst_of(const Route& route, base::Rate& least, std::string& name) const {
    for (LinkId id : route) {
      if (least.count() > 0 && share(id) >= least) continue;
      least = share(id);
      name = graph_.link(id).name;
    }
  }
  [[nodiscard]] Exchange exchange(base::Rate least, std::string worst) const {
    Exchange e = exchange_;
    e.rate = least;
    e.worst_link = std::move(worst);
    return e;
  }

 private:
  const topology::Graph& graph_;
  std::vector<std::int64_t> messages_;
  Exchange exchange_;
};

// Distinct first links of the routes of one member.
std::set<LinkId> first_links(const std::vector<const Route*>& routes) {
  std::set<LinkId> links;
  for (const Route* route : routes)
    if (!route->empty()) links.insert(route->front());
  return links;
}

PairBounds bounds_of(const GroupPlan& group, const topology::Graph& graph) {
  const std::size_t n = group.members.size();
  std::set<std::pair<base::Time, base::Rate>> hops;
  std::set<std::pair<std::int64_t, base::Rate>> entries;
  for (std::size_t to = 0; to < n; ++to) {
    std::set<LinkId> links;
    std::int64_t local = 0;
    base::Rate fastest(0);
    for (std::size_t from = 0; from < n; ++from) {
      if (from == to) continue;
      const Route& route = group.pair_routes[from * n + to];
      if (route.empty()) {
        ++local;
        hops.emplace(base::Time(0), base::Rate(0));
        continue;
      }
      hops.emplace(graph.latency(route), graph.bottleneck(route));
      links.insert(route.back());
      fastest = std::max(fastest, graph.link(route.back()).bandwidth);
    }
    entries.emplace(static_cast<std::int64_t>(links.size()) + local,
                    local > 0 ? base::Rate(0) : fastest);
  }
  return {{hops.begin(), hops.end()}, {entries.begin(), entries.end()}, {}};
}

// Routes of all pairs of the set's groups, counted in `load`.
void choose_routes(GroupSet& set, const Embedding& embedding, Load& load) {
  struct Tie {
    Route* chosen;
    const Route* other;
  };
  std::vector<Tie> ties;
  for (GroupPlan& group : set.groups) {
    const std::size_t n = group.members.size();
    const auto port = [&](std::size_t i) {
      return embedding.places[static_cast<std::size_t>(group.members[i])].nodes.front();
    };
    group.pair_routes.clear();
    group.pair_routes.reserve(n * n);
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) {
        const topology::NodeId a = port(from), b = port(to);
        group.pair_routes.push_back(embedding.routes.route(a, b));
        if (from == to) continue;
        const Route& other = embedding.routes.route(a, b, topology::Ties::LargeIds);
        if (other == group.pair_routes.back())
          load.add(other);
        else
          ties.push_back({&group.pair_routes.back(), &other});
      }
  }
  for (const Tie& tie : ties) {
    if (load.left(*tie.other) > load.left(*tie.chosen)) *tie.chosen = *tie.other;
    load.add(*tie.chosen);
  }
}

}  // namespace

Exchange measure_rings(const std::vector<std::vector<Ring>>& rings, const topology::Graph& graph,
                       std::vector<std::string>* worst) {
  Load load(graph);
  std::int64_t hops = 0;
  base::Time latency(0);
  for (const std::vector<Ring>& group : rings) {
    for (const Ring& ring : group)
      for (const Route& hop : ring.hops) {
        load.add(hop);
        latency += graph.latency(hop);
        ++hops;
      }
    for (std::size_t p = 0; p < group.front().order.size(); ++p) {
      std::vector<const Route*> mine;
      for (const Ring& ring : group)
        mine.push_back(&ring.hops[static_cast<std::size_t>(ring.place[p])]);
      load.add_exits(first_links(mine));
    }
  }
  base::Rate least(0);
  std::string name;
  for (const std::vector<Ring>& group : rings) {
    base::Rate mine(0);
    std::string mine_name;
    for (const Ring& ring : group)
      for (const Route& hop : ring.hops) load.worst_of(hop, mine, mine_name);
    if (worst != nullptr) worst->push_back(mine_name);
    if (mine.count() > 0 && (least.count() == 0 || mine < least)) {
      least = mine;
      name = mine_name;
    }
  }
  Exchange exchange = load.exchange(least, name);
  exchange.latency = base::Time((latency.count() + hops - 1) / hops);
  return exchange;
}

void embed_pairs(GroupSet& set, const Embedding& embedding) {
  const topology::Graph& graph = embedding.routes.graph();
  Load load(graph);
  choose_routes(set, embedding, load);
  for (GroupPlan& group : set.groups) {
    const std::size_t n = group.members.size();
    group.pairs = bounds_of(group, graph);
    for (std::size_t from = 0; from < n; ++from) {
      std::vector<const Route*> mine;
      for (std::size_t to = 0; to < n; ++to)
        if (to != from) mine.push_back(&group.pair_routes[from * n + to]);
      group.pairs.carried.push_back(carried(mine, graph));
      load.add_exits(first_links(mine));
    }
  }
  base::Rate least(0);
  std::string name;
  for (const GroupPlan& group : set.groups)
    for (const Route& route : group.pair_routes) load.worst_of(route, least, name);
  set.mesh = load.exchange(least, name);
}

}  // namespace trn3sim::compile
