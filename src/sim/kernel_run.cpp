// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/kernel_run.hpp"

#include <algorithm>
#include <map>
#include <systemc>
#include <tuple>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/energy.hpp"
#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/semaphore_names.hpp"
#include "trn3sim/modules/context.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

#include <fmt/format.h>

namespace trn3sim::sim {
namespace {

using models::Engine;

static_assert(stats::kKernelEngines == models::kEngines);

double flop_of(const compile::KernelSpec& spec) {
  const auto product = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
  switch (spec.kind) {
    case compile::KernelKind::Gemm:
      return 2 * product(spec.batch, spec.m, spec.n, spec.k);
    case compile::KernelKind::AttentionForward:
    case compile::KernelKind::AttentionBackward: {
      const double scores = product(spec.batch, spec.heads, spec.sq, spec.skv, spec.d);
      const double products = spec.kind == compile::KernelKind::AttentionForward ? 4 : 8;
      return scores * products / (spec.causal ? 2 : 1);
    }
    case compile::KernelKind::Vector:
    case compile::KernelKind::Scan:
    case compile::KernelKind::Copy:
      break;
  }
  return 0;
}

// Executions of one opcode in the whole program.
std::int64_t executions(const models::TileProgram& program, models::Opcode op) {
  std::int64_t count = 0;
  for (const models::CoreProgram& core : program.cores)
    for (const auto& stream : core.streams) {
      const std::vector<std::int64_t> times = models::execution_counts(program, stream);
      for (std::size_t i = 0; i < times.size(); ++i)
        if (program.instructions[i].op == op) count += times[i];
    }
  return count;
}

// Dynamic energy of the kernel and its cores' share of what the chip takes anyway.
base::EnergyAccounts energy_of(const config::ChipSpec& chip, models::EventCounts counts,
                               const models::ClusterRun& run, std::int64_t cores) {
  counts.hbm_activates = run.hbm_activates;
  const std::int64_t refreshes = models::HbmStack(chip.hbm, chip.stacks).refreshes(run.duration);
  counts.hbm_refreshes = refreshes * cores / chip.cores_per_stack();
  base::EnergyAccounts all = models::dynamic_energy(counts, chip.energy);
  base::EnergyAccounts fixed =
      models::static_energy(chip, run.duration, run.compute_active * chip.cores);
  for (base::Energy& e : fixed.of) e = base::Energy(e.count() * cores / chip.cores);
  all += fixed;
  models::add_regulator_loss(all, chip.energy);
  return all;
}

stats::KernelBounds bounds_of(const config::ChipSpec& chip, const models::EventCounts& counts,
                              const models::ClusterRun& run, std::int64_t cores) {
  stats::KernelBounds b;
  b.tensor_fs = models::tensor_ideal_time(counts, chip).count() / cores;
  for (const Engine e : {Engine::Vector, Engine::Scalar, Engine::Gpsimd})
    b.vector_fs =
        std::max(b.vector_fs, run.engine_busy[static_cast<std::size_t>(e)].count() / cores);
  const base::Bytes bytes(counts.hbm_read_bytes + counts.hbm_write_bytes);
  const base::Rate engines(chip.dma.plateau_rate.count() * chip.dma.engines * cores);
  b.dma_fs = base::transfer_time(bytes, engines).count();
  b.hbm_fs =
      base::transfer_time(bytes, base::Rate(chip.hbm.bandwidth.count() / chip.stacks)).count();
  return b;
}

}  // namespace

struct KernelRun::Impl {
  explicit Impl(const config::ChipSpec& spec) : chip(spec), cluster("kernel", spec, context) {}

  void fill(stats::KernelResults& out, const models::TileProgram& program) const;
  void add_stalls(stats::KernelResults& out, const models::TileProgram& program) const;
  void add_activity(stats::Timeline& timeline, const models::TileProgram& program) const;

  const config::ChipSpec& chip;
  modules::Context context;
  modules::StackCluster cluster;
};

void KernelRun::Impl::fill(stats::KernelResults& out, const models::TileProgram& program) const {
  const models::ClusterRun run = cluster.result();
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  const models::EventCounts counts = models::program_counts(program, chip);
  TRN3SIM_CHECK(counts.hbm_read_bytes == run.hbm_read_bytes &&
                    counts.hbm_write_bytes == run.hbm_write_bytes,
                "the stack must move exactly the bytes of the program");
  out.chip = chip.name;
  out.cores = cores;
  out.time_fs = run.duration.count();
  for (std::size_t e = 0; e < models::kEngines; ++e)
    out.active_fs[e] = run.engine_active[e].count() / cores;
  out.dma_active_fs = run.dma_active.count();
  out.hbm_read_bytes = run.hbm_read_bytes;
  out.hbm_write_bytes = run.hbm_write_bytes;
  out.spill_save_bytes = counts.spill_save_bytes;
  out.spill_reload_bytes = counts.spill_reload_bytes;
  out.matmuls = executions(program, models::Opcode::MultiplyMoving);
  out.transposes = executions(program, models::Opcode::Transpose);
  out.transfers = executions(program, models::Opcode::DmaStart);
  out.instructions = run.instructions;
  out.sbuf_bytes_per_partition = program.sbuf_bytes_per_partition;
  out.sbuf_usable_per_partition = chip.sbuf.usable_per_partition.count();
  out.psum_banks = program.psum_banks;
  out.psum_banks_there = chip.psum.banks;
  out.energy = energy_of(chip, counts, run, cores);
  out.bounds = bounds_of(chip, counts, run, cores);
}

void KernelRun::Impl::add_stalls(stats::KernelResults& out,
                                 const models::TileProgram& program) const {
  std::vector<std::vector<std::string>> signallers;
  for (const models::CoreProgram& core : program.cores)
    signallers.push_back(models::semaphore_signallers(program, core));
  std::map<std::pair<std::size_t, std::string>, std::int64_t> by_cause;
  for (const models::EngineWait& w : cluster.waits())
    by_cause[{w.engine, signallers[w.core][w.semaphore]}] += w.time.count();
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  for (const auto& [cause, time] : by_cause)
    out.stalls.push_back(
        {std::string(stats::kKernelEngineNames[cause.first]), cause.second, time / cores});
  const auto engine_order = [](const stats::KernelStall& s) {
    return std::ranges::find(stats::kKernelEngineNames, s.engine) -
           stats::kKernelEngineNames.begin();
  };
  std::stable_sort(out.stalls.begin(), out.stalls.end(), [&](const auto& a, const auto& b) {
    return std::tuple(engine_order(a), -a.time_fs) < std::tuple(engine_order(b), -b.time_fs);
  });
}

// Slices of one track must not overlap: the transfers of a ring start in order, so one is shown
// from the end of the one before at the earliest.
void KernelRun::Impl::add_activity(stats::Timeline& timeline,
                                   const models::TileProgram& program) const {
  std::map<std::pair<std::size_t, std::int32_t>, std::int32_t> tracks;  // queues: 100 + queue
  std::vector<stats::Timeline::Slice> slices;
  std::map<std::int32_t, base::Time> last;
  constexpr std::int32_t kQueues = 100;
  for (const models::Activity& a : cluster.activity()) {
    const models::DmaTransfer* const t =
        a.transfer < 0 ? nullptr : &program.transfers[static_cast<std::size_t>(a.transfer)];
    const std::int32_t key = a.engine >= 0 ? a.engine : kQueues + t->queue;
    const auto [it, added] = tracks.try_emplace({a.core, key}, -1);
    if (added)
      it->second = timeline.add_track(
          {0, static_cast<std::int64_t>(a.core),
           a.engine >= 0
               ? std::string(stats::kKernelEngineNames[static_cast<std::size_t>(a.engine)])
               : fmt::format("DMA queue {}", t->queue),
           a.engine >= 0});
    stats::Timeline::Slice s;
    s.track = it->second;
    s.name = timeline.name_id(a.engine >= 0 ? std::string(models::name(a.op))
                                            : models::transfer_name(program, *t));
    s.op = s.name;
    s.block = timeline.name_id("kernel");
    s.bytes = a.engine >= 0 ? 0 : t->bytes();
    base::Time& before = last[s.track];
    s.start = std::max(a.start, before);
    s.end = before = std::max(a.end, s.start);
    slices.push_back(std::move(s));
  }
  std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return std::tie(a.end, a.track) < std::tie(b.end, b.track);
  });
  for (stats::Timeline::Slice& s : slices) timeline.slice(std::move(s));
}

KernelRun::KernelRun(const config::ChipSpec& chip) : impl_(std::make_unique<Impl>(chip)) {}

KernelRun::~KernelRun() = default;

stats::KernelResults KernelRun::run(const compile::KernelSpec& spec,
                                    const models::TileProgram& program, stats::Timeline* timeline) {
  Impl& impl = *impl_;
  impl.cluster.record(
      timeline == nullptr ? 0 : static_cast<std::size_t>(timeline->spec().limit) + 1);
  impl.context.restart();
  impl.cluster.load(program, base::Rate(0));
  impl.cluster.arm({});
  sc_core::sc_start();
  stats::KernelResults out;
  out.kernel = spec.label();
  out.flop = flop_of(spec);
  impl.fill(out, program);
  if (out.matmuls > 0) {
    out.dtype = base::name(spec.in);
    const config::TensorSpec& t = impl.chip.tensor;
    out.peak_flops = 2.0 * static_cast<double>(t.rows * t.columns * out.cores) *
                     static_cast<double>(t.clock.count()) *
                     t.macs_per_pe_cycle[static_cast<std::size_t>(spec.in)];
    if (spec.sparse_block > 0)  // of the dense product
      out.peak_flops *= static_cast<double>(spec.sparse_block / spec.sparse_kept);
  }
  impl.add_stalls(out, program);
  if (timeline != nullptr) impl.add_activity(*timeline, program);
  return out;
}

}  // namespace trn3sim::sim
