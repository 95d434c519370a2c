// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// RankRunner: the kernels of its compute ops, their pieces and what loads ahead of them.
#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "rank_runner.hpp"

namespace trn3sim::sim {

using stats::TimeClass;

// Index of an op's kernel: Plan::kernels first, then the opaque ones.
std::size_t RankRunner::kernel_of(const Ticket& t) const {
  const std::int32_t kernel = plan_of(t).kernel;
  if (kernel >= 0) return static_cast<std::size_t>(kernel);
  const auto it = machine_.opaque.find({t.block, t.op});
  TRN3SIM_CHECK(it != machine_.opaque.end(), "no kernel for op " + op_of(t).id);
  return machine_.profiles.size() +
         static_cast<std::size_t>(std::distance(machine_.opaque.begin(), it));
}

const models::KernelProfile& RankRunner::profile(std::size_t kernel) const {
  if (kernel < machine_.profiles.size()) return machine_.profiles[kernel];
  return std::next(machine_.opaque.begin(),
                   static_cast<std::ptrdiff_t>(kernel - machine_.profiles.size()))
      ->second;
}

// Of a piece, what overlaps the piece before: all before its first compute instruction, but the DMA
// engines are busy with each piece in turn.
base::Time RankRunner::overlap(const models::KernelProfile& p) {
  return std::min(p.lead_in, std::max(base::Time(0), p.duration - p.dma_busy));
}

// On a detailed chip a kernel can be a little faster than alone on the bench, by where refreshes
// fall: only what keeps an engine busy is certain.
base::Time RankRunner::least_time(const models::KernelProfile& p, bool first_piece) const {
  const compile::RankPlace& place = machine_.plan->places[static_cast<std::size_t>(rank_)];
  if (machine_.run->is_detailed(place.chip))
    return std::max(p.dma_busy, *std::max_element(p.engine_busy.begin(), p.engine_busy.end()));
  const base::Time hot = p.duration - p.tensor.saves;
  if (!first_piece) return hot - overlap(p);
  return machine_.run->compile.prefetch ? hot - p.ahead.saves : hot;
}

// The pieces of one op are one loop, so the loads of the next piece always overlap the current one.
void RankRunner::issue_kernel(const Ticket& t) {
  const std::size_t kernel = kernel_of(t);
  const models::KernelProfile& p = profile(kernel);
  const compile::OpPlan& plan = plan_of(t);
  base::Time least = least_time(p, true) + least_time(p, false) * (plan.pieces - 1);
  if (plan.last_piece >= 0)
    least += least_time(profile(static_cast<std::size_t>(plan.last_piece)), false);
  sequencer_.set_chain_end(t, sequencer_.chain_start(t) + least);
  pieces_.left = plan.pieces - 1;
  pieces_.last = plan.last_piece;
  kernel_running_ = true;
  play(kernel, base::Time(0));
}

void RankRunner::play(std::size_t kernel, base::Time hidden) {
  pieces_.kernel = kernel;
  pieces_.start = machine_.context.now();
  player_->play(work_of(kernel), hidden);
  prefetch_next();
}

modules::KernelWork RankRunner::work_of(std::size_t kernel) const {
  modules::KernelWork work;
  work.profile = &profile(kernel);
  if (kernel < machine_.programs.size()) work.program = &machine_.programs[kernel];
  if (kernel < machine_.weights.size()) work.weights = machine_.weights[kernel];
  if (kernel < machine_.loads.size() && work.profile->ahead.bytes.count() > 0)
    work.loads = &machine_.loads[kernel];
  work.deferred = machine_.run->system.chip.dma.priority_classes > 1;
  return work;
}

// All loads between pieces of one op, else weights if there is room in SBUF beside the running
// kernel.
void RankRunner::prefetch_next() {
  if (pieces_.left > 0) {
    player_->prefetch(work_of(pieces_.kernel), models::Ahead::Loads);
  } else if (pieces_.last >= 0) {
    player_->prefetch(work_of(static_cast<std::size_t>(pieces_.last)), models::Ahead::Loads);
  } else if (machine_.run->compile.prefetch) {
    const Ticket* next = sequencer_.next(kQueueCompute);
    if (next == nullptr) return;
    const modules::KernelWork work = work_of(kernel_of(*next));
    const std::int64_t sbuf = profile(pieces_.kernel).sbuf_bytes_per_partition +
                              work.profile->ahead.sbuf_bytes_per_partition;
    if (work.loads == nullptr || sbuf > machine_.run->system.chip.sbuf.usable_per_partition.count())
      return;
    player_->prefetch(work, models::Ahead::Weights);
  }
}

void RankRunner::book_kernel() {
  const models::KernelProfile& p = profile(pieces_.kernel);
  const std::int64_t took = (machine_.context.now() - pieces_.start).count();
  const modules::Throttled limited = player_->throttled();
  const std::int64_t compute = std::min(took, (p.compute_active - p.tensor.active).count());
  const std::int64_t throttled = std::min(took - compute, limited.cost.count());
  stats_.class_fs[static_cast<std::size_t>(TimeClass::Compute)] += compute;
  stats_.class_fs[static_cast<std::size_t>(TimeClass::Throttled)] += throttled;
  stats_.class_fs[static_cast<std::size_t>(TimeClass::ExposedMemory)] += took - compute - throttled;
  stats_.compute_active_fs += (p.compute_active - p.tensor.passes + limited.passes).count();
  KernelCount& count = stats_.kernels[pieces_.kernel];
  ++count.executions;
  count.total_fs += took;
  count.limited_fs += limited.passes.count();
  if (machine_.timeline != nullptr)
    record(kQueueCompute, pieces_.start, static_cast<std::int64_t>(pieces_.kernel));
  settled_ = machine_.context.now();
}

void RankRunner::kernel_ended() {
  book_kernel();
  if (pieces_.left > 0) {
    --pieces_.left;
    play(pieces_.kernel, overlap(profile(pieces_.kernel)));
    return;
  }
  if (pieces_.last >= 0) {
    const auto last = static_cast<std::size_t>(pieces_.last);
    pieces_.last = -1;
    play(last, overlap(profile(last)));
    return;
  }
  kernel_running_ = false;
  complete(kQueueCompute);
}

}  // namespace trn3sim::sim
