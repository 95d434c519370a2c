// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/mapping_file.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/gemm_costs.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;

GemmSplit split_of(const std::string& name) {
  if (name == "m") return GemmSplit::M;
  if (name == "n") return GemmSplit::N;
  return name == "batch" ? GemmSplit::Batch : GemmSplit::None;
}

std::string name_of(GemmSplit split) {
  switch (split) {
    case GemmSplit::M:
      return "m";
    case GemmSplit::N:
      return "n";
    case GemmSplit::Batch:
      return "batch";
    case GemmSplit::None:
      break;
  }
  return "none";
}

class PanelCheck {
 public:
  PanelCheck(const config::ChipSpec& chip, const config::MappingSpec& mapping, const Costs& costs)
      : chip_(chip), mapping_(mapping), costs_(costs) {}

  void run(GemmMapping& map) {
    const config::PanelMapping& p = mapping_.panels;
    const std::int64_t transposes = costs_.transposed() ? 1 : 0;
    const std::int64_t sets = costs_.spec->double_accumulators ? 2 : 1;
    const std::int64_t banks = sets * p.psum_stationary_tiles * p.psum_moving_tiles;
    if (banks + transposes > chip_.psum.banks)
      wrong("psum_stationary_tiles",
            fmt::format("PSUM needs {} banks ({} x {} tiles x {}{}); {} has {}", banks + transposes,
                        p.psum_stationary_tiles, p.psum_moving_tiles, sets,
                        transposes > 0 ? " + transposes" : "", chip_.name, chip_.psum.banks));
    if (costs_.prepared() && p.raw_buffers == 0)
      wrong("raw_buffers", "is 0; operands are transposed or converted after their load");
    if (p.merge_stores && p.output_buffers < p.psum_stationary_tiles)
      wrong("output_buffers", fmt::format("is {}; merged stores hold {} rows", p.output_buffers,
                                          p.psum_stationary_tiles));
    const std::int64_t s = map.outer_stationary ? map.outer_block : map.inner_block;
    const std::int64_t v = map.outer_stationary ? map.inner_block : map.outer_block;
    map.sbuf_bytes_per_partition = sbuf_bytes(map, s, v, costs_);
    const std::int64_t there = chip_.sbuf.usable_per_partition.count();
    if (map.sbuf_bytes_per_partition > there)
      wrong("outer_block", fmt::format("SBUF needs {} bytes per partition; {} has {}",
                                       map.sbuf_bytes_per_partition, chip_.name, there));
    problems_.throw_if_any();
  }

 private:
  void wrong(const char* key, std::string what) {
    problems_.add(fmt::format("{}: /panels/{}", mapping_.file, key), std::move(what));
  }

  const config::ChipSpec& chip_;
  const config::MappingSpec& mapping_;
  const Costs& costs_;
  base::Problems problems_;
};

}  // namespace

std::vector<GemmShape> split_shapes(const KernelSpec& spec, const std::string& split,
                                    const std::string& place) {
  const GemmSplit along = split_of(split);
  if ((along == GemmSplit::None) != (spec.cores == 1))
    throw base::UserError(place, fmt::format("is \"{}\" with {} core{}; expected {}", split,
                                             spec.cores, spec.cores == 1 ? "" : "s",
                                             spec.cores == 1 ? "\"none\"" : "m, n or batch"));
  std::vector<GemmShape> shapes;
  const std::int64_t size = along == GemmSplit::M   ? spec.m
                            : along == GemmSplit::N ? spec.n
                                                    : spec.batch;
  // Whole tiles, like the compiler's first choice.
  const std::int64_t unit = along == GemmSplit::Batch || size < spec.cores * kLanes ? 1 : 32;
  const std::int64_t units = ceil_divide(size, unit);
  for (std::int64_t c = 0; c < spec.cores; ++c) {
    const std::int64_t begin = std::min(size, units * c / spec.cores * unit);
    const std::int64_t end = std::min(size, units * (c + 1) / spec.cores * unit);
    GemmShape shape{spec.m, spec.n, spec.k, spec.batch};
    (along == GemmSplit::M ? shape.m : along == GemmSplit::N ? shape.n : shape.batch) = end - begin;
    shapes.push_back(shape);
  }
  std::ranges::sort(shapes, std::greater<>());
  return shapes;
}

config::PanelMapping panels_of(const GemmMapping& map) {
  config::PanelMapping p;
  p.split = name_of(map.split);
  p.stationary = std::string(map.stationary_a ? "a" : "b");
  p.outer = std::string(map.stationary_a == map.outer_stationary ? "a" : "b");
  p.outer_resident = map.outer_resident;
  p.outer_block = map.outer_block;
  p.inner_block = map.inner_block;
  p.psum_stationary_tiles = map.sub_stationary;
  p.psum_moving_tiles = map.sub_moving;
  p.chunk_tiles = map.chunk_tiles;
  p.outer_buffers = map.outer_ring;
  p.inner_buffers = map.inner_ring;
  p.raw_buffers = map.raw_ring;
  p.output_buffers = map.output_ring;
  p.merge_stores = map.merge_stores;
  return p;
}

GemmMapping panel_mapping(const KernelSpec& spec, const config::ChipSpec& chip,
                          const config::MappingSpec& mapping) {
  const config::PanelMapping& p = mapping.panels;
  const Costs costs = costs_of(spec, chip);
  GemmMapping map;
  map.split = split_of(p.split);
  map.shapes = split_shapes(spec, p.split, mapping.file + ": /panels/split");
  map.stationary_a = p.stationary == "a";
  map.outer_stationary = (p.outer == "a") == map.stationary_a;
  map.outer_resident = p.outer_resident;
  const auto [outer, inner] = extents_of(map.shapes.front(), map);
  map.outer_block = std::min(p.outer_block, outer);
  map.inner_block = std::min(p.inner_block, inner);
  map.sub_stationary = p.psum_stationary_tiles;
  map.sub_moving = p.psum_moving_tiles;
  map.chunk_tiles = p.chunk_tiles;
  map.outer_ring = p.outer_buffers;
  map.inner_ring = p.inner_buffers;
  map.raw_ring = p.raw_buffers;
  map.output_ring = p.output_buffers;
  map.merge_stores = p.merge_stores;
  PanelCheck(chip, mapping, costs).run(map);
  map.transpose_banks =
      costs.transposed() ? chip.psum.banks - 2 * map.sub_moving * map.sub_stationary : 0;
  predict(map, map.shapes.front(), costs);
  map.traffic_bytes = 0;
  for (const GemmShape& part : map.shapes) {
    if (part.m * part.n * part.batch == 0) continue;
    const Traffic t = traffic_of(part, map, costs);
    map.traffic_bytes += t.outer + t.inner + t.store + t.extra;
  }
  return map;
}

}  // namespace trn3sim::compile
