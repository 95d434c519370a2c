// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/topology/graph.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::topology {
namespace {

constexpr base::Bytes kRouteProbe{std::int64_t{1} << 20};  // the bandwidth term of a route's cost

std::size_t index(NodeId id) {
  return static_cast<std::size_t>(id);
}

// Best way found so far to a node among links of at least some bandwidth.
struct Reach {
  base::Time latency = base::kTimeMax;
  std::int64_t links = std::numeric_limits<std::int64_t>::max();
  LinkId last{};
  bool reached = false;
};

// Least (latency, links, link ids in order) from one node over links of at least `floor`.
class Search {
 public:
  Search(const Graph& graph, const std::vector<std::vector<LinkId>>& out, NodeId from,
         base::Rate floor, Ties ties)
      : graph_(graph),
        out_(out),
        from_(from),
        floor_(floor),
        ties_(ties),
        reach_(graph.nodes().size()) {
    run();
  }

  [[nodiscard]] const Reach& to(NodeId id) const { return reach_[index(id)]; }

  [[nodiscard]] Route route(NodeId to) const {
    Route route;
    for (NodeId at = to; at != from_; at = graph_.link(route.back()).from)
      route.push_back(reach_[index(at)].last);
    std::reverse(route.begin(), route.end());
    return route;
  }

 private:
  using Entry = std::tuple<base::Time, std::int64_t, NodeId>;

  void run() {
    reach_[index(from_)] = {base::Time(0), 0, LinkId{}, true};
    std::set<Entry> open{{base::Time(0), 0, from_}};
    while (!open.empty()) {
      const auto [latency, links, at] = *open.begin();
      open.erase(open.begin());
      for (const LinkId id : out_[index(at)])
        if (usable(at, id)) relax(at, id, latency, links, open);
    }
  }

  // A hub passes what comes from its own stacks only to the fabric.
  [[nodiscard]] bool usable(NodeId at, LinkId id) const {
    const Link& link = graph_.link(id);
    if (link.bandwidth < floor_ || link.to == from_) return false;
    return at == from_ || link.kind != LinkKind::PortLink ||
           graph_.node(at).kind != NodeKind::Port ||
           graph_.link(reach_[index(at)].last).kind != LinkKind::PortLink;
  }

  void relax(NodeId at, LinkId id, base::Time latency, std::int64_t links, std::set<Entry>& open) {
    const Link& link = graph_.link(id);
    const base::Time pass = at == from_ ? base::Time(0) : graph_.node(at).forward;
    const base::Time arrival = latency + pass + link.latency;
    Reach& known = reach_[index(link.to)];
    const auto better = std::tuple(arrival, links + 1) <=> std::tuple(known.latency, known.links);
    if (better > 0) return;
    if (better == 0 && !before(at, id, link.to)) return;
    if (known.reached) open.erase({known.latency, known.links, link.to});
    known = {arrival, links + 1, id, true};
    open.insert({arrival, links + 1, link.to});
  }

  // Whether ties prefer the route over `at` and `id` to the one known to `to`, which is as long and
  // as fast.
  [[nodiscard]] bool before(NodeId at, LinkId id, NodeId to) const {
    Route mine = route(at);
    mine.push_back(id);
    return ties_ == Ties::SmallIds ? mine < route(to) : route(to) < mine;
  }

  const Graph& graph_;
  const std::vector<std::vector<LinkId>>& out_;
  NodeId from_;
  base::Rate floor_;
  Ties ties_;
  std::vector<Reach> reach_;
};

}  // namespace

NodeId Graph::add_node(Node node) {
  nodes_.push_back(std::move(node));
  out_.emplace_back();
  return static_cast<NodeId>(nodes_.size() - 1);
}

LinkId Graph::add_link(Link link) {
  TRN3SIM_CHECK(index(link.from) < nodes_.size() && index(link.to) < nodes_.size(),
                "link to a node that is not there");
  TRN3SIM_CHECK(link.bandwidth.count() > 0, fmt::format("link {} without bandwidth", link.name));
  const auto id = static_cast<LinkId>(links_.size());
  out_[index(link.from)].push_back(id);
  links_.push_back(std::move(link));
  return id;
}

NodeId Graph::stack(std::int64_t chip, std::int64_t stack) const {
  TRN3SIM_CHECK(chip >= 0 && chip < chips_ && stack >= 0 && stack < stacks_per_chip_,
                fmt::format("no stack {} in chip {}", stack, chip));
  return stacks_[static_cast<std::size_t>(chip * stacks_per_chip_ + stack)];
}

// The slowest link is no sum over links, so one search runs per distinct bandwidth: among links of
// at least that bandwidth the fastest route is the one of least latency. The best of them is exact.
std::vector<Route> Graph::routes_from(NodeId from, Ties ties) const {
  std::set<base::Rate> floors;
  for (const Link& link : links_) floors.insert(link.bandwidth);
  std::vector<Route> best(nodes_.size());
  std::vector<base::Time> cost(nodes_.size(), base::kTimeMax);
  for (const base::Rate floor : floors) {
    const Search search(*this, out_, from, floor, ties);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto to = static_cast<NodeId>(i);
      if (to == from || !search.to(to).reached) continue;
      Route found = search.route(to);
      const base::Time time =
          search.to(to).latency + base::transfer_time(kRouteProbe, bottleneck(found));
      if (std::tuple(time, found.size()) > std::tuple(cost[i], best[i].size())) continue;
      if (time == cost[i] && found.size() == best[i].size() &&
          !(ties == Ties::SmallIds ? found < best[i] : best[i] < found))
        continue;
      cost[i] = time;
      best[i] = std::move(found);
    }
  }
  return best;
}

Route Graph::route(NodeId from, NodeId to) const {
  if (from == to) return {};
  Route found = std::move(routes_from(from)[index(to)]);
  if (found.empty())
    throw base::UserError(
        "fabric", fmt::format("there is no route from {} to {}", node(from).name, node(to).name));
  return found;
}

base::Time Graph::latency(const Route& route) const {
  base::Time sum(0);
  for (std::size_t i = 0; i < route.size(); ++i) {
    const Link& passed = link(route[i]);
    sum += passed.latency;
    if (i > 0) sum += node(passed.from).forward;
  }
  return sum;
}

base::Rate Graph::bottleneck(const Route& route) const {
  base::Rate slowest(std::numeric_limits<std::int64_t>::max());
  for (const LinkId id : route) slowest = std::min(slowest, link(id).bandwidth);
  return slowest;
}

}  // namespace trn3sim::topology
