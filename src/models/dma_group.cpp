// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/dma_group.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kAlignment = 4096;
constexpr std::int32_t kForeignRings = 16;  // rings of an engine for foreign transfers
constexpr std::int32_t kMostQueues = 64;    // rings that an engine can have
constexpr std::size_t kLanes = 4;

std::int64_t align_down(std::int64_t bytes) {
  return bytes / kAlignment * kAlignment;
}

bool later(const DmaCompletion& a, const DmaCompletion& b) {
  return std::tie(a.at, a.order) > std::tie(b.at, b.order);
}

}  // namespace

bool DmaGroup::Activation::operator>(const Activation& o) const {
  return std::tie(trigger.at, trigger.job, trigger.core, trigger.engine, order) >
         std::tie(o.trigger.at, o.trigger.job, o.trigger.core, o.trigger.engine, o.order);
}

DmaGroup::DmaGroup(const config::ChipSpec& chip)
    : chip_(&chip),
      per_core_(static_cast<std::int32_t>(chip.dma.engines)),
      queues_(static_cast<std::int32_t>(chip.dma.queues_per_engine)),
      sets_(2 * queues_ <= kMostQueues ? 2 : 1),
      foreign_queues_(std::clamp(kMostQueues - sets_ * queues_, 0, kForeignRings)) {
  const std::int64_t engines = chip.dma.engines * chip.cores_per_stack();
  for (std::int64_t e = 0; e < engines; ++e)
    engines_.emplace_back(chip.dma, (sets_ - 1) * queues_ + foreign_queues_);
  next_.assign((engines_.size() + kLanes - 1) / kLanes * kLanes, base::kTimeMax);
}

void DmaGroup::reset() {
  for (DmaEngine& e : engines_) e.reset();
  jobs_.clear();
  std::fill(next_.begin(), next_.end(), base::kTimeMax);
  reached_ = base::Time(0);
  activations_.clear();
  completions_.clear();
  live_.clear();
  free_live_.clear();
  order_ = 0;
  active_ = active_until_ = base::Time(0);
  records_.clear();
  unrecorded_ = 0;
}

void DmaGroup::load(std::int32_t index, const TileProgram& program, std::int32_t first_core,
                    std::int64_t address) {
  if (jobs_.size() <= std::size_t(index)) jobs_.resize(std::size_t(index) + 1);
  Job& job = jobs_[std::size_t(index)];
  job.program = &program;
  job.first_core = first_core;
  job.base.clear();
  job.cursor.clear();
  for (const Operand& o : program.operands) {
    job.base.push_back(address);
    address += align_down(o.bytes + kAlignment - 1);
  }
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  for (std::int64_t core = 0; core < cores; ++core)
    for (const Operand& o : program.operands)
      job.cursor.push_back(align_down(o.bytes * core / cores));
  for (const DmaTransfer& t : program.transfers) {
    TRN3SIM_CHECK(t.operand >= 0 && std::size_t(t.operand) < program.operands.size(),
                  "a transfer names no operand");
    TRN3SIM_CHECK(t.rows > 0 && t.row_bytes > 0, "empty transfer");
    TRN3SIM_CHECK(t.queue >= 0 && t.queue < chip_->dma.queues_per_engine, "no such DMA queue");
  }
}

void DmaGroup::defer(std::int32_t job, bool deferred) {
  if (chip_->dma.priority_classes < 2 || sets_ < 2) return;
  const Job& j = jobs_[std::size_t(job)];
  const std::uint64_t rings = ((std::uint64_t{1} << queues_) - 1) << (job % sets_ * queues_);
  const std::size_t first = std::size_t(j.first_core * per_core_);
  const std::size_t engines = j.program->cores.size() * std::size_t(per_core_);
  for (std::size_t e = first; e < first + engines; ++e) engines_[e].defer(deferred ? rings : 0);
}

void DmaGroup::post(const DmaTrigger& trigger) {
  TRN3SIM_CHECK(trigger.at >= reached_, "a transfer starts before what DMA has done");
  activations_.push_back({trigger, order_++});
  std::push_heap(activations_.begin(), activations_.end(), std::greater<>());
}

std::int32_t DmaGroup::take_live(const Live& live) {
  if (free_live_.empty()) {
    live_.push_back(live);
    return static_cast<std::int32_t>(live_.size()) - 1;
  }
  const std::int32_t index = free_live_.back();
  free_live_.pop_back();
  live_[std::size_t(index)] = live;
  return index;
}

// Whole packets, equal shares in consecutive pieces of the region.
void DmaGroup::inject(base::Time now, const ForeignTransfer& t) {
  TRN3SIM_CHECK(t.bytes.count() > 0 && t.rate.count() > 0, "empty foreign transfer");
  const std::int64_t packet = chip_->dma.packet.count();
  const std::int64_t packets = (t.bytes.count() + packet - 1) / packet;
  const std::int32_t engines = per_core_ * t.cores;
  const std::int32_t live = take_live(
      {kForeignJob, t.first_core, t.id, 0, base::Time(0), t.after - chip_->dma.completion,
       base::kTimeMax});
  const std::int32_t own = sets_ * queues_;
  const std::int32_t queue = foreign_queues_ > 0 ? own + t.queue % foreign_queues_ : own - 1;
  for (std::int32_t e = 0; e < engines; ++e) {
    const std::int64_t first = packets * e / engines;
    const std::int64_t end = packets * (e + 1) / engines;
    if (first == end) continue;
    DmaPart part;
    part.live = live;
    part.address = t.address + first * packet;
    part.rows = end - first;
    part.row_bytes = std::min(packet, t.bytes.count());
    part.write = t.write;
    part.eligible = now;
    part.pace = base::Time(base::transfer_time(t.bytes, t.rate).count() / (end - first));
    ++live_[std::size_t(live)].parts;
    const auto index = std::size_t(t.first_core * per_core_ + e);
    engines_[index].enqueue(queue, part);
    next_[index] = engines_[index].next();
  }
}

void DmaGroup::activate(const DmaTrigger& trigger) {
  Job& job = jobs_[std::size_t(trigger.job)];
  const DmaTransfer& t = job.program->transfers[std::size_t(trigger.transfer)];
  const auto operand = std::size_t(t.operand);
  const std::int64_t bytes = t.bytes();
  std::int64_t& cursor = job.cursor[std::size_t(trigger.core) * job.base.size() + operand];
  if (cursor + bytes > job.program->operands[operand].bytes) cursor = 0;
  const std::int64_t address = job.base[operand] + cursor;
  cursor += bytes;

  const std::int32_t live =
      take_live({trigger.job, trigger.core, trigger.transfer, 0, base::Time(0), base::Time(0),
                 base::kTimeMax});
  const std::int32_t first_engine = (job.first_core + trigger.core) * per_core_;
  // Rows belong to engines by partition: an engine serves partitions / engines of SBUF. Several
  // rows for each partition are equal shares.
  const std::int64_t shared = std::max<std::int64_t>(t.rows, chip_->sbuf.partitions);
  for (std::int32_t e = 0; e < per_core_; ++e) {
    const std::int64_t first = shared * e / per_core_;
    const std::int64_t end = std::min<std::int64_t>(t.rows, shared * (e + 1) / per_core_);
    if (first >= end) continue;
    DmaPart part;
    part.live = live;
    part.address = address + first * t.row_bytes;
    part.rows = end - first;
    part.row_bytes = t.row_bytes;
    part.write = t.direction == DmaDirection::SbufToHbm;
    part.accumulate = t.accumulate;
    part.eligible = trigger.at + chip_->dma.start_latency;
    ++live_[std::size_t(live)].parts;
    const auto index = std::size_t(first_engine + e);
    engines_[index].enqueue(trigger.job % sets_ * queues_ + t.queue, part);
    next_[index] = engines_[index].next();
  }
}

void DmaGroup::finish_part(std::int32_t live, base::Time at) {
  Live& l = live_[std::size_t(live)];
  l.done = std::max(l.done, at);
  if (--l.parts > 0) return;
  if (record_limit_ > 0 && l.job != kForeignJob) {
    if (records_.size() < record_limit_)
      records_.push_back({l.core, l.transfer, l.begin, l.done + l.shift});
    else
      ++unrecorded_;
  }
  completions_.push_back({l.done + l.shift, l.core, l.transfer, order_++, l.job});
  std::push_heap(completions_.begin(), completions_.end(), later);
  free_live_.push_back(live);
}

DmaGroup::Due DmaGroup::next_packet() const {
  // Four minima without branches, then the first engine that has the least.
  const auto least = [](base::Time a, base::Time b) { return a < b ? a : b; };
  const base::Time* next = next_.data();
  base::Time a = base::kTimeMax, b = a, c = a, d = a;
  for (const base::Time* end = next + next_.size(); next != end; next += kLanes) {
    a = least(a, next[0]);
    b = least(b, next[1]);
    c = least(c, next[2]);
    d = least(d, next[3]);
  }
  const base::Time at = least(least(a, b), least(c, d));
  std::size_t engine = 0;
  while (next_[engine] != at) ++engine;
  return {at, engine};
}

void DmaGroup::activate_until(base::Time now) {
  while (!activations_.empty() && activations_.front().trigger.at <= now) {
    std::pop_heap(activations_.begin(), activations_.end(), std::greater<>());
    const DmaTrigger trigger = activations_.back().trigger;
    activations_.pop_back();
    reached_ = std::max(reached_, trigger.at);
    activate(trigger);
  }
}

void DmaGroup::move_packet(std::size_t index, base::Time now, Memory& memory) {
  DmaEngine& engine = engines_[index];
  const DmaPacket p = engine.start(now);
  base::Time memory_done;
  if (p.read_modify_write) memory_done = memory.access(now, p.address, p.bytes, false);
  memory_done = std::max(memory_done, memory.access(now, p.address, p.bytes, p.write));
  const base::Time end = engine.finish(p, memory_done);
  next_[index] = engine.next();
  reached_ = now;
  Live& live = live_[std::size_t(p.live)];
  live.begin = std::min(live.begin, now);
  // Packets start in ascending time.
  if (end > active_until_) {
    active_ += end - std::max(now, active_until_);
    active_until_ = end;
  }
  if (p.last) finish_part(p.live, end);
}

void DmaGroup::advance(base::Time now, Memory& memory, std::vector<DmaCompletion>& done) {
  activate_until(now);
  for (Due due = next_packet(); due.at <= now; due = next_packet())
    move_packet(due.engine, now, memory);
  while (!completions_.empty() && completions_.front().at <= now) {
    done.push_back(completions_.front());
    std::pop_heap(completions_.begin(), completions_.end(), later);
    completions_.pop_back();
  }
}

void DmaGroup::run_ahead(Memory& memory, base::Time bound) {
  for (;;) {
    const base::Time end = completions_.empty() ? bound : std::min(bound, completions_.front().at);
    const Due due = next_packet();
    if (!activations_.empty() && activations_.front().trigger.at <= due.at) {
      if (activations_.front().trigger.at >= end) return;
      activate_until(activations_.front().trigger.at);
    } else {
      if (due.at >= end) return;
      move_packet(due.engine, due.at, memory);
    }
  }
}

base::Time DmaGroup::next() const {
  base::Time t = next_packet().at;
  if (!activations_.empty()) t = std::min(t, activations_.front().trigger.at);
  if (!completions_.empty()) t = std::min(t, completions_.front().at);
  return t;
}

base::Time DmaGroup::busy() const {
  base::Time t;
  for (const DmaEngine& e : engines_) t += e.busy();
  return t;
}

}  // namespace trn3sim::models
