// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_mapping.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/gemm_costs.hpp"

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kTransposeBanks = 2;  // at least
constexpr std::int64_t kRawRing = 4;         // chunks
constexpr double kStoreIssueNs = 2 * 860;    // two DMA issue intervals of a queue

// Times within `tolerance` of each other count as equal: then the mapping with less traffic is
// better.
bool better(const GemmMapping& a, const GemmMapping& b, double tolerance) {
  if (a.total_ns < b.total_ns * (1 - tolerance)) return true;
  if (b.total_ns < a.total_ns * (1 - tolerance)) return false;
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
// `stream_prepared`: operands that are transposed or converted pass through kStreamRing chunks, in
// blocks of one sub-block, instead of staying as two whole panels.
void search(GemmMapping map, const Costs& costs, bool stream_prepared,
            const std::function<void(const GemmMapping&)>& found) {
  const GemmShape shape = map.shapes.front();
  const auto [outer, inner] = extents_of(shape, map);
  const std::int64_t banks = costs.chip->psum.banks;
  const std::int64_t half =
      std::max<std::int64_t>(1, (costs.transposed() ? banks - kTransposeBanks : banks) / 2);
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
      if (!costs.spec->double_accumulators) map.sub_moving = map.sub_stationary = 1;
      map.transpose_banks =
          costs.transposed() ? banks - 2 * map.sub_moving * map.sub_stationary : 0;
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
        if (stream_prepared && (!one_sub || chunks <= kStreamRing)) continue;
        const std::int64_t least =
            kLanes * map.chunk_tiles *
            std::min(costs.operand(map, true).hbm_bytes(map.outer_block * costs.pack),
                     costs.operand(map, false).hbm_bytes(map.inner_block * costs.pack));
        if (least < (128 << 10) && chunk < 8 && map.chunk_tiles < k_tiles) continue;
        for (const bool resident : {true, false}) {
          map.outer_resident = resident;
          if (stream_prepared && resident && inner > map.inner_block) continue;
          const bool outer_streams = one_sub && (!resident || inner <= map.inner_block);
          for (const int depth : {2, 1, 0}) {
            if ((depth == 0) == costs.spec->streaming_loads) continue;
            if (depth == 1 && costs.prepared()) continue;  // the next block is prepared meanwhile
            const auto ring = [&](bool streams) {
              if (stream_prepared) return kStreamRing;
              if (costs.prepared()) return 2 * chunks;
              if (depth == 0) return streams ? std::int64_t{1} : chunks;
              if (streams)
                return std::min<std::int64_t>(2 * chunks, depth == 2 ? 8 : 4) +
                       (chunks == 1 ? 1 : 0);
              return depth == 2 ? 2 * chunks : chunks + std::min<std::int64_t>(chunks, 2);
            };
            map.raw_ring = costs.prepared()
                               ? std::min<std::int64_t>(depth == 0 ? 1 : kRawRing, 2 * chunks)
                               : 0;
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
            found(map);
          }
        }
      }
    }
  }
}

double tolerance_of(const Costs& costs) {
  return costs.prepared() ? 0.01 : 0.002;
}

// All mappings that fit, in a fixed order.
void search_all(const Costs& costs, bool stream_prepared,
                const std::function<void(const GemmMapping&)>& found) {
  for (GemmMapping map : splits(*costs.spec)) {
    // The array decides the orientation; on a tie A is stationary and C is stored by rows.
    map.stationary_a = tensor_cycles(map.shapes.front(), true, costs) <=
                       tensor_cycles(map.shapes.front(), false, costs);
    // Compressed weights are stationary.
    if (costs.a.block > 1 || costs.b.block > 1) map.stationary_a = costs.a.block > 1;
    for (const bool outer_stationary : {true, false}) {
      map.outer_stationary = outer_stationary;
      search(map, costs, stream_prepared, found);
    }
  }
}

// What makes two mappings different programs, rather than other buffers or chunks of the same.
auto structure(const GemmMapping& map) {
  return std::tuple(map.shapes, map.split, map.stationary_a, map.outer_stationary,
                    map.outer_resident, map.outer_block, map.inner_block);
}

}  // namespace

std::vector<GemmMapping> gemm_candidates(const KernelSpec& spec, const config::ChipSpec& chip,
                                         std::size_t count) {
  const Costs costs = costs_of(spec, chip);
  std::optional<GemmMapping> best;
  std::vector<GemmMapping> others;  // the best of each structure
  const auto found = [&](const GemmMapping& map) {
    if (!best || better(map, *best, tolerance_of(costs))) best = map;
    if (count < 2) return;
    const auto same = std::ranges::find_if(
        others, [&](const GemmMapping& o) { return structure(o) == structure(map); });
    if (same == others.end()) {
      others.push_back(map);
    } else if (better(map, *same, tolerance_of(costs))) {
      *same = map;
    }
  };
  search_all(costs, false, found);
  if (!best && costs.prepared()) search_all(costs, true, found);
  if (!best) {
    throw base::UserError(spec.label(), "no block sizes fit into " +
                                            std::to_string(chip.sbuf.usable_per_partition.count()) +
                                            " bytes per SBUF partition");
  }
  std::vector<GemmMapping> out{*best};
  std::ranges::stable_sort(others, {}, &GemmMapping::total_ns);
  for (const GemmMapping& map : others) {
    if (out.size() < count && structure(map) != structure(*best)) out.push_back(map);
  }
  return out;
}

GemmMapping map_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  return gemm_candidates(spec, chip, 1).front();
}

}  // namespace trn3sim::compile
