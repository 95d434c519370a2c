// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/stack_cluster.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/busy_union.hpp"
#include "trn3sim/modules/core.hpp"
#include "trn3sim/modules/dma.hpp"
#include "trn3sim/modules/hbm_controller.hpp"
#include "trn3sim/modules/program_clock.hpp"

#include <fmt/format.h>

namespace trn3sim::modules {

struct StackCluster::Impl {
  Impl(const config::ChipSpec& spec, Context& context, bool reverse);

  void make_dma();
  void make_core(std::size_t index, bool reverse);
  void load(const models::TileProgram& tile_program, base::Rate served_cap);
  void arm(std::function<void()> callback);
  // All streams have ended and DMA is idle: sleeps until the last of their times.
  void maybe_end();
  void end();
  void collect();
  [[nodiscard]] bool lead_in_weights_only() const;

  const config::ChipSpec* chip;
  ProgramClock clock;
  HbmController hbm;
  std::unique_ptr<Dma> dma;
  std::vector<std::unique_ptr<Core>> cores;
  const models::TileProgram* program = nullptr;
  models::BusyUnion active;
  std::function<void()> done;
  sc_core::sc_event end_event;
  bool armed = false, finished = false;
  ClusterRun run;
};

StackCluster::Impl::Impl(const config::ChipSpec& spec, Context& context, bool reverse)
    : chip(&spec),
      clock(context),
      hbm("hbm", spec),
      cores(static_cast<std::size_t>(spec.cores_per_stack())) {
  if (!reverse) make_dma();
  for (std::size_t i = 0; i < cores.size(); ++i)
    make_core(reverse ? cores.size() - 1 - i : i, reverse);
  if (reverse) make_dma();
}

void StackCluster::Impl::make_dma() {
  dma = std::make_unique<Dma>(
      "dma", *chip, clock,
      [this](const models::DmaCompletion& c) {
        cores[std::size_t(c.core)]->complete(program->transfers[std::size_t(c.transfer)], c.at);
      },
      [this] { maybe_end(); });
  dma->memory.bind(hbm);
}

void StackCluster::Impl::make_core(std::size_t index, bool reverse) {
  CoreHooks hooks;
  hooks.dma = [this](const std::vector<models::DmaTrigger>& t) { dma->post(t); };
  hooks.ended = [this] { maybe_end(); };
  hooks.many_intervals = [this] { collect(); };
  cores[index] =
      std::make_unique<Core>(fmt::format("core{}", index).c_str(), *chip,
                             static_cast<std::int32_t>(index), std::move(hooks), reverse);
}

void StackCluster::Impl::load(const models::TileProgram& tile_program, base::Rate served_cap) {
  TRN3SIM_CHECK(!tile_program.cores.empty() && tile_program.cores.size() <= cores.size(),
                fmt::format("a program for {} cores on a stack of {}", tile_program.cores.size(),
                            cores.size()));
  TRN3SIM_CHECK(
      tile_program.sbuf_bytes_per_partition <= chip->sbuf.usable_per_partition.count() &&
          tile_program.psum_banks <= chip->psum.banks,
      fmt::format("a program with {} bytes of SBUF per partition and {} PSUM banks on a core with "
                  "{} and {}",
                  tile_program.sbuf_bytes_per_partition, tile_program.psum_banks,
                  chip->sbuf.usable_per_partition.count(), chip->psum.banks));
  for (const models::CoreProgram& core : tile_program.cores)
    TRN3SIM_CHECK(static_cast<std::int64_t>(core.semaphores.size()) <= chip->sync.semaphores,
                  fmt::format("{} semaphores", core.semaphores.size()));
  program = &tile_program;
  hbm.load(served_cap);
  dma->load(tile_program);
  for (auto& core : cores) core->load(tile_program);
  active.reset();
  end_event.cancel();
  armed = finished = false;
  run = {};
}

void StackCluster::Impl::arm(std::function<void()> callback) {
  TRN3SIM_CHECK(program != nullptr && !armed, "load a program before arm()");
  armed = true;
  done = std::move(callback);
  clock.start();
  for (auto& core : cores) core->start();
  maybe_end();  // a program without instructions
}

void StackCluster::Impl::maybe_end() {
  if (finished || !dma->group().idle()) return;
  base::Time last = dma->last_completion();
  for (const auto& core : cores) {
    if (!core->done()) return;
    for (std::size_t e = 0; e < models::kEngines; ++e) last = std::max(last, core->stream(e).end());
  }
  run.duration = last;
  clock.notify(end_event, last);
}

// Settles the busy intervals up to the time that no stream can go back to.
void StackCluster::Impl::collect() {
  base::Time horizon = base::kTimeMax;
  for (auto& core : cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      models::EngineStream& stream = core->stream(e);
      for (const models::CycleInterval& i : stream.intervals())
        active.add(stream.edges().edge(i.start), stream.edges().edge(i.end));
      stream.intervals().clear();
      horizon = std::min(horizon, std::max(clock.now(), stream.next_busy_bound()));
    }
  active.settle(horizon);
}

bool StackCluster::Impl::lead_in_weights_only() const {
  bool any = false;
  const std::vector<base::Time>& touched = dma->group().first_touch();
  for (std::size_t o = 0; o < touched.size(); ++o) {
    if (touched[o] >= run.first_compute) continue;
    if (!program->operands[o].weight) return false;
    any = true;
  }
  return any;
}

void StackCluster::Impl::end() {
  collect();
  run.first_compute = base::kTimeMax;
  for (auto& core : cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      const models::EngineStream& stream = core->stream(e);
      run.first_compute = std::min(run.first_compute, stream.first_compute());
      run.last_compute = std::max(run.last_compute, stream.last_compute());
      run.engine_busy[e] += stream.busy();
      run.instructions += stream.instructions();
    }
  // Without compute, everything is lead-in.
  if (run.first_compute == base::kTimeMax) run.first_compute = run.last_compute = run.duration;
  run.compute_active = active.total();
  run.dma_busy = dma->group().busy();
  run.hbm_read_bytes = hbm.read_bytes();
  run.hbm_write_bytes = hbm.write_bytes();
  run.hbm_activates = hbm.activates();
  run.lead_in_weights_only = lead_in_weights_only();
  finished = true;
  if (done) done();
}

StackCluster::StackCluster(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
                           Context& context, bool reverse)
    : sc_module(name), impl_(std::make_unique<Impl>(chip, context, reverse)) {
  SC_HAS_PROCESS(StackCluster);
  SC_METHOD(end_run);
  sensitive << impl_->end_event;
  dont_initialize();
}

StackCluster::~StackCluster() = default;

void StackCluster::load(const models::TileProgram& program, base::Rate served_cap) {
  impl_->load(program, served_cap);
}

void StackCluster::arm(std::function<void()> done) {
  impl_->arm(std::move(done));
}

void StackCluster::end_run() {
  impl_->end();
}

bool StackCluster::finished() const {
  return impl_->finished;
}

std::string StackCluster::waiting() const {
  std::string text;
  for (const auto& core : impl_->cores) text += core->waiting();
  if (text.empty() && !impl_->dma->group().idle()) text = "DMA has transfers in flight\n";
  return text;
}

ClusterRun StackCluster::result() const {
  TRN3SIM_CHECK(impl_->finished,
                fmt::format("{}: the tile program has not ended; blocked:\n{}", name(), waiting()));
  return impl_->run;
}

}  // namespace trn3sim::modules
