// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "compile/kernel/dry_run.hpp"
#include "compile/kernel/gemm_core.hpp"
#include "compile/kernel/kernels.hpp"
#include "compile/kernel/loop_kernel.hpp"
#include "compile/kernel/mapping_file.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;

const char* name_of(GemmSplit split) {
  switch (split) {
    case GemmSplit::None:
      return "one core";
    case GemmSplit::M:
      return "cores along m";
    case GemmSplit::N:
      return "cores along n";
    case GemmSplit::Batch:
      return "cores along the batch";
  }
  return "";
}

models::TileProgram compile_panels(const KernelSpec& spec, const config::ChipSpec& chip,
                                   const GemmMapping& map) {
  const Eviction eviction = eviction_of(spec);
  models::TileProgram program;
  program.operands = {
      {"a", operand_of(spec, true).hbm_bytes(spec.m * spec.k * spec.batch), spec.a_weight},
      {"b", operand_of(spec, false).hbm_bytes(spec.k * spec.n * spec.batch), spec.b_weight},
      {"c", eviction.stored_bytes(spec.out, spec.m * spec.n * spec.batch), false}};
  for (std::size_t i = spec.accumulate ? 1 : 0; i < eviction.extras.size(); ++i) {
    const auto& x = eviction.extras[i];
    program.operands.push_back(
        {fmt::format("epilogue{}", i),
         base::storage_bytes(x.dtype, scaled(spec.m * spec.n * spec.batch, x.num, x.den)), false});
  }
  program.cores.resize(map.shapes.size());
  for (std::size_t c = 0; c < map.shapes.size(); ++c) {
    const GemmShape& shape = map.shapes[c];
    if (c > 0 && shape == map.shapes[c - 1]) {
      program.cores[c] = program.cores[c - 1];
    } else if (shape.m * shape.n * shape.batch > 0) {
      GemmCore(spec, chip, map, program, program.cores[c]).write(shape);
    }
  }
  program.sbuf_bytes_per_partition = map.sbuf_bytes_per_partition;
  program.psum_banks = std::min(
      chip.psum.banks, (spec.double_accumulators ? 2 : 1) * map.sub_stationary * map.sub_moving +
                           map.transpose_banks);
  return program;
}

}  // namespace

models::TileProgram compile_gemm(const KernelSpec& spec, const config::ChipSpec& chip,
                                 const config::MappingSpec* mapping) {
  if (mapping == nullptr) return compile_panels(spec, chip, map_gemm(spec, chip));
  if (mapping->is_loops()) return compile_loops(spec, chip, *mapping);
  models::TileProgram program = compile_panels(spec, chip, panel_mapping(spec, chip, *mapping));
  if (const std::string stuck = deadlock_of(program); !stuck.empty())
    throw base::UserError(
        mapping->file + ": /panels",
        fmt::format("the kernel would never end: {}. More buffers can mend it", stuck));
  return program;
}

config::MappingSpec chosen_mapping(const KernelSpec& spec, const config::ChipSpec& chip) {
  config::MappingSpec mapping;
  mapping.panels = panels_of(map_gemm(spec, chip));
  return mapping;
}

std::vector<config::MappingSpec> candidate_mappings(const KernelSpec& spec,
                                                    const config::ChipSpec& chip,
                                                    std::size_t count) {
  std::vector<config::MappingSpec> out;
  for (const GemmMapping& map : gemm_candidates(spec, chip, count)) {
    config::MappingSpec mapping;
    mapping.panels = panels_of(map);
    // A file does not say in which units cores share a dimension.
    if (panel_mapping(spec, chip, mapping).shapes == map.shapes || out.empty())
      out.push_back(std::move(mapping));
  }
  return out;
}

std::string describe_gemm(const KernelSpec& spec, const config::ChipSpec& chip,
                          const config::MappingSpec* mapping) {
  if (mapping != nullptr && mapping->is_loops()) return describe_loops(spec, chip, *mapping);
  const GemmMapping map =
      mapping == nullptr ? map_gemm(spec, chip) : panel_mapping(spec, chip, *mapping);
  const auto ns = [](double t) {
    return base::format_time(base::nanoseconds(static_cast<std::int64_t>(t)));
  };
  const bool outer_a = map.stationary_a == map.outer_stationary;
  return fmt::format(
      "{}: {}; {} stationary; blocks of {} {} of {} {}, panels of {} {} of {} in chunks of {} k; "
      "PSUM {}x{} tiles; SBUF {} of {} B per partition; HBM traffic {}; "
      "predicted tensor {}, DMA {}, eviction {}, total {}",
      spec.label(), name_of(map.split), map.stationary_a ? "A" : "B", map.outer_block,
      outer_a ? "m" : "n", outer_a ? "A" : "B", map.outer_resident ? "resident" : "streamed",
      map.inner_block, outer_a ? "n" : "m", outer_a ? "B" : "A",
      map.chunk_tiles * kLanes * contraction_pack(spec, chip), map.sub_stationary, map.sub_moving,
      map.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count(),
      base::format_bytes(base::Bytes(map.traffic_bytes)), ns(map.tensor_ns), ns(map.dma_ns),
      ns(map.evict_ns), ns(map.total_ns));
}

}  // namespace trn3sim::compile
