// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "stack_cluster_impl.hpp"

#include <algorithm>
#include <utility>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::modules {
namespace {

constexpr std::size_t kSets = 2;  // of core state: the next program loads beside the running one

}  // namespace

StackCluster::Impl::Impl(const config::ChipSpec& spec, Context& context, bool reverse)
    : chip(&spec),
      clock(context),
      space(spec),
      hbm("hbm", spec),
      cores(static_cast<std::size_t>(spec.cores_per_stack()) * kSets),
      slot_of(cores.size(), 0),
      jobs(cores.size()),
      limiters(cores.size() / kSets) {
  if (!reverse) make_dma();
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const std::size_t c = reverse ? cores.size() - 1 - i : i;
    make_core(c / kSets, c % kSets, reverse);
  }
  if (reverse) make_dma();
}

void StackCluster::Impl::make_dma() {
  dma = std::make_unique<Dma>("dma", *chip, clock,
                              [this](const models::DmaCompletion& c) { completed(c); });
  dma->memory.bind(hbm);
  // A program alone, the only one that DMA works ahead of, starts at 0.
  dma->work_ahead_until([this] {
    base::Time bound = base::kTimeMax;
    for (const Core* core : jobs[0].cores) bound = std::min(bound, core->asks_again());
    return bound;
  });
}

void StackCluster::Impl::make_core(std::size_t index, std::size_t set, bool reverse) {
  const std::size_t c = index * kSets + set;
  CoreHooks hooks;
  hooks.dma = [this, c](std::vector<models::DmaTrigger>& t) { post(slot_of[c], t); };
  hooks.ended = [this, c] { maybe_end(slot_of[c]); };
  hooks.many_intervals = [this, c] { collect(*cores[c]); };
  hooks.now = [this, c] { return clock.now() - jobs[slot_of[c]].start; };
  hooks.notify = [this, c](sc_core::sc_event& event, base::Time at) {
    clock.notify(event, jobs[slot_of[c]].start + at);
  };
  const std::string name =
      set == 0 ? fmt::format("core{}", index) : fmt::format("core{}_next", index);
  cores[c] = std::make_unique<Core>(name.c_str(), *chip, static_cast<std::int32_t>(index),
                                    std::move(hooks), reverse);
}

void StackCluster::Impl::check(const models::TileProgram& p) const {
  const std::size_t there = cores.size() / kSets;
  TRN3SIM_CHECK(!p.cores.empty() && p.cores.size() <= there,
                fmt::format("a program for {} cores on a stack of {}", p.cores.size(), there));
  TRN3SIM_CHECK(
      p.sbuf_bytes_per_partition <= chip->sbuf.usable_per_partition.count() &&
          p.psum_banks <= chip->psum.banks,
      fmt::format("a program with {} bytes of SBUF per partition and {} PSUM banks on a core with "
                  "{} and {}",
                  p.sbuf_bytes_per_partition, p.psum_banks, chip->sbuf.usable_per_partition.count(),
                  chip->psum.banks));
  for (const models::CoreProgram& core : p.cores)
    TRN3SIM_CHECK(static_cast<std::int64_t>(core.semaphores.size()) <= chip->sync.semaphores,
                  fmt::format("{} semaphores", core.semaphores.size()));
}

// Gives the job its cores; `first_core` and those after it.
void StackCluster::Impl::bind(std::size_t slot, std::size_t first_core,
                              const models::TileProgram& tile_program) {
  check(tile_program);
  Job& job = jobs[slot];
  TRN3SIM_CHECK(first_core + tile_program.cores.size() <= cores.size() / kSets, "no such core");
  job.program = &tile_program;
  job.first_core = first_core;
  job.cores.clear();
  for (std::size_t i = 0; i < tile_program.cores.size(); ++i) {
    const std::size_t c = (first_core + i) * kSets + slot % kSets;
    job.cores.push_back(cores[c].get());
    slot_of[c] = slot;
  }
  job.last_completion = base::Time(0);
  job.in_flight = 0;
  job.ends = base::kTimeMax;
  job.held = false;
  job.released = base::Time(0);
  job.loaded.assign(tile_program.cores.size(), 0);
}

void StackCluster::Impl::load(const models::TileProgram& tile_program, base::Rate served_cap,
                              models::Ahead ahead) {
  measuring = true;
  clock.start();
  for (Job& job : jobs) job.active = false;
  bind(0, 0, tile_program);
  hbm.load(served_cap);
  dma->load(tile_program);
  jobs[0].held = ahead != models::Ahead::Everything;
  for (std::size_t i = 0; i < jobs[0].cores.size(); ++i)
    jobs[0].cores[i]->load(tile_program, i, ahead);
  for (Limiter& limiter : limiters) limiter.used = false;
  active.reset();
  end_event.cancel();
  finished = false;
  run = {};
}

void StackCluster::Impl::arm(std::function<void()> callback) {
  Job& job = jobs[0];
  TRN3SIM_CHECK(measuring && job.program != nullptr && !job.active, "load a program before arm()");
  job.active = true;
  job.done = std::move(callback);
  clock.start();
  job.start = base::Time(0);
  for (Core* core : job.cores) core->start();
  maybe_end(0);  // a program without instructions
}

void StackCluster::Impl::launch(std::size_t first_core, const models::TileProgram& tile_program,
                                models::Ahead ahead, std::function<void()> callback) {
  measuring = false;
  std::size_t slot = first_core * kSets;
  for (std::size_t s = slot; s < slot + kSets; ++s) {
    Job& job = jobs[s];
    if (!job.active || !job.held) continue;
    TRN3SIM_CHECK(ahead == models::Ahead::Everything && job.program == &tile_program,
                  "another program was prefetched");
    job.done = std::move(callback);
    release(s);
    return;
  }
  if (jobs[slot].active) ++slot;
  Job& job = jobs[slot];
  TRN3SIM_CHECK(!job.active, "the cores run a program already");
  bind(slot, first_core, tile_program);
  job.active = true;
  job.held = ahead != models::Ahead::Everything;
  job.done = std::move(callback);
  job.start = clock.now();
  dma->load(static_cast<std::int32_t>(slot), tile_program, static_cast<std::int32_t>(first_core),
            space.base_of(static_cast<std::int64_t>(first_core)));
  if (job.held) dma->defer(static_cast<std::int32_t>(slot), true);
  for (std::size_t i = 0; i < job.cores.size(); ++i) {
    job.cores[i]->load(tile_program, i, ahead);
    job.cores[i]->start();
  }
  if (!job.held) take_limiters(job);
  maybe_end(slot);
}

// The programs before have ended: their limiters go on in the cycles of this one.
void StackCluster::Impl::take_limiters(Job& job) {
  for (std::size_t i = 0; i < job.cores.size(); ++i) {
    const Limiter& before = limiters[job.first_core + i];
    if (!before.used) continue;
    job.cores[i]->stream(kTensor).continue_limiter(before.state, job.start - before.origin);
  }
}

void StackCluster::Impl::leave_limiters(const Job& job) {
  base::Time cost;
  for (const Core* core : job.cores) cost += core->stream(kTensor).limited();
  cost = base::Time(cost.count() / static_cast<std::int64_t>(job.cores.size()));
  for (std::size_t i = 0; i < job.cores.size(); ++i) {
    const Core& core = *job.cores[i];
    limiters[job.first_core + i] = {core.stream(kTensor).limiter(), job.start, true, cost};
  }
}

void StackCluster::Impl::release(std::size_t slot) {
  Job& job = jobs[slot];
  job.held = false;
  if (!measuring) {
    dma->defer(static_cast<std::int32_t>(slot), false);
    take_limiters(job);
  }
  job.released = clock.now() - job.start;
  for (Core* core : job.cores) core->release(job.released);
  maybe_end(slot);
}

void StackCluster::Impl::inject(const Traffic& t, TrafficEnd& end, std::int32_t id) {
  measuring = false;
  models::ForeignTransfer f;
  if (free_foreign.empty()) {
    f.id = static_cast<std::int32_t>(foreign.size());
    foreign.emplace_back();
  } else {
    f.id = free_foreign.back();
    free_foreign.pop_back();
  }
  foreign[std::size_t(f.id)] = {&end, id};
  f.address = space.next_foreign(t.first_core, t.queue, t.bytes);
  f.first_core = t.first_core;
  f.cores = t.cores;
  f.queue = t.queue;
  f.bytes = t.bytes;
  f.write = t.write;
  f.rate = t.rate;
  f.after = t.after;
  dma->inject(f);
}

void StackCluster::Impl::post(std::size_t slot, std::vector<models::DmaTrigger>& triggers) {
  Job& job = jobs[slot];
  const auto first = static_cast<std::int32_t>(job.first_core);
  for (models::DmaTrigger& t : triggers) {
    t.at += job.start;
    t.core -= first;
    t.job = static_cast<std::int32_t>(slot);
  }
  job.in_flight += static_cast<std::int64_t>(triggers.size());
  dma->post(triggers);
}

void StackCluster::Impl::completed(const models::DmaCompletion& c) {
  if (c.job == models::kForeignJob) {
    const Foreign f = foreign[std::size_t(c.transfer)];
    free_foreign.push_back(c.transfer);
    f.end->traffic_ended(f.id);
    return;
  }
  const auto slot = static_cast<std::size_t>(c.job);
  Job& job = jobs[slot];
  job.last_completion = c.at - job.start;
  if (job.held)
    job.loaded[std::size_t(c.core)] += job.program->transfers[std::size_t(c.transfer)].bytes();
  job.cores[std::size_t(c.core)]->complete(job.program->transfers[std::size_t(c.transfer)],
                                           c.at - job.start);
  if (--job.in_flight == 0) maybe_end(slot);
}

void StackCluster::Impl::maybe_end(std::size_t slot) {
  Job& job = jobs[slot];
  if (!job.active || job.held || job.in_flight > 0 || job.ends < base::kTimeMax) return;
  base::Time last = job.last_completion;
  for (const Core* core : job.cores) {
    if (!core->done()) return;
    for (std::size_t e = 0; e < models::kEngines; ++e) last = std::max(last, core->stream(e).end());
  }
  job.ends = std::max(job.start + last, clock.now());
  clock.notify(end_event, job.ends);
}

// Settles the busy intervals up to the time that no stream can go back to.
void StackCluster::Impl::collect(Core& changed) {
  if (!measuring) {
    for (std::size_t e = 0; e < models::kEngines; ++e) changed.stream(e).intervals().clear();
    return;
  }
  base::Time horizon = base::kTimeMax;
  for (Core* core : jobs[0].cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      models::EngineStream& stream = core->stream(e);
      for (const models::CycleInterval& i : stream.intervals())
        active.add(stream.edges().edge(i.start), stream.edges().edge(i.end));
      stream.intervals().clear();
      horizon = std::min(horizon, std::max(clock.now(), stream.next_busy_bound()));
    }
  active.settle(horizon);
}

void StackCluster::Impl::measure(Job& job) {
  collect(*job.cores.front());
  run.begin();
  for (Core* core : job.cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) run.add(e, core->stream(e), job.released);
  run.end(job.ends - job.released);
  run.compute_active = active.total();
  run.dma_busy = dma->group().busy();
  run.dma_active = dma->group().active();
  run.hbm_read_bytes = hbm.read_bytes();
  run.hbm_write_bytes = hbm.write_bytes();
  run.hbm_activates = hbm.activates();
  finished = true;
}

void StackCluster::Impl::end_due() {
  const base::Time now = clock.now();
  for (Job& job : jobs) {
    if (!job.active || job.ends > now) continue;
    if (measuring) measure(job);
    leave_limiters(job);
    job.active = false;
    const std::function<void()> done = std::move(job.done);
    job.done = {};
    if (done) done();  // may start the next program
  }
  base::Time next = base::kTimeMax;
  for (const Job& job : jobs)
    if (job.active) next = std::min(next, job.ends);
  if (next < base::kTimeMax) clock.notify(end_event, next);
}

}  // namespace trn3sim::modules
