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
constexpr std::size_t kLanes = 4;

std::int64_t align_down(std::int64_t bytes) {
  return bytes / kAlignment * kAlignment;
}

bool later(const DmaCompletion& a, const DmaCompletion& b) {
  return std::tie(a.at, a.order) > std::tie(b.at, b.order);
}

}  // namespace

bool DmaGroup::Activation::operator>(const Activation& o) const {
  return std::tie(trigger.at, trigger.core, trigger.engine, order) >
         std::tie(o.trigger.at, o.trigger.core, o.trigger.engine, o.order);
}

DmaGroup::DmaGroup(const config::ChipSpec& chip)
    : chip_(&chip), per_core_(static_cast<std::int32_t>(chip.dma.engines)) {
  const std::int64_t engines = chip.dma.engines * chip.cores_per_stack();
  for (std::int64_t e = 0; e < engines; ++e) engines_.emplace_back(chip.dma);
  next_.assign((engines_.size() + kLanes - 1) / kLanes * kLanes, base::kTimeMax);
}

void DmaGroup::load(const TileProgram& program) {
  program_ = &program;
  for (DmaEngine& e : engines_) e.reset();
  std::fill(next_.begin(), next_.end(), base::kTimeMax);
  reached_ = base::Time(0);
  activations_.clear();
  completions_.clear();
  live_.clear();
  free_live_.clear();
  order_ = 0;
  base_.clear();
  cursor_.clear();
  std::int64_t address = 0;
  for (const Operand& o : program.operands) {
    base_.push_back(address);
    address += align_down(o.bytes + kAlignment - 1);
  }
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  for (std::int64_t core = 0; core < cores; ++core)
    for (const Operand& o : program.operands) cursor_.push_back(align_down(o.bytes * core / cores));
  first_touch_.assign(program.operands.size(), base::kTimeMax);
  for (const DmaTransfer& t : program.transfers) {
    TRN3SIM_CHECK(t.operand >= 0 && std::size_t(t.operand) < program.operands.size(),
                  "a transfer names no operand");
    TRN3SIM_CHECK(t.rows > 0 && t.row_bytes > 0, "empty transfer");
    TRN3SIM_CHECK(t.queue >= 0 && t.queue < chip_->dma.queues_per_engine, "no such DMA queue");
  }
}

void DmaGroup::post(const DmaTrigger& trigger) {
  TRN3SIM_CHECK(trigger.at >= reached_, "a transfer starts before what DMA has done");
  activations_.push_back({trigger, order_++});
  std::push_heap(activations_.begin(), activations_.end(), std::greater<>());
}

void DmaGroup::activate(const DmaTrigger& trigger) {
  const DmaTransfer& t = program_->transfers[std::size_t(trigger.transfer)];
  const auto operand = std::size_t(t.operand);
  const std::int64_t bytes = std::int64_t{t.rows} * t.row_bytes;
  std::int64_t& cursor = cursor_[std::size_t(trigger.core) * base_.size() + operand];
  if (cursor + bytes > program_->operands[operand].bytes) cursor = 0;
  const std::int64_t address = base_[operand] + cursor;
  cursor += bytes;

  std::int32_t live;
  if (free_live_.empty()) {
    live = static_cast<std::int32_t>(live_.size());
    live_.emplace_back();
  } else {
    live = free_live_.back();
    free_live_.pop_back();
  }
  live_[std::size_t(live)] = {trigger.core, trigger.transfer, 0, base::Time(0)};
  // Rows belong to engines by partition: consecutive rows, equal shares.
  for (std::int32_t e = 0; e < per_core_; ++e) {
    const std::int64_t first = std::int64_t{t.rows} * e / per_core_;
    const std::int64_t end = std::int64_t{t.rows} * (e + 1) / per_core_;
    if (first == end) continue;
    DmaPart part;
    part.live = live;
    part.address = address + first * t.row_bytes;
    part.rows = end - first;
    part.row_bytes = t.row_bytes;
    part.write = t.direction == DmaDirection::SbufToHbm;
    part.accumulate = t.accumulate;
    part.eligible = trigger.at + chip_->dma.start_latency;
    ++live_[std::size_t(live)].parts;
    const auto index = std::size_t(trigger.core * per_core_ + e);
    engines_[index].enqueue(t.queue, part);
    next_[index] = engines_[index].next();
  }
}

void DmaGroup::finish_part(std::int32_t live, base::Time at) {
  Live& l = live_[std::size_t(live)];
  l.done = std::max(l.done, at);
  if (--l.parts > 0) return;
  completions_.push_back({l.done, l.core, l.transfer, order_++});
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
  base::Time& touched = first_touch_[std::size_t(
      program_->transfers[std::size_t(live_[std::size_t(p.live)].transfer)].operand)];
  touched = std::min(touched, now);
  base::Time memory_done;
  if (p.read_modify_write) memory_done = memory.access(now, p.address, p.bytes, false);
  memory_done = std::max(memory_done, memory.access(now, p.address, p.bytes, p.write));
  const base::Time end = engine.finish(p, memory_done);
  next_[index] = engine.next();
  reached_ = now;
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

void DmaGroup::run_ahead(Memory& memory) {
  for (;;) {
    const base::Time end = completions_.empty() ? base::kTimeMax : completions_.front().at;
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
