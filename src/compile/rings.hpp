// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Explicit ring embedding: which order the members of each group take, and over which links.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/topology/graph.hpp"

namespace trn3sim::compile {

// Routes from each node that was asked for, computed once.
class RouteCache {
 public:
  explicit RouteCache(const topology::Graph& graph) : graph_(graph) {}
  const topology::Route& route(topology::NodeId from, topology::NodeId to);
  [[nodiscard]] const topology::Graph& graph() const { return graph_; }

 private:
  const topology::Graph& graph_;
  std::map<topology::NodeId, std::vector<topology::Route>> from_;
};

// Embeds one ring per group of a set. A tour starts at member g x n / groups of group g, so that
// the groups leave a rack over different links, and always goes on to the nearest member not yet
// visited: least time for 1 MiB over the route, then nearest position, then the lower one. Every
// other group runs its tour backwards, so that both directions of the links are used. Fills
// worst_link with the link whose bandwidth per crossing ring is least.
void embed_rings(GroupSet& set, const std::vector<RankPlace>& places, RouteCache& routes);

// Fills pair_routes of every group of the set.
void embed_pairs(GroupSet& set, const std::vector<RankPlace>& places, RouteCache& routes);

}  // namespace trn3sim::compile
