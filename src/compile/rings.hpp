// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Explicit ring embedding: which order the members of each group take, and over which links.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/topology/graph.hpp"

namespace trn3sim::compile {

// Routes from each node that was asked for, computed once.
class RouteCache {
 public:
  explicit RouteCache(const topology::Graph& graph) : graph_(graph) {}
  // Throws base::UserError if there is none.
  const topology::Route& route(topology::NodeId from, topology::NodeId to,
                               topology::Ties ties = topology::Ties::SmallIds);
  [[nodiscard]] const topology::Graph& graph() const { return graph_; }

 private:
  const topology::Graph& graph_;
  std::map<std::pair<topology::Ties, topology::NodeId>, std::vector<topology::Route>> from_;
};

// Where the ranks are and how they reach each other.
struct Embedding {
  const std::vector<RankPlace>& places;
  RouteCache& routes;
  const config::ChipSpec& chip;
};

// Embeds the rings of every group of a set. A tour starts at member g x n / groups of group g, so
// that the groups leave a rack over different links, and always goes on to the nearest member not
// yet visited: least time for 1 MiB over the route, then nearest position, then the lower one.
// Another tour visits all members of a chip before the next chip. Every other group runs its tour
// backwards, so that both directions of the links are used.
//
// Groups that span chips may use up to `most` rings at once that share no link but those between a
// stack and its ports: a tour in both directions, or two Hamiltonian cycles in both directions
// where one member per chip sits on a torus that has them. Taken is what is expected to be fastest
// for a step of `step` bytes with all groups at once; of equals the one named first here. Fills
// `ring` and the worst links: those whose bandwidth per crossing ring is least.
void embed_rings(GroupSet& set, const Embedding& embedding, std::int64_t most, base::Bytes step);

// Fills pair_routes and pairs of every group of the set, and `mesh`. Of two equally good routes a
// pair takes the one whose links are crossed by fewer pairs so far, pairs with one route first.
void embed_pairs(GroupSet& set, const Embedding& embedding);

// One ring of a group in the given order of positions.
Ring make_ring(const GroupPlan& group, std::vector<std::int64_t> order, const Embedding& embedding);

// Two link-disjoint Hamiltonian cycles, each in both directions: one that goes around the rows of a
// two-dimensional torus one by one, with directions chosen so that what is left is the other one.
// There are such if both dimensions are even or both odd (checked up to 8 x 8). Empty if the
// members are not one per chip or their direct links have none of this kind.
std::vector<Ring> hamiltonian_rings(const GroupPlan& group, const Embedding& embedding);

// What all rings of the set find together; `worst` gets the worst link of each group.
Exchange measure_rings(const std::vector<std::vector<Ring>>& rings, const topology::Graph& graph,
                       std::vector<std::string>* worst);

}  // namespace trn3sim::compile
