// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The address map of an HBM stack as a list of fields from the lowest bit above a burst up.
// Letters: P pseudo-channel (of all channels), G bank group, g its low bit, h its other bits, c one
// column bit, K bank, S stack ID. The row is what lies above.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::config {

struct HbmField {
  enum class Kind : std::uint8_t { Channel, Group, Column, Bank, Sid };
  Kind kind = Kind::Column;
  int low = 0;             // lowest bit of the number that the field is a part of
  std::int64_t count = 1;  // values of the field
};

struct HbmMapping {
  std::vector<HbmField> fields;
  std::string problem;  // why the map is impossible; empty: it is not
  std::string key;      // of the chip file that the problem is about, "hbm.mapping"
};

// The letters of a chip: `mapping`, or those that `interleave` stands for.
std::string hbm_mapping_letters(const HbmSpec& spec);

HbmMapping hbm_mapping(const HbmSpec& spec);

}  // namespace trn3sim::config
