// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

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

void join(Graph& graph, NodeId a, NodeId b, const Wire& wire) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
    graph.add_link({wire.kind, fmt::format("{}->{}", graph.node(from).name, graph.node(to).name),
                    from, to, wire.bandwidth, wire.latency});
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

}  // namespace

Graph build(const config::SystemSpec& system) {
  Graph graph;
  graph.chips_ = system.chips();
  graph.stacks_per_chip_ = system.chip.stacks;
  std::vector<NodeId> hubs;
  for (std::int64_t chip = 0; chip < graph.chips_; ++chip)
    hubs.push_back(add_chip(graph, system.chip, chip, graph.stacks_));
  if (system.fabric.type == "paired_planes")
    add_paired_planes(graph, system.fabric, hubs);
  else
    TRN3SIM_CHECK(system.fabric.type == "none" && graph.chips_ == 1,
                  fmt::format("fabric type {} with {} chips", system.fabric.type, graph.chips_));
  return graph;
}

}  // namespace trn3sim::topology
