// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The blocks of one core's GEMM in the order in which they are made.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/kernel/gemm_mapping.hpp"

namespace trn3sim::compile {

using Sizes = std::vector<std::int64_t>;

// `total` in pieces of `size`, the last one smaller.
Sizes chop(std::int64_t total, std::int64_t size);
std::int64_t sum(const Sizes& sizes);

// Outputs that accumulate in PSUM together.
struct SubBlock {
  Sizes stationary, moving;                     // tile sizes
  bool wait_outer = false, wait_inner = false;  // first reader of the panels: waits chunk by chunk
  bool free_outer = false, free_inner = false;  // last reader: frees chunk by chunk
  bool operator==(const SubBlock&) const = default;
};

struct Block {
  std::int64_t outer = 0, inner = 0;
  bool load_outer = false;
  std::vector<SubBlock> subs;
  bool operator==(const Block&) const = default;
};

// A row of PSUM tiles: one stationary tile, all moving tiles of a sub-block.
struct Row {
  std::int64_t stationary = 0;
  Sizes moving;
  std::size_t parity = 0;  // of the row, if it has a single tile
  bool operator==(const Row&) const = default;
  [[nodiscard]] std::size_t evictor(std::size_t tile) const {
    return moving.size() == 1 ? parity : tile % 2;
  }
  [[nodiscard]] std::int64_t tiles_of(std::size_t evictor_index) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < moving.size(); ++i) count += evictor(i) == evictor_index ? 1 : 0;
    return count;
  }
};

std::vector<Row> rows_of(const SubBlock& sub);
// Per outer block, the blocks along the inner operand.
std::vector<std::vector<Block>> plan_blocks(const GemmShape& shape, const GemmMapping& map,
                                            const config::ChipSpec& chip);

}  // namespace trn3sim::compile
