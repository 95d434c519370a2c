// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/dma_engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::size_t kCompactAt = 256;

base::Time scaled(base::Time t, double rate) {
  TRN3SIM_CHECK(rate > 0, "a DMA compute rate must be positive");
  return rate == 1.0 ? t
                     : base::Time(std::llround(std::ceil(static_cast<double>(t.count()) / rate)));
}

// Drops the consumed front of a vector that serves as a queue, now and then.
template <class T>
void compact(std::vector<T>& items, std::size_t& head) {
  if (head == items.size()) {
    items.clear();
    head = 0;
  } else if (head >= kCompactAt && head * 2 >= items.size()) {
    items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(head));
    head = 0;
  }
}

}  // namespace

DmaEngine::DmaEngine(const config::DmaSpec& spec, std::int32_t extra_queues)
    : spec_(spec), rings_(static_cast<std::size_t>(spec.queues_per_engine + extra_queues)) {
  TRN3SIM_CHECK(!rings_.empty() && rings_.size() <= 64, "1 to 64 queues");
  TRN3SIM_CHECK(spec.plateau_rate <= spec.bus_rate, "the plateau cannot exceed the bus rate");
  TRN3SIM_CHECK(spec.outstanding > 0, "at least one descriptor in flight");
  overhead_ = base::transfer_time(spec.packet, spec.plateau_rate) -
              base::transfer_time(spec.packet, spec.bus_rate);
}

void DmaEngine::reset() {
  for (Ring& r : rings_) {
    r.parts.clear();
    r.head = 0;
    r.rows_done = r.row_offset = r.packets = 0;
    r.may_start = r.gate = r.all_moved = base::Time(0);
  }
  occupied_ = deferred_ = 0;
  turn_ = 0;
  in_flight_.clear();
  in_flight_head_ = 0;
  descriptors_ = 0;
  bus_free_ = busy_ = base::Time(0);
  next_ = base::kTimeMax;
}

void DmaEngine::enqueue(std::int32_t queue, const DmaPart& part) {
  TRN3SIM_CHECK(queue >= 0 && std::size_t(queue) < rings_.size(), "no such DMA queue");
  TRN3SIM_CHECK(part.rows > 0 && part.row_bytes > 0, "empty DMA part");
  Ring& ring = rings_[std::size_t(queue)];
  ring.parts.push_back(part);
  if (ring.head + 1 == ring.parts.size()) update_gate(ring);
  occupied_ |= std::uint64_t{1} << queue;
  update_next();
}

void DmaEngine::update_gate(Ring& ring) const {
  ring.gate = std::max(ring.may_start, ring.parts[ring.head].eligible);
}

void DmaEngine::update_next() {
  if (occupied_ == 0) {
    next_ = base::kTimeMax;
    return;
  }
  base::Time ring_gate = base::kTimeMax;
  for (std::uint64_t set = occupied_; set != 0; set &= set - 1)
    ring_gate = std::min(ring_gate, rings_[std::size_t(std::countr_zero(set))].gate);
  next_ = std::max(ring_gate, bus_free_);
  if (descriptors_ >= spec_.outstanding) next_ = std::max(next_, in_flight_[in_flight_head_].done);
}

base::Time DmaEngine::packet_time(std::int64_t bytes, std::int64_t descriptors, bool write,
                                  bool accumulate) {
  const int mode = accumulate ? (write ? 2 : 1) : 0;
  if (memo_.bytes != bytes || memo_.descriptors != descriptors || memo_.mode != mode) {
    base::Time t =
        base::transfer_time(base::Bytes(bytes), spec_.bus_rate) + overhead_ * descriptors;
    if (mode == 1) t = scaled(t, spec_.sbuf_accumulate_rate);
    if (mode == 2) t = scaled(t, spec_.inline_compute_rate);
    memo_ = {bytes, descriptors, mode, t};
  }
  return memo_.time;
}

// The first ring from `turn_` on, around the end, whose gate is open.
std::uint32_t DmaEngine::next_ring(base::Time now) const {
  std::uint64_t due = due_of(occupied_ & ~deferred_, now);
  if (due == 0) due = due_of(occupied_ & deferred_, now);
  TRN3SIM_CHECK(due != 0, "no DMA ring is due");
  return static_cast<std::uint32_t>(std::countr_zero(due));
}

// Of `rings`, those from the first one on, around the end from `turn_`, whose gate is open.
std::uint64_t DmaEngine::due_of(std::uint64_t rings, base::Time now) const {
  const std::uint64_t from = rings >> turn_ << turn_;
  for (std::uint64_t set : {from, rings ^ from})
    for (; set != 0; set &= set - 1)
      if (rings_[std::size_t(std::countr_zero(set))].gate <= now) return set;
  return 0;
}

DmaPacket DmaEngine::start(base::Time now) {
  TRN3SIM_CHECK(now >= next_ && occupied_ != 0, "DMA packet started too early");
  while (in_flight_head_ < in_flight_.size() && in_flight_[in_flight_head_].done <= now)
    descriptors_ -= in_flight_[in_flight_head_++].descriptors;
  compact(in_flight_, in_flight_head_);

  const std::uint32_t q = next_ring(now);
  turn_ = q + 1 == rings_.size() ? 0 : q + 1;

  Ring& ring = rings_[q];
  const DmaPart& part = ring.parts[ring.head];
  if (ring.rows_done == 0 && ring.row_offset == 0) ring.may_start = now + spec_.issue_interval;

  DmaPacket p;
  p.live = part.live;
  p.queue = static_cast<std::int32_t>(q);
  p.write = part.write;
  p.read_modify_write = part.write && part.accumulate;
  p.address = part.address + ring.rows_done * part.row_bytes + ring.row_offset;
  if (ring.row_offset == 0 && part.row_bytes <= spec_.packet.count()) {
    // At most half the window, so that two packets are in flight.
    const std::int64_t room = std::max<std::int64_t>(
        1, std::min({spec_.packet.count() / part.row_bytes, spec_.outstanding / 2,
                     spec_.outstanding - descriptors_}));
    p.descriptors = std::min(room, part.rows - ring.rows_done);
    p.bytes = p.descriptors * part.row_bytes;
    ring.rows_done += p.descriptors;
  } else {
    p.descriptors = 1;
    p.bytes = std::min(spec_.packet.count(), part.row_bytes - ring.row_offset);
    ring.row_offset += p.bytes;
    if (ring.row_offset == part.row_bytes) {
      ring.row_offset = 0;
      ++ring.rows_done;
    }
  }
  p.last = ring.rows_done == part.rows;
  if (part.pace.count() > 0)
    ring.gate = std::max(ring.gate, part.eligible + part.pace * ++ring.packets);
  const base::Time busy = packet_time(p.bytes, p.descriptors, part.write, part.accumulate);
  busy_ += busy;
  bus_free_ = p.moved = now + busy;
  if (p.last) {
    // The semaphore write of the part goes through the same ring before the next part.
    ring.may_start = std::max(ring.may_start, bus_free_ + spec_.completion);
    ring.rows_done = ring.row_offset = ring.packets = 0;
    ++ring.head;
    compact(ring.parts, ring.head);
    if (ring.parts.empty())
      occupied_ &= ~(std::uint64_t{1} << q);
    else
      update_gate(ring);
  }
  return p;
}

base::Time DmaEngine::finish(const DmaPacket& packet, base::Time memory_done) {
  const base::Time done = std::max(packet.moved, memory_done);
  // The window is first in, first out: a packet leaves it after the packets before it.
  const base::Time leaves = in_flight_.empty() ? done : std::max(done, in_flight_.back().done);
  in_flight_.push_back({leaves, packet.descriptors});
  descriptors_ += packet.descriptors;
  Ring& ring = rings_[std::size_t(packet.queue)];
  ring.all_moved = std::max(ring.all_moved, done);
  update_next();
  return packet.last ? ring.all_moved + spec_.completion : done;
}

}  // namespace trn3sim::models
