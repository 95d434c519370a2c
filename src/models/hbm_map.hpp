// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Address map of a stack. The pseudo-channel is XORed with a fold of the bits above it, so that
// power-of-two strides spread; bank group and bank are XORed with the low row bits. A 12-high stack
// has three SIDs, so a field need not be a power of two.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/config/hbm_mapping.hpp"

namespace trn3sim::models {

struct HbmPlace {
  std::int32_t channel = 0;
  std::int32_t row = 0;
  std::int32_t bank = 0;  // over groups, banks and SIDs; the group is the lowest part
  std::int32_t column = 0;
  std::int16_t group = 0;
  std::int16_t sid = 0;
};

class HbmMap {
 public:
  // Throws base::UserError for a map that the stack cannot have.
  explicit HbmMap(const config::HbmSpec& spec);

  [[nodiscard]] HbmPlace decode(std::uint64_t burst) const;

  // Maps "cg c.. P h c.. K S": consecutive bytes of one pseudo-channel lie in the same row of two
  // neighbouring banks. Only these have block_bits() > 0, log2 of those bytes. Blocks that differ
  // only in the channel form a stripe: decode_stripe() gives the place of their first bursts; its
  // channel is what the number of the block in the stripe is XORed with.
  [[nodiscard]] int block_bits() const { return block_bits_; }
  [[nodiscard]] int channel_bits() const { return channel_bits_; }
  [[nodiscard]] HbmPlace decode_stripe(std::uint64_t stripe) const;

  [[nodiscard]] int burst_bits() const { return burst_bits_; }

 private:
  struct Field {
    config::HbmField::Kind kind;
    int low;
    std::uint64_t count;
    int bits;  // -1: no power of two
  };
  void find_block(const config::HbmSpec& spec);
  [[nodiscard]] std::uint64_t hash(std::uint64_t above) const;

  std::vector<Field> fields_;
  int burst_bits_ = 0, block_bits_ = 0;
  int channel_bits_ = 0, group_bits_ = 0, bank_bits_ = 0, high_group_bits_ = 0,
      row_blocks_bits_ = 0;
  std::uint32_t sids_ = 1;
  bool hash_ = true;
};

}  // namespace trn3sim::models
