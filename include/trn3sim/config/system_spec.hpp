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

// Fabric of the system, tagged by "type":
//  "none"            one chip.
//  "paired_planes"   Trainium3 Gen1: chips come in pairs with a direct link; the left chip of every
//                    pair hangs on switch plane 0 of its rack, the right chip on plane 1; chip k of
//                    server s is wired to chip k of server s + servers_per_rack (next rack).
struct FabricSpec {
  std::string type;
  std::int64_t servers = 1;
  std::int64_t chips_per_server = 1;
  std::int64_t servers_per_rack = 1;
  LinkSpec pair;         // pair partners
  LinkSpec switched;     // chip to its switch plane
  Time switch_latency;   // through one switch plane
  LinkSpec cross_rack;   // direct, rack to rack
};

struct SystemSpec {
  std::string name;
  ChipSpec chip;
  FabricSpec fabric;
  [[nodiscard]] std::int64_t chips() const { return fabric.servers * fabric.chips_per_server; }
};

}  // namespace trn3sim::config
