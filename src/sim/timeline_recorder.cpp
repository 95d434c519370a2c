// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "timeline_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "machine_state.hpp"

namespace trn3sim::sim {
namespace {

std::string queue_name(std::int32_t queue) {
  switch (queue) {
    case kQueueCompute: return "compute";
    case kQueueHost: return "host";
    case kQueueSend: return "send";
    case kQueueReceive: return "receive";
    default: return fmt::format("collectives, stream {}", queue - kQueueStream0);
  }
}

std::string transfer_name(const trace::Program& program, const trace::Op& op) {
  if (const auto* p = std::get_if<trace::PointToPoint>(&op.body)) {
    const auto& axis = program.header.mesh.axes()[static_cast<std::size_t>(p->axis)];
    return fmt::format("{} {}{:+}", p->send ? "send to" : "receive from", axis.name, p->offset);
  }
  if (const auto* m = std::get_if<trace::Memory>(&op.body)) {
    static constexpr const char* kSpaces[] = {"HBM", "host", "storage"};
    return fmt::format("{} {}", m->store ? "store to" : "load from",
                       kSpaces[static_cast<std::size_t>(m->space)]);
  }
  return "delay";
}

}  // namespace

TimelineRecorder::TimelineRecorder(const MachineState& machine, stats::Timeline& timeline)
    : machine_(machine), timeline_(timeline) {
  const auto& chips = timeline.spec().chips;
  for (std::size_t r = 0; r < machine.plan->places.size(); ++r) {
    const std::int64_t chip = machine.plan->places[r].chip;
    first_track_.push_back(-1);
    if (std::find(chips.begin(), chips.end(), chip) == chips.end()) continue;
    for (std::int32_t q = 0; q < machine.tables.queues; ++q) {
      const std::int32_t track = timeline.add_track(
          {chip, static_cast<std::int64_t>(r), queue_name(q), q == kQueueCompute});
      if (q == 0) first_track_.back() = track;
    }
  }
}

void TimelineRecorder::ended(std::int64_t rank, std::int32_t queue, const Ticket& ticket,
                             const Sequencer& sequencer, base::Time start, std::int64_t kernel) {
  const std::int32_t first = first_track_[static_cast<std::size_t>(rank)];
  if (first < 0) return;
  const trace::Block& block = machine_.program->blocks[static_cast<std::size_t>(ticket.block)];
  stats::Timeline::Slice slice;
  slice.track = first + queue;
  slice.name = timeline_.name_id(name_of(ticket, kernel));
  slice.op = timeline_.name_id(block.ops[static_cast<std::size_t>(ticket.op)].id);
  slice.block = timeline_.name_id(block.id);
  slice.iteration = sequencer.iterations(ticket);
  slice.bytes = bytes_of(rank, ticket, kernel);
  slice.start = start;
  slice.end = machine_.context.now();
  timeline_.slice(std::move(slice));
}

// As in the tables of the report.
std::string TimelineRecorder::name_of(const Ticket& t, std::int64_t kernel) const {
  const auto block = static_cast<std::size_t>(t.block), index = static_cast<std::size_t>(t.op);
  const trace::Op& op = machine_.program->blocks[block].ops[index];
  if (kernel >= static_cast<std::int64_t>(machine_.profiles.size())) return "opaque " + op.id;
  if (kernel >= 0) return machine_.plan->kernels[static_cast<std::size_t>(kernel)].label();
  const compile::OpPlan& plan = machine_.plan->ops[block][index];
  if (plan.collective >= 0) return machine_.plan->labels[static_cast<std::size_t>(plan.label)];
  return transfer_name(*machine_.program, op);
}

std::int64_t TimelineRecorder::bytes_of(std::int64_t rank, const Ticket& t,
                                        std::int64_t kernel) const {
  const trace::Op& op =
      machine_.program->blocks[static_cast<std::size_t>(t.block)].ops[static_cast<std::size_t>(t.op)];
  if (kernel >= 0) {
    const auto k = static_cast<std::size_t>(kernel), profiles = machine_.profiles.size();
    const models::KernelProfile& p =
        k < profiles ? machine_.profiles[k]
                     : std::next(machine_.opaque.begin(), static_cast<std::ptrdiff_t>(k - profiles))->second;
    return (p.counts.hbm_read_bytes + p.counts.hbm_write_bytes) *
           machine_.plan->places[static_cast<std::size_t>(rank)].stacks;
  }
  if (const auto* c = std::get_if<trace::Collective>(&op.body)) return std::max(c->in, c->out);
  if (const auto* p = std::get_if<trace::PointToPoint>(&op.body)) return p->bytes;
  if (const auto* m = std::get_if<trace::Memory>(&op.body)) return m->bytes;
  return 0;
}

}  // namespace trn3sim::sim
