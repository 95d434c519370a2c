// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_costs.hpp"

#include <algorithm>
#include <cmath>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;
constexpr double kHbmShare = 0.7;  // of the raw rate that mixed streams get, for planning only

double seconds_rate_ns(double bytes, double bytes_per_second) {
  return bytes / bytes_per_second * 1e9;
}

}  // namespace

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_divide(value, unit) * unit;
}
std::int64_t scaled(std::int64_t width, std::int64_t num, std::int64_t den) {
  return static_cast<std::int64_t>((Int128(width) * num + den - 1) / den);
}

std::int64_t rows_together(std::int64_t width, std::int64_t full_width, std::int64_t chunk_tiles,
                           std::int64_t k, std::int64_t pack) {
  const bool whole = width == full_width && k % (kLanes * pack * chunk_tiles) == 0;
  return whole ? chunk_tiles : 1;
}

std::int64_t contraction_pack(base::DType dtype, const config::ChipSpec& chip) {
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(dtype)];
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(rate));
}

double dma_nanoseconds(std::int64_t bytes, std::int64_t row_bytes, const KernelSpec& spec,
                       const config::ChipSpec& chip) {
  if (bytes == 0) return 0;
  const double packet = static_cast<double>(chip.dma.packet.count());
  const double bus = static_cast<double>(chip.dma.bus_rate.count());
  const double plateau = static_cast<double>(chip.dma.plateau_rate.count());
  const double overhead = seconds_rate_ns(packet, plateau) - seconds_rate_ns(packet, bus);
  const double packets = static_cast<double>(bytes) /
                         static_cast<double>(std::max<std::int64_t>(1, row_bytes)) *
                         std::ceil(static_cast<double>(row_bytes) / packet);
  const double engines = static_cast<double>(chip.dma.engines);
  const double moved =
      (seconds_rate_ns(static_cast<double>(bytes), bus) + packets * overhead) / engines;
  // Cores that share a stack share its bandwidth.
  const double share = kHbmShare * static_cast<double>(chip.hbm.bandwidth.count()) /
                       static_cast<double>(chip.stacks * spec.cores);
  return std::max(moved, seconds_rate_ns(static_cast<double>(bytes), share));
}

Costs costs_of(const KernelSpec& spec, const config::ChipSpec& chip) {
  Costs costs{};
  costs.spec = &spec;
  costs.chip = &chip;
  costs.eviction = eviction_of(spec);
  costs.pack = contraction_pack(spec.in, chip);
  costs.tile_max = chip.tensor.moving_max;
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(spec.in)];
  costs.passes = rate < 1.0 ? 1.0 / rate : 1.0;
  costs.tensor_ghz = static_cast<double>(chip.tensor.clock.count()) * 1e-9;
  const auto& e = costs.eviction;
  const double vector = static_cast<double>(e.vector.size());
  const double scalar = static_cast<double>(e.scalar.size());
  costs.evict_cycles_per_column = e.staged() ? std::max(vector, scalar) : 0.5;
  return costs;
}

double tensor_cycles(const GemmShape& shape, bool stationary_a, const Costs& costs) {
  const std::int64_t s = stationary_a ? shape.m : shape.n;
  const std::int64_t v = stationary_a ? shape.n : shape.m;
  const std::int64_t k_tiles = ceil_divide(ceil_divide(shape.k, costs.pack), kLanes);
  const std::int64_t rest = v % costs.tile_max;
  const std::int64_t shortest = costs.chip->tensor.min_interval_cycles;
  const std::int64_t columns = v - rest + (rest > 0 ? std::max(rest, shortest) : 0);
  const std::int64_t overhead =
      ceil_divide(v, costs.tile_max) * costs.chip->tensor.matmul_overhead_cycles;
  return static_cast<double>(shape.batch * ceil_divide(s, kLanes) * k_tiles) *
         (static_cast<double>(columns) * costs.passes + static_cast<double>(overhead));
}

Extents extents_of(const GemmShape& shape, const GemmMapping& map) {
  const bool outer_is_a = map.stationary_a == map.outer_stationary;
  return outer_is_a ? Extents{shape.m, shape.n} : Extents{shape.n, shape.m};
}

Traffic traffic_of(const GemmShape& shape, const GemmMapping& map, const Costs& costs) {
  const auto [outer, inner] = extents_of(shape, map);
  const std::int64_t rows = ceil_divide(shape.k, costs.pack) * shape.batch;
  const std::int64_t outer_times = map.outer_resident ? 1 : ceil_divide(inner, map.inner_block);
  const std::int64_t inner_times = ceil_divide(outer, map.outer_block);
  const std::int64_t results = shape.m * shape.n * shape.batch;
  const Eviction& e = costs.eviction;
  Traffic t{};
  t.outer = rows * costs.column_bytes(outer) * outer_times;
  t.inner = rows * costs.column_bytes(inner) * inner_times;
  t.store = e.stored_bytes(costs.spec->out, results);
  for (const auto& x : e.extras)
    t.extra += base::storage_bytes(x.dtype, scaled(results, x.num, x.den));
  return t;
}

std::int64_t sbuf_bytes(GemmMapping& map, std::int64_t stationary_block, std::int64_t moving_block,
                        const Costs& costs) {
  const std::int64_t width = std::min(moving_block, map.sub_moving * costs.tile_max);
  const Eviction& e = costs.eviction;
  std::int64_t bytes = map.chunk_tiles * (map.outer_ring * costs.column_bytes(map.outer_block) +
                                          map.inner_ring * costs.column_bytes(map.inner_block));
  bytes += map.output_ring * e.stored_bytes(costs.spec->out, width);
  map.extra_ring = 0;
  if (!e.extras.empty()) {
    // Loads of a block's extra operands are issued behind its panels: two blocks must fit.
    map.extra_ring = 2 * ceil_divide(stationary_block, kLanes) *
                     ceil_divide(moving_block, map.sub_moving * costs.tile_max);
    for (const auto& x : e.extras) {
      bytes += map.extra_ring * base::storage_bytes(x.dtype, scaled(width, x.num, x.den));
    }
  }
  if (e.staged() && !e.scalar.empty()) {  // results between ScalarE and VectorE
    bytes += costs.chip->psum.banks * costs.tile_max * 2;
  }
  return bytes;
}

void predict(GemmMapping& map, const GemmShape& shape, const Costs& costs) {
  const auto [outer, inner] = extents_of(shape, map);
  const Traffic t = traffic_of(shape, map, costs);
  const KernelSpec& spec = *costs.spec;
  const auto dma = [&](std::int64_t bytes, std::int64_t row) {
    return dma_nanoseconds(bytes, row, spec, *costs.chip);
  };
  const bool outer_a = map.stationary_a == map.outer_stationary;
  const auto row_of = [&](std::int64_t width, bool is_a) {
    return costs.column_bytes(width) *
           rows_together(width, is_a ? spec.m : spec.n, map.chunk_tiles, shape.k, costs.pack);
  };
  const std::int64_t outer_row = row_of(std::min(map.outer_block, outer), outer_a);
  const std::int64_t inner_row = row_of(std::min(map.inner_block, inner), !outer_a);
  const std::int64_t store_row = base::storage_bytes(
      spec.out,
      scaled(std::min(map.stationary_a ? shape.n : shape.m, map.sub_moving * costs.tile_max),
             costs.eviction.stores.back().num, costs.eviction.stores.back().den));
  const double outer_ns = dma(t.outer, outer_row);
  const double inner_ns = dma(t.inner, inner_row);
  const double store_ns = dma(t.store + t.extra, store_row);
  map.dma_ns = outer_ns + inner_ns + store_ns;
  map.tensor_ns = tensor_cycles(shape, map.stationary_a, costs) / costs.tensor_ghz;
  const double vector_ghz = static_cast<double>(costs.chip->vector.clock.count()) * 1e-9;
  map.evict_ns = costs.evict_cycles_per_column / vector_ghz *
                 static_cast<double>(shape.batch * (map.stationary_a
                                                        ? ceil_divide(shape.m, kLanes) * shape.n
                                                        : ceil_divide(shape.n, kLanes) * shape.m));

  const double outer_blocks =
      static_cast<double>(shape.batch * ceil_divide(outer, map.outer_block));
  const double blocks = outer_blocks * static_cast<double>(ceil_divide(inner, map.inner_block));
  const double compute = std::max(map.tensor_ns, map.evict_ns) / blocks;
  const double outer_loads = map.outer_resident ? outer_blocks : blocks;
  const std::int64_t chunks =
      ceil_divide(ceil_divide(ceil_divide(shape.k, costs.pack), kLanes), map.chunk_tiles);
  // A queue starts one transfer per issue interval.
  const double issue = static_cast<double>(costs.chip->dma.issue_interval.count()) * 1e-6 *
                       static_cast<double>(chunks);
  const double panel = std::max(inner_ns / blocks, issue);
  const double first = std::max(outer_ns / outer_loads, issue) + panel + store_ns / blocks;
  const double rest =
      (map.outer_resident ? panel : first) + (map.outer_resident ? store_ns / blocks : 0);
  // A ring of less than two panels prefetches only its surplus; the rest arrives during one
  // sub-block.
  const double sub_blocks = std::max(
      1.0,
      std::ceil(static_cast<double>(map.outer_block) /
                static_cast<double>((map.outer_stationary ? map.sub_stationary * kLanes
                                                          : map.sub_moving * costs.tile_max))) *
          std::ceil(static_cast<double>(map.inner_block) /
                    static_cast<double>(map.outer_stationary ? map.sub_moving * costs.tile_max
                                                             : map.sub_stationary * kLanes)));
  const double surplus =
      std::min(1.0, static_cast<double>(map.inner_ring - chunks) / static_cast<double>(chunks));
  const double late =
      sub_blocks <= 1.0
          ? 0.0
          : std::max(0.0, panel * (1.0 - std::max(0.0, surplus)) - compute / sub_blocks);
  const std::int64_t chunk_rows =
      std::min(map.chunk_tiles * kLanes, ceil_divide(shape.k, costs.pack));
  const double lead = dma(chunk_rows * costs.column_bytes(map.outer_block), outer_row) +
                      dma(chunk_rows * costs.column_bytes(map.inner_block), inner_row);
  // The first panels arrive while the first sub-block runs.
  const double start = std::max(lead, outer_ns / outer_loads + panel - compute / sub_blocks);
  map.total_ns = outer_blocks * std::max(compute, first) +
                 (blocks - outer_blocks) * std::max(compute, rest) + blocks * late + start;
  map.traffic_bytes = t.outer + t.inner + t.store + t.extra;
}

}  // namespace trn3sim::compile
