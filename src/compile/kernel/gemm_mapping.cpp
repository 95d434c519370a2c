// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_mapping.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "trn3sim/base/error.hpp"

namespace trn3sim::compile {
namespace {

using base::DType;

constexpr std::int64_t kLanes = 128;
constexpr double kHbmShare = 0.7;  // of the raw rate that mixed streams get, for planning only
constexpr double kStoreIssueNs = 2 * 860;  // two DMA issue intervals of a queue

struct Ratio {
  std::int64_t num = 1, den = 1;
};

Ratio ratio(std::int64_t num, std::int64_t den) {
  const std::int64_t g = std::gcd(num, den);
  return g == 0 ? Ratio{0, 1} : Ratio{num / g, den / g};
}

// Sizes and rates that do not depend on the blocks.
struct Costs {
  const KernelSpec* spec;
  const config::ChipSpec* chip;
  Eviction eviction;
  std::int64_t pack, tile_max;
  double passes;  // array passes of a contraction tile (4 for fp32)
  double tensor_ghz;
  double evict_cycles_per_column;  // of the busiest eviction engine, per 128-row column

  [[nodiscard]] std::int64_t column_bytes(std::int64_t width) const {
    return base::storage_bytes(spec->in, width * pack);
  }
};

double seconds_rate_ns(double bytes, double bytes_per_second) {
  return bytes / bytes_per_second * 1e9;
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

// Array cycles of one core's share.
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

struct Extents {
  std::int64_t outer, inner;  // free sizes of the busiest core
};

Extents extents_of(const GemmShape& shape, const GemmMapping& map) {
  const bool outer_is_a = map.stationary_a == map.outer_stationary;
  return outer_is_a ? Extents{shape.m, shape.n} : Extents{shape.n, shape.m};
}

struct Traffic {
  std::int64_t outer, inner, store, extra;  // bytes of one core
};

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

// SBUF bytes per partition; sets the rings of rows.
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

// Predicted time of the busiest core: blocks overlap their loads with the previous block.
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

bool better(const GemmMapping& a, const GemmMapping& b) {
  // Times within 0.2 % count as equal: then the mapping with less traffic is better.
  if (a.total_ns < b.total_ns * 0.998) return true;
  if (b.total_ns < a.total_ns * 0.998) return false;
  if (a.traffic_bytes != b.traffic_bytes) return a.traffic_bytes < b.traffic_bytes;
  return a.sbuf_bytes_per_partition < b.sbuf_bytes_per_partition;
}

// The ways to divide the work: even shares, or shares of whole stationary tiles.
std::vector<GemmMapping> splits(const KernelSpec& spec) {
  std::vector<GemmMapping> out;
  const auto add = [&](GemmSplit split, std::int64_t size, std::int64_t unit) {
    GemmMapping map;
    map.split = split;
    const std::int64_t units = ceil_divide(size, unit);
    for (std::int64_t c = 0; c < spec.cores; ++c) {
      const std::int64_t begin = std::min(size, units * c / spec.cores * unit);
      const std::int64_t end = std::min(size, units * (c + 1) / spec.cores * unit);
      GemmShape shape{spec.m, spec.n, spec.k, spec.batch};
      (split == GemmSplit::M   ? shape.m
       : split == GemmSplit::N ? shape.n
                               : shape.batch) = end - begin;
      map.shapes.push_back(shape);
    }
    std::ranges::sort(map.shapes, std::greater<>());
    out.push_back(map);
  };
  if (spec.cores == 1) {
    add(GemmSplit::Batch, spec.batch, 1);
    out.back().split = GemmSplit::None;
    return out;
  }
  for (const std::int64_t unit : {std::int64_t{32}, kLanes, std::int64_t{1}}) {
    add(GemmSplit::N, spec.n, unit);
    add(GemmSplit::M, spec.m, unit);
  }
  if (spec.batch >= spec.cores) add(GemmSplit::Batch, spec.batch, 1);
  return out;
}

// Tries block sizes and rings for one division and orientation.
void search(GemmMapping map, const Costs& costs, std::optional<GemmMapping>& best) {
  const GemmShape shape = map.shapes.front();
  const auto [outer, inner] = extents_of(shape, map);
  const std::int64_t half = std::max<std::int64_t>(1, costs.chip->psum.banks / 2);
  const std::int64_t k_tiles = ceil_divide(ceil_divide(shape.k, costs.pack), kLanes);
  for (const std::int64_t outer_block : {128, 256, 512, 1024, 2048}) {
    if (outer_block > 128 && outer_block / 2 >= outer) continue;
    for (const std::int64_t inner_block : {128, 256, 512, 1024, 2048}) {
      if (inner_block > 128 && inner_block / 2 >= inner) continue;
      map.outer_block = std::min(outer_block, outer);
      map.inner_block = std::min(inner_block, inner);
      const std::int64_t s = map.outer_stationary ? map.outer_block : map.inner_block;
      const std::int64_t v = map.outer_stationary ? map.inner_block : map.outer_block;
      map.sub_moving =
          std::min<std::int64_t>(std::min<std::int64_t>(2, half), ceil_divide(v, costs.tile_max));
      map.sub_stationary = std::min(half / map.sub_moving, ceil_divide(s, kLanes));
      // Sub-blocks that take less than two issue intervals per row are stored by one transfer.
      const double row_ns =
          static_cast<double>(k_tiles * std::min(v, map.sub_moving * costs.tile_max)) *
          costs.passes / costs.tensor_ghz;
      map.merge_stores = row_ns < kStoreIssueNs && map.sub_stationary > 1;
      map.output_ring = map.merge_stores ? 3 * map.sub_stationary : 4;
      const bool one_sub = map.sub_moving * costs.tile_max >= v && map.sub_stationary * kLanes >= s;
      for (const std::int64_t chunk : {1, 2, 4, 8}) {
        if (chunk > 1 && chunk / 2 >= k_tiles) continue;
        map.chunk_tiles = std::min(chunk, k_tiles);
        const std::int64_t chunks = ceil_divide(k_tiles, map.chunk_tiles);
        const std::int64_t least =
            kLanes * map.chunk_tiles *
            std::min(costs.column_bytes(map.outer_block), costs.column_bytes(map.inner_block));
        if (least < (128 << 10) && chunk < 8 && map.chunk_tiles < k_tiles) continue;
        for (const bool resident : {true, false}) {
          map.outer_resident = resident;
          const bool outer_streams = one_sub && (!resident || inner <= map.inner_block);
          for (const int depth : {2, 1}) {
            const auto ring = [&](bool streams) {
              if (streams)
                return std::min<std::int64_t>(2 * chunks, depth == 2 ? 8 : 4) +
                       (chunks == 1 ? 1 : 0);
              return depth == 2 ? 2 * chunks : chunks + std::min<std::int64_t>(chunks, 2);
            };
            map.outer_ring = ring(outer_streams);
            map.inner_ring = ring(one_sub);
            map.sbuf_bytes_per_partition = sbuf_bytes(map, s, v, costs);
            if (map.sbuf_bytes_per_partition > costs.chip->sbuf.usable_per_partition.count())
              continue;
            predict(map, shape, costs);
            map.traffic_bytes = 0;
            for (const GemmShape& part : map.shapes) {
              if (part.m * part.n * part.batch == 0) continue;
              const Traffic t = traffic_of(part, map, costs);
              map.traffic_bytes += t.outer + t.inner + t.store + t.extra;
            }
            if (!best || better(map, *best)) best = map;
          }
        }
      }
    }
  }
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

std::int64_t contraction_pack(DType dtype, const config::ChipSpec& chip) {
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

std::int64_t Eviction::stored_bytes(DType out, std::int64_t results) const {
  std::int64_t bytes = 0;
  for (const Store& s : stores) bytes += base::storage_bytes(out, scaled(results, s.num, s.den));
  return bytes;
}

Eviction eviction_of(const KernelSpec& spec) {
  Eviction e;
  const std::int64_t results = spec.m * spec.n * spec.batch;
  if (spec.accumulate) {
    e.extras.push_back({spec.out});
    e.vector.push_back({models::Engine::Vector, models::Opcode::TensorTensor});
  }
  std::vector<Ratio> scalar_width(e.scalar.size()), vector_width(e.vector.size());
  bool save = false;
  for (const Epilogue& epilogue : spec.epilogues) {
    const VectorFunction& f = vector_function(epilogue.fn, spec.label());
    save = save || f.saves_input;
    const Ratio r = ratio(epilogue.elems, results);
    for (const Pass& pass : f.passes) {
      const bool scalar = pass.engine == models::Engine::Scalar;
      Pass moved = pass;
      if (!scalar) moved.engine = models::Engine::Vector;
      (scalar ? e.scalar : e.vector).push_back(moved);
      (scalar ? scalar_width : vector_width).push_back(r);
    }
    // The gate and up halves of a silu_mul may both be results of this GEMM.
    const bool halves = epilogue.fn == "silu_mul" && epilogue.elems * 2 <= results;
    for (int i = 1; i < f.inputs && !halves; ++i) e.extras.push_back({spec.in, r.num, r.den});
    if (f.outputs > 0) e.stores.assign(static_cast<std::size_t>(f.outputs), {r.num, r.den});
  }
  if (save) {  // the raw result leaves PSUM first
    e.vector.insert(e.vector.begin(), {models::Engine::Vector, models::Opcode::TensorCopy});
    vector_width.insert(vector_width.begin(), Ratio{});
    e.stores.insert(e.stores.begin(), Eviction::Store{});
  }
  const bool mx = spec.out == DType::Mxfp8 || spec.out == DType::Mxfp4;
  if (mx) {
    e.vector.push_back({models::Engine::Vector, models::Opcode::QuantizeMx});
    vector_width.push_back({e.stores.back().num, e.stores.back().den});
  }
  if (!e.scalar.empty() && e.vector.empty()) {  // the last step is VectorE's
    e.vector.push_back({models::Engine::Vector, models::Opcode::TensorCopy});
    vector_width.push_back({e.stores.back().num, e.stores.back().den});
  }
  if (mx && e.scalar.empty() && e.vector.size() == 1) {  // quantize_mx reads SBUF
    e.scalar.push_back({models::Engine::Scalar, models::Opcode::TensorCopy});
    scalar_width.push_back({});
  }
  for (const auto* widths : {&scalar_width, &vector_width}) {
    for (const Ratio& r : *widths) {
      e.pass_width_num.push_back(r.num);
      e.pass_width_den.push_back(r.den);
    }
  }
  return e;
}

GemmMapping map_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  const Costs costs = costs_of(spec, chip);
  std::optional<GemmMapping> best;
  for (GemmMapping map : splits(spec)) {
    // The array decides the orientation; on a tie A is stationary and C is stored by rows.
    map.stationary_a = tensor_cycles(map.shapes.front(), true, costs) <=
                       tensor_cycles(map.shapes.front(), false, costs);
    for (const bool outer_stationary : {true, false}) {
      map.outer_stationary = outer_stationary;
      search(map, costs, best);
    }
  }
  if (!best) {
    throw base::UserError(spec.label(), "no block sizes fit into " +
                                            std::to_string(chip.sbuf.usable_per_partition.count()) +
                                            " bytes per SBUF partition");
  }
  return *best;
}

}  // namespace trn3sim::compile
