// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The machine as a plain directed graph: HBM stacks (clusters of cores), a port hub per chip,
// switches, and the links between them, on chip and off.
//
// Per chip: the HBM stacks form a ring of stack links (two stacks: one pair of links), and each is
// linked to the port hub. Hubs and switches are joined by the fabric. A hub does not switch between
// the stacks of its chip: traffic that stays on a chip stays on the ring. All links of one plane of
// a rack meet in one switch node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/config/system_spec.hpp"

namespace trn3sim::topology {

enum class NodeId : std::uint32_t {};
enum class LinkId : std::uint32_t {};

enum class NodeKind : std::uint8_t { Stack, Port, Switch };
enum class LinkKind : std::uint8_t { OnDie, DieCrossing, PortLink, NeuronLink };

struct Node {
  NodeKind kind = NodeKind::Stack;
  std::string name;        // "chip3.stack1", "chip3.ports", "rack0.plane1"
  std::int64_t chip = -1;  // -1 for switches
  std::int64_t stack = -1;
  base::Time forward;  // latency of passing through (switches)
};

// One direction.
struct Link {
  LinkKind kind = LinkKind::OnDie;
  std::string name;  // "chip3.stack1->chip3.stack2"
  NodeId from{}, to{};
  base::Rate bandwidth;
  base::Time latency;
};

using Route = std::vector<LinkId>;

// Which of the best routes with equally many links is taken: that with the smaller or the larger
// link ids in order.
enum class Ties : std::uint8_t { SmallIds, LargeIds };

class Graph {
 public:
  NodeId add_node(Node node);
  LinkId add_link(Link link);
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] NodeId stack(std::int64_t chip, std::int64_t stack) const;
  [[nodiscard]] std::int64_t chips() const { return chips_; }
  [[nodiscard]] std::int64_t stacks_per_chip() const { return stacks_per_chip_; }

  // The route of least cost; cost = sum of latencies (links and switches passed) plus the time of
  // 1 MiB over the slowest link; ties: fewer links, then the smaller link ids in order. Empty if
  // from == to. Throws base::UserError if there is none, naming both ends. Callers keep routes.
  [[nodiscard]] Route route(NodeId from, NodeId to) const;
  // All routes from one node: result[to], empty where from == to or unreachable.
  [[nodiscard]] std::vector<Route> routes_from(NodeId from, Ties ties = Ties::SmallIds) const;
  // Sum of the latencies of links and of the switches passed.
  [[nodiscard]] base::Time latency(const Route& route) const;
  // Bandwidth of the slowest link.
  [[nodiscard]] base::Rate bottleneck(const Route& route) const;

 private:
  friend Graph build(const config::SystemSpec& system);
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::vector<LinkId>> out_;
  std::vector<NodeId> stacks_;
  std::int64_t chips_ = 0, stacks_per_chip_ = 0;
};

// Builds the graph of a checked system; shapes are described at config::FabricSpec. In
// "paired_planes" chip number = server * chips_per_server + position; chips
// 2j and 2j + 1 are a pair, the even one hangs on plane 0 of its rack, the odd one on plane 1; chip
// k of server s is wired to chip k of server s + servers_per_rack.
Graph build(const config::SystemSpec& system);

}  // namespace trn3sim::topology
