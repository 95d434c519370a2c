// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_costs.hpp"

#include <algorithm>
#include <cmath>

#include "trn3sim/models/engine_cost.hpp"

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kMiddleRing = 2;  // chunks between a transpose and a conversion
// Share of the DMA plateau rate that planning counts on. HBM bandwidth is left out on purpose, so
// that runs that differ in it compare the same mappings.
constexpr double kPlannedShare = 0.8;

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

std::int64_t contraction_pack(const KernelSpec& spec, const config::ChipSpec& chip) {
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(spec.in)];
  const std::int64_t sparse = spec.sparse_block > 0 && (spec.a_weight || spec.b_weight)
                                  ? spec.sparse_block / spec.sparse_kept
                                  : 1;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(rate)) * sparse;
}

std::int64_t panel_bytes(const GemmOperand& operand, const GemmMapping& map, std::int64_t k,
                         std::int64_t width, std::int64_t pack) {
  if (!operand.transpose) return ceil_divide(k, pack) * operand.hbm_bytes(width * pack);
  const std::int64_t chunk = map.chunk_tiles * kLanes * pack;
  return width * (k / chunk * operand.hbm_bytes(chunk) + operand.hbm_bytes(k % chunk));
}

std::int64_t panel_row(const GemmOperand& operand, const GemmMapping& map, std::int64_t k,
                       std::int64_t width, std::int64_t full_width, std::int64_t pack) {
  if (operand.transpose) return operand.hbm_bytes(std::min(k, map.chunk_tiles * kLanes * pack));
  return operand.hbm_bytes(width * pack) *
         rows_together(width, full_width, map.chunk_tiles, k, pack);
}

double dma_nanoseconds(std::int64_t bytes, std::int64_t row_bytes, const config::ChipSpec& chip) {
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
  const double share = kPlannedShare * plateau * engines;
  return std::max(moved, seconds_rate_ns(static_cast<double>(bytes), share));
}

Costs costs_of(const KernelSpec& spec, const config::ChipSpec& chip) {
  Costs costs{};
  costs.spec = &spec;
  costs.chip = &chip;
  costs.eviction = eviction_of(spec);
  costs.a = operand_of(spec, true);
  costs.b = operand_of(spec, false);
  costs.pack = contraction_pack(spec, chip);
  costs.tile_max = chip.tensor.moving_max;
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(spec.in)];
  costs.passes = rate < 1.0 ? 1.0 / rate : 1.0;
  costs.tensor_ghz = static_cast<double>(chip.tensor.clock.count()) * 1e-9;
  const auto& e = costs.eviction;
  costs.vector_cycles_per_column = e.staged() ? static_cast<double>(e.vector.size()) : 0.5;
  costs.scalar_cycles_per_column = e.staged() ? static_cast<double>(e.scalar.size()) : 0.5;
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
  const std::int64_t outer_times = map.outer_resident ? 1 : ceil_divide(inner, map.inner_block);
  const std::int64_t inner_times = ceil_divide(outer, map.outer_block);
  const std::int64_t results = shape.m * shape.n * shape.batch;
  const Eviction& e = costs.eviction;
  Traffic t{};
  const auto bytes = [&](bool is_outer, std::int64_t width, std::int64_t block) {
    const GemmOperand& o = costs.operand(map, is_outer);
    const auto panel = [&](std::int64_t w) { return panel_bytes(o, map, shape.k, w, costs.pack); };
    return shape.batch *
           (width / block * panel(block) + (width % block ? panel(width % block) : 0));
  };
  t.outer = bytes(true, outer, map.outer_block) * outer_times;
  t.inner = bytes(false, inner, map.inner_block) * inner_times;
  t.store = e.stored_bytes(costs.spec->out, results);
  for (const auto& x : e.extras)
    t.extra += base::storage_bytes(x.dtype, scaled(results, x.num, x.den));
  return t;
}

// Operands as they are loaded, and between a transpose and a conversion.
std::int64_t prepare_bytes(const GemmMapping& map, const Costs& costs) {
  std::int64_t bytes = 0;
  for (const bool outer : {true, false}) {
    const GemmOperand& o = costs.operand(map, outer);
    if (!o.prepared()) continue;
    const std::int64_t width = outer ? map.outer_block : map.inner_block;
    const std::int64_t rows = o.transpose ? round_up(width, kLanes) : width;
    bytes += map.raw_ring * map.chunk_tiles * o.hbm_bytes(rows * costs.pack);
    if (o.transpose && o.convert) {
      bytes += kMiddleRing * map.chunk_tiles * o.hbm_bytes(width * costs.pack);
    }
  }
  return bytes;
}

std::int64_t sbuf_bytes(GemmMapping& map, std::int64_t stationary_block, std::int64_t moving_block,
                        const Costs& costs) {
  const std::int64_t width = std::min(moving_block, map.sub_moving * costs.tile_max);
  const Eviction& e = costs.eviction;
  std::int64_t bytes = prepare_bytes(map, costs);
  bytes += map.chunk_tiles *
           (map.outer_ring * costs.operand(map, true).sbuf_bytes(map.outer_block * costs.pack) +
            map.inner_ring * costs.operand(map, false).sbuf_bytes(map.inner_block * costs.pack));
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

namespace {

// Work on operands after their loads, of the busiest core.
struct Preparation {
  double tensor_ns = 0, scalar_ns = 0, vector_ns = 0;  // busy times
  double first_ns = 0;  // of the first block, which hides behind nothing
};

Preparation preparation_of(const GemmMapping& map, const GemmShape& shape, const Costs& costs) {
  Preparation p;
  const config::ChipSpec& chip = *costs.chip;
  const double lane_ghz = static_cast<double>(chip.vector.clock.count()) * 1e-9;
  const auto [outer, inner] = extents_of(shape, map);
  for (const bool is_outer : {true, false}) {
    const GemmOperand& o = costs.operand(map, is_outer);
    if (!o.prepared()) continue;
    const std::int64_t width = is_outer ? outer : inner;
    const std::int64_t block = std::min(width, is_outer ? map.outer_block : map.inner_block);
    const std::int64_t times =
        shape.batch * (is_outer ? (map.outer_resident ? 1 : ceil_divide(inner, map.inner_block))
                                : ceil_divide(outer, map.outer_block));
    const double loads =
        static_cast<double>(times) * static_cast<double>(width) / static_cast<double>(block);
    double first = 0;
    if (o.transpose) {
      const auto tiles =
          static_cast<double>(ceil_divide(block, kLanes) * ceil_divide(shape.k, kLanes));
      const double copy = tiles * kLanes / 2 / lane_ghz;  // two elements per cycle out of PSUM
      p.scalar_ns += loads * copy;
      if (!chip.tensor.background_transpose)
        p.tensor_ns += loads * tiles * kLanes / costs.tensor_ghz;
      first = copy;
    }
    if (o.convert) {
      const auto columns = static_cast<double>(ceil_divide(shape.k, kLanes) * block);
      models::Instruction cast;
      cast.dtype = o.array;
      const auto speed = static_cast<double>(models::copy_speedup(cast, chip.vector));
      const double convert = columns / speed / lane_ghz;
      p.vector_ns += loads * convert;
      first = std::max(first, convert);
    }
    p.first_ns += first;
  }
  return p;
}

}  // namespace

void predict(GemmMapping& map, const GemmShape& shape, const Costs& costs) {
  const auto [outer, inner] = extents_of(shape, map);
  const Traffic t = traffic_of(shape, map, costs);
  const KernelSpec& spec = *costs.spec;
  const auto dma = [&](std::int64_t bytes, std::int64_t row) {
    return dma_nanoseconds(bytes, row, *costs.chip);
  };
  const bool outer_a = map.stationary_a == map.outer_stationary;
  const auto row_of = [&](std::int64_t width, bool is_a) {
    return panel_row(is_a ? costs.a : costs.b, map, shape.k, width, is_a ? spec.m : spec.n,
                     costs.pack);
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
  const double columns = static_cast<double>(
      shape.batch * (map.stationary_a ? ceil_divide(shape.m, kLanes) * shape.n
                                      : ceil_divide(shape.n, kLanes) * shape.m));
  const Preparation prepare = preparation_of(map, shape, costs);
  map.tensor_ns += prepare.tensor_ns;
  map.evict_ns =
      std::max(costs.scalar_cycles_per_column * columns / vector_ghz + prepare.scalar_ns,
               costs.vector_cycles_per_column * columns / vector_ghz + prepare.vector_ns);

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
  const std::int64_t chunk_k = std::min(map.chunk_tiles * kLanes * costs.pack, shape.k);
  const auto chunk = [&](bool is_outer, std::int64_t width) {
    return panel_bytes(costs.operand(map, is_outer), map, chunk_k, width, costs.pack);
  };
  const double lead =
      dma(chunk(true, map.outer_block), outer_row) + dma(chunk(false, map.inner_block), inner_row);
  // The first panels arrive while the first sub-block runs.
  const double start = costs.prepared()
                           ? std::max(prepare.first_ns, outer_ns / outer_loads + panel) + lead
                           : std::max(lead, outer_ns / outer_loads + panel - compute / sub_blocks);
  map.total_ns = outer_blocks * std::max(compute, first) +
                 (blocks - outer_blocks) * std::max(compute, rest) + blocks * late + start;
  map.traffic_bytes = t.outer + t.inner + t.store + t.extra;
}

}  // namespace trn3sim::compile
