// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "compile/kernel/gemm_core.hpp"
#include "compile/kernel/kernels.hpp"
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

}  // namespace

models::TileProgram compile_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  const GemmMapping map = map_gemm(spec, chip);
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

std::string describe_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  const GemmMapping map = map_gemm(spec, chip);
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
