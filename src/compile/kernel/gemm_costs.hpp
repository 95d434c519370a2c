// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions behind the choice of a GEMM's mapping.
#pragma once

#include <cstdint>

#include "compile/kernel/gemm_mapping.hpp"

namespace trn3sim::compile {

// Sizes and rates that do not depend on the blocks.
struct Costs {
  const KernelSpec* spec;
  const config::ChipSpec* chip;
  Eviction eviction;
  GemmOperand a, b;
  std::int64_t pack, tile_max;
  double passes;  // array passes of a contraction tile (4 for fp32)
  double tensor_ghz;
  double scalar_cycles_per_column, vector_cycles_per_column;  // evictions, per 128-row column

  [[nodiscard]] const GemmOperand& operand(const GemmMapping& map, bool outer) const {
    return outer == (map.stationary_a == map.outer_stationary) ? a : b;
  }
  [[nodiscard]] bool prepared() const { return a.prepared() || b.prepared(); }
  [[nodiscard]] bool transposed() const { return a.transpose || b.transpose; }
};

Costs costs_of(const KernelSpec& spec, const config::ChipSpec& chip);

// HBM bytes of a panel of `k` x `width`, as it is loaded in chunks.
std::int64_t panel_bytes(const GemmOperand& operand, const GemmMapping& map, std::int64_t k,
                         std::int64_t width, std::int64_t pack);
// Bytes of one descriptor of a full chunk.
std::int64_t panel_row(const GemmOperand& operand, const GemmMapping& map, std::int64_t k,
                       std::int64_t width, std::int64_t full_width, std::int64_t pack);

// Array cycles of one core's share.
double tensor_cycles(const GemmShape& shape, bool stationary_a, const Costs& costs);

struct Extents {
  std::int64_t outer, inner;  // free sizes of the busiest core
};
Extents extents_of(const GemmShape& shape, const GemmMapping& map);

struct Traffic {
  std::int64_t outer, inner, store, extra;  // bytes of one core
};
Traffic traffic_of(const GemmShape& shape, const GemmMapping& map, const Costs& costs);

// SBUF bytes per partition; sets the rings of rows.
std::int64_t sbuf_bytes(GemmMapping& map, std::int64_t stationary_block, std::int64_t moving_block,
                        const Costs& costs);

// Predicted time of the busiest core: blocks overlap their loads with the previous block.
void predict(GemmMapping& map, const GemmShape& shape, const Costs& costs);

}  // namespace trn3sim::compile
