// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "trn3sim/base/error.hpp"
#include "trn3sim/topology/graph.hpp"

#include <fmt/format.h>

namespace trn3sim::topology {
namespace {

// What both directions of a link have in common.
struct Wire {
  LinkKind kind;
  base::Rate bandwidth;
  base::Time latency;
};

void add_one_way(Graph& graph, NodeId from, NodeId to, const Wire& wire) {
  graph.add_link({wire.kind, fmt::format("{}->{}", graph.node(from).name, graph.node(to).name),
                  from, to, wire.bandwidth, wire.latency});
}

void join(Graph& graph, NodeId a, NodeId b, const Wire& wire) {
  add_one_way(graph, a, b, wire);
  add_one_way(graph, b, a, wire);
}

Wire fabric_wire(const config::LinkSpec& link) {
  return {LinkKind::NeuronLink, link.bandwidth, link.latency};
}

// The stack link between two stacks of a chip.
Wire stack_wire(const config::ChipSpec& chip, std::int64_t a, std::int64_t b) {
  const std::int64_t per_die = chip.stacks / chip.dies;
  const config::OnChipSpec& paths = chip.on_chip;
  if (a / per_die == b / per_die) return {LinkKind::OnDie, paths.stack_link, paths.stack_latency};
  const double share = static_cast<double>(paths.stack_link.count()) * paths.die_crossing_bandwidth;
  return {LinkKind::DieCrossing, base::Rate(std::max<std::int64_t>(1, std::llround(share))),
          paths.stack_latency + paths.die_crossing_latency};
}

// Adds the nodes and on-chip links of one chip; appends its stacks and returns its hub.
NodeId add_chip(Graph& graph, const config::ChipSpec& chip, std::int64_t number,
                std::vector<NodeId>& stacks) {
  const std::size_t first = stacks.size();
  for (std::int64_t i = 0; i < chip.stacks; ++i)
    stacks.push_back(
        graph.add_node({NodeKind::Stack, fmt::format("chip{}.stack{}", number, i), number, i, {}}));
  const NodeId hub =
      graph.add_node({NodeKind::Port, fmt::format("chip{}.ports", number), number, -1, {}});
  const auto stack = [&](std::int64_t i) { return stacks[first + static_cast<std::size_t>(i)]; };
  const std::int64_t ring_links = chip.stacks > 2 ? chip.stacks : chip.stacks - 1;
  for (std::int64_t i = 0; i < ring_links; ++i) {
    const std::int64_t next = (i + 1) % chip.stacks;
    join(graph, stack(i), stack(next), stack_wire(chip, i, next));
  }
  const Wire port{LinkKind::PortLink, chip.on_chip.port_link, chip.on_chip.port_latency};
  for (std::int64_t i = 0; i < chip.stacks; ++i) join(graph, stack(i), hub, port);
  return hub;
}

void add_paired_planes(Graph& graph, const config::FabricSpec& fabric,
                       const std::vector<NodeId>& hubs) {
  const auto hub = [&](std::int64_t server, std::int64_t k) {
    return hubs[static_cast<std::size_t>(server * fabric.chips_per_server + k)];
  };
  constexpr std::int64_t kPlanes = 2;
  const std::int64_t racks = fabric.servers / fabric.servers_per_rack;
  std::vector<NodeId> planes;
  for (std::int64_t rack = 0; rack < racks; ++rack)
    for (std::int64_t plane = 0; plane < kPlanes; ++plane)
      planes.push_back(graph.add_node({NodeKind::Switch, fmt::format("rack{}.plane{}", rack, plane),
                                       -1, -1, fabric.switch_latency}));
  for (std::int64_t server = 0; server < fabric.servers; ++server) {
    const std::int64_t rack = server / fabric.servers_per_rack;
    for (std::int64_t k = 0; k < fabric.chips_per_server; ++k) {
      if (k % kPlanes == 0)
        join(graph, hub(server, k), hub(server, k + 1), fabric_wire(fabric.pair));
      const NodeId plane = planes[static_cast<std::size_t>(rack * kPlanes + k % kPlanes)];
      join(graph, hub(server, k), plane, fabric_wire(fabric.switched));
      if (const std::int64_t partner = server + fabric.servers_per_rack; partner < fabric.servers)
        join(graph, hub(server, k), hub(partner, k), fabric_wire(fabric.cross_rack));
    }
  }
}

// Chip i to chip i + 1, the last one to the first; two chips have one link.
void add_ring(Graph& graph, const Wire& wire, const std::vector<NodeId>& hubs) {
  for (std::size_t i = 0; i + 1 < hubs.size(); ++i) join(graph, hubs[i], hubs[i + 1], wire);
  if (hubs.size() > 2) join(graph, hubs.back(), hubs.front(), wire);
}

// The last dimension varies fastest with the chip number.
void add_torus(Graph& graph, const config::FabricSpec& fabric, const std::vector<NodeId>& hubs) {
  std::size_t stride = hubs.size();
  for (std::size_t d = 0; d < fabric.dims.size(); ++d) {
    const bool outer = d == 0 && fabric.outer_link.bandwidth.count() > 0;
    const Wire wire = fabric_wire(outer ? fabric.outer_link : fabric.link);
    const auto length = static_cast<std::size_t>(fabric.dims[d]);
    stride /= length;
    for (std::size_t first = 0; first < hubs.size(); ++first) {
      if (first / stride % length != 0) continue;
      std::vector<NodeId> ring;
      for (std::size_t k = 0; k < length; ++k) ring.push_back(hubs[first + k * stride]);
      add_ring(graph, wire, ring);
    }
  }
}

void add_switch(Graph& graph, const config::FabricSpec& fabric, const std::vector<NodeId>& hubs) {
  const NodeId node = graph.add_node({NodeKind::Switch, "switch", -1, -1, fabric.switch_latency});
  for (const NodeId hub : hubs) join(graph, hub, node, fabric_wire(fabric.link));
}

void add_all_pairs(Graph& graph, const Wire& wire, const std::vector<NodeId>& hubs) {
  for (std::size_t a = 0; a < hubs.size(); ++a)
    for (std::size_t b = a + 1; b < hubs.size(); ++b) join(graph, hubs[a], hubs[b], wire);
}

void add_listed(Graph& graph, const config::FabricSpec& fabric, const std::vector<NodeId>& hubs) {
  std::map<std::string, NodeId> nodes;
  for (std::size_t i = 0; i < hubs.size(); ++i) nodes.emplace(fmt::format("chip{}", i), hubs[i]);
  for (const config::SwitchSpec& s : fabric.switches)
    nodes.emplace(s.name, graph.add_node({NodeKind::Switch, s.name, -1, -1, s.latency}));
  for (const config::GraphLinkSpec& link : fabric.links) {
    const NodeId from = nodes.at(link.from), to = nodes.at(link.to);
    const Wire wire = fabric_wire(link.link);
    if (link.one_way)
      add_one_way(graph, from, to, wire);
    else
      join(graph, from, to, wire);
  }
}

void add_fabric(Graph& graph, const config::FabricSpec& fabric, const std::vector<NodeId>& hubs) {
  if (fabric.type == "paired_planes")
    add_paired_planes(graph, fabric, hubs);
  else if (fabric.type == "ring")
    add_ring(graph, fabric_wire(fabric.link), hubs);
  else if (fabric.type == "torus")
    add_torus(graph, fabric, hubs);
  else if (fabric.type == "switch")
    add_switch(graph, fabric, hubs);
  else if (fabric.type == "fully_connected")
    add_all_pairs(graph, fabric_wire(fabric.link), hubs);
  else if (fabric.type == "graph")
    add_listed(graph, fabric, hubs);
  else
    TRN3SIM_CHECK(fabric.type == "none" && hubs.size() == 1,
                  fmt::format("fabric type {} with {} chips", fabric.type, hubs.size()));
}

}  // namespace

Graph build(const config::SystemSpec& system) {
  Graph graph;
  graph.chips_ = system.chips();
  graph.stacks_per_chip_ = system.chip.stacks;
  std::vector<NodeId> hubs;
  for (std::int64_t chip = 0; chip < graph.chips_; ++chip)
    hubs.push_back(add_chip(graph, system.chip, chip, graph.stacks_));
  add_fabric(graph, system.fabric, hubs);
  return graph;
}

}  // namespace trn3sim::topology
