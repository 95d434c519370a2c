// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles between HBM and SBUF, nothing else: what DMA alone does. Tile i takes ring i modulo the
// number of rings; stores have rings of their own. With loads and stores a tile is stored once it
// has been loaded.
#include "trn3sim/base/error.hpp"

#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;

constexpr std::int64_t kMostQueues = 16;  // semaphores: one per ring and direction

bool loads(const KernelSpec& spec) {
  return spec.fn != "store";
}
bool stores(const KernelSpec& spec) {
  return spec.fn != "load";
}

void check(const KernelSpec& spec, const config::ChipSpec& chip) {
  const std::int64_t rings = spec.batch * (spec.fn == "both" ? 2 : 1);
  const std::int64_t there = std::min(chip.dma.queues_per_engine, kMostQueues);
  if (rings > there)
    throw base::UserError(spec.label(), fmt::format("needs {} DMA queues; a DMA engine of {} has {}",
                                                    rings, chip.name, there));
  if (spec.m > chip.sbuf.partitions)
    throw base::UserError(spec.label(), fmt::format("{} partitions; SBUF of {} has {}", spec.m,
                                                    chip.name, chip.sbuf.partitions));
}

}  // namespace

models::TileProgram compile_copy(const KernelSpec& spec, const config::ChipSpec& chip) {
  check(spec, chip);
  models::TileProgram program;
  const std::int64_t bytes = spec.m * spec.k * spec.n;
  if (loads(spec)) program.operands.push_back({"source", bytes * spec.cores, false});
  if (stores(spec)) program.operands.push_back({"destination", bytes * spec.cores, false});
  program.cores.resize(static_cast<std::size_t>(spec.cores));
  for (models::CoreProgram& core : program.cores) {
    CoreBuilder build(program, core);
    DmaTransfer t;
    t.rows = static_cast<std::int32_t>(spec.m);
    t.row_bytes = static_cast<std::int32_t>(spec.k);
    std::vector<Semaphore> full;
    for (std::int64_t q = 0; q < spec.batch && spec.fn == "both"; ++q)
      full.push_back(build.semaphore());
    const auto queue = [&](std::int64_t q, bool load) {
      t.direction = load ? DmaDirection::HbmToSbuf : DmaDirection::SbufToHbm;
      t.operand = load || !loads(spec) ? 0 : 1;
      t.queue = static_cast<std::int16_t>(load || !loads(spec) ? q : q + spec.batch);
      t.signals = {};
      if (full.empty()) return build.start(Engine::Sync, t);
      const Semaphore loaded = full[static_cast<std::size_t>(q)];
      if (load) add_signal(t, loaded);
      if (load) return build.start(Engine::Sync, t);
      build.start(Engine::Scalar, t, {loaded});
    };
    for (const bool load : {true, false}) {
      if (load ? !loads(spec) : !stores(spec)) continue;
      const Engine engine = load || full.empty() ? Engine::Sync : Engine::Scalar;
      build.loop(engine, spec.n / spec.batch, [&] {
        for (std::int64_t q = 0; q < spec.batch; ++q) queue(q, load);
      });
      for (std::int64_t q = 0; q < spec.n % spec.batch; ++q) queue(q, load);
    }
  }
  // As many tiles as there are rings, twice: the rest is behind them.
  program.sbuf_bytes_per_partition = spec.k * std::min(spec.n, 2 * spec.batch);
  return program;
}

std::string describe_copy(const KernelSpec& spec, const config::ChipSpec& chip) {
  check(spec, chip);
  return fmt::format("{}: {} descriptors of {} B per tile, {} tiles in turn over {} DMA queues",
                     spec.label(), spec.m, spec.k, spec.n, spec.batch);
}

}  // namespace trn3sim::compile
