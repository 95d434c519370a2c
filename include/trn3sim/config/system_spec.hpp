// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A system: chips of one kind and the fabric that joins them. Shapes are data: an explicit list of
// link rules by fabric type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::config {

struct LinkSpec {
  Rate bandwidth;  // per direction
  Time latency;    // per traversal
};

// A switch of a "graph" fabric.
struct SwitchSpec {
  std::string name;
  Time latency;  // through the switch
};

// A link of a "graph" fabric. Ends are "chip0", "chip1", ... or names of switches.
struct GraphLinkSpec {
  std::string from, to;
  LinkSpec link;
  bool one_way = false;  // otherwise both directions, each with the whole bandwidth
};

// Fabric of the system, tagged by "type":
//  "none"             one chip.
//  "paired_planes"    Trainium3 Gen1: chips come in pairs with a direct link; the left chip of every
//                     pair hangs on switch plane 0 of its rack, the right chip on plane 1; chip k of
//                     server s is wired to chip k of server s + servers_per_rack (next rack).
//  "ring"             chip i is joined to chip i + 1 and the last one to chip 0.
//  "torus"            a ring in each of `dims`; the last dimension varies fastest with the chip
//                     number; a dimension of 2 has one link, not two.
//  "switch"           every chip is joined to one switch.
//  "fully_connected"  every chip is joined to every other.
//  "graph"            `switches` and `links`, one by one.
// Chips pass on what is not for them. Only "paired_planes" has servers; all other types are one
// server that holds all chips.
struct FabricSpec {
  std::string type;
  std::int64_t servers = 1;
  std::int64_t chips_per_server = 1;
  std::int64_t servers_per_rack = 1;
  LinkSpec pair;         // pair partners
  LinkSpec switched;     // chip to its switch plane
  Time switch_latency;   // through one switch plane or the switch of "switch"
  LinkSpec cross_rack;   // direct, rack to rack
  std::vector<std::int64_t> dims;      // "torus"
  LinkSpec outer_link;                 // rings of its first dimension, 0 GB/s: as the others
  LinkSpec link;                       // every link of "ring", "torus", "switch", "fully_connected"
  std::vector<SwitchSpec> switches;    // "graph"
  std::vector<GraphLinkSpec> links;    // "graph"
};

struct SystemSpec {
  std::string name;
  ChipSpec chip;
  FabricSpec fabric;
  [[nodiscard]] std::int64_t chips() const { return fabric.servers * fabric.chips_per_server; }
};

}  // namespace trn3sim::config
