// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Preparation of a GEMM's operands in SBUF: transposes by TensorE and conversions by VectorE.
//
// A chunk of a panel is a *part*. Transposed parts go through PSUM in groups of up to four tiles of
// 128 x 128 (one bank); ScalarE copies a group to SBUF. Converted parts go through VectorE. While
// TensorE multiplies a block, the parts of the next block are prepared: its transposes stand
// between the multiplies, and the rings of panels hold two blocks, so nothing waits in a circle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "compile/kernel/gemm_blocks.hpp"

namespace trn3sim::compile {

// Up to four tiles of the same rows.
struct TransposeGroup {
  bool outer = false;
  std::int64_t rows = 0;             // of the operand as it lies in SBUF: partitions
  std::int64_t k = 0;                // columns of it
  bool first = false, last = false;  // of its part
  bool operator==(const TransposeGroup&) const = default;
};

struct PreparePart {
  bool outer = false;
  std::int64_t k = 0, width = 0;
  std::vector<TransposeGroup> groups;
  bool operator==(const PreparePart&) const = default;
};

// The parts of one block, in the order of their loads.
std::vector<PreparePart> parts_of(const Block& block, const Sizes& chunks, const GemmOperand& outer,
                                  const GemmOperand& inner);

// What is prepared during one sub-block.
struct PrepareSlot {
  std::vector<std::vector<TransposeGroup>> groups;  // per chunk of the contraction
  std::vector<PreparePart> converted;
  bool operator==(const PrepareSlot&) const = default;
};
// Spreads `parts` over `subs` sub-blocks of `chunks` chunks each. A part is converted in the
// sub-block that has its last transpose.
std::vector<PrepareSlot> spread(const std::vector<PreparePart>& parts, std::size_t subs,
                                std::size_t chunks, const GemmOperand& outer,
                                const GemmOperand& inner);

// What is prepared while the single sub-block of `current` is multiplied, if the rings hold less
// than a panel: with chunk c, chunk c + kStreamAhead of the same block or of `next`. Without
// `current`, the first kStreamAhead chunks of `next`.
PrepareSlot streamed(const std::optional<Block>& next, const std::optional<Block>& current,
                     const Sizes& chunks, const GemmOperand& outer, const GemmOperand& inner);

// Share `index` of `count` of the list.
template <class T>
std::vector<T> slice(const std::vector<T>& list, std::size_t index, std::size_t count) {
  // Even steps first, so that runs of equal steps stay long.
  const std::size_t each = (list.size() + count - 1) / count;
  const std::size_t begin = std::min(list.size(), index * each);
  const std::size_t end = std::min(list.size(), begin + each);
  return {list.begin() + static_cast<std::ptrdiff_t>(begin),
          list.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace trn3sim::compile
