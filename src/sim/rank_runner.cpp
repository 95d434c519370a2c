// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_runner.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/collective.hpp"

#include "loop_skipper.hpp"
#include "timeline_recorder.hpp"
#include <fmt/format.h>

namespace trn3sim::sim {
namespace {

using stats::TimeClass;

constexpr std::int64_t kProgressMask = 0x3fff;  // report every 16,384 completions

// Bytes that a collective's bus bandwidth counts, by the factors of nccom-test and nccl-tests:
// all-reduce 2(n-1)/n, the others (n-1)/n of the larger side.
double bus_bytes(const trace::Collective& c, std::int64_t n) {
  const double share = static_cast<double>(n - 1) / static_cast<double>(n);
  const double size = static_cast<double>(std::max(c.in, c.out));
  return c.kind == trace::CollectiveKind::AllReduce ? 2 * share * size : share * size;
}

}  // namespace

RankRunner::RankRunner(MachineState& machine, std::int64_t rank)
    : machine_(machine), rank_(rank), sequencer_(machine.tables, rank, *this) {
  running_.resize(static_cast<std::size_t>(machine.tables.queues));
  stats_.kernels.resize(machine.profiles.size() + machine.opaque.size());
  stats_.phase_fs.resize(machine.tables.phases.size(), 0);
  stats_.labels.resize(machine.plan->labels.size());
}

void RankRunner::attach(modules::ComputeUnit& player, modules::CcCore& cc,
                        modules::HostPort& host) {
  player_ = &player;
  cc_ = &cc;
  host_ = &host;
}

void RankRunner::start() {
  sequencer_.start();
  if (sequencer_.finished()) {
    --machine_.unfinished;
    stats_.finished_at = machine_.context.now();
  }
}

const trace::Op& RankRunner::op_of(const Ticket& t) const {
  return machine_.program->blocks[static_cast<std::size_t>(t.block)]
      .ops[static_cast<std::size_t>(t.op)];
}

const compile::OpPlan& RankRunner::plan_of(const Ticket& t) const {
  return machine_.plan->ops[static_cast<std::size_t>(t.block)][static_cast<std::size_t>(t.op)];
}

// Books the time since the last change to the class of the state until now. Kernel time is booked
// when the kernel ends, which knows its compute and memory parts.
void RankRunner::settle() {
  const base::Time now = machine_.context.now();
  const std::int64_t elapsed = (now - settled_).count();
  settled_ = now;
  if (kernel_running_ || elapsed == 0) return;
  const TimeClass c = collectives_ > 0 ? TimeClass::ExposedCommunication
                      : host_ops_ > 0  ? TimeClass::HostInput
                                       : TimeClass::Bubble;
  stats_.class_fs[static_cast<std::size_t>(c)] += elapsed;
}

void RankRunner::enter_phase(std::int32_t phase) {
  if (phase == phase_) return;
  settle_phase();
  phase_ = phase;
}

void RankRunner::settle_phase() {
  const base::Time now = machine_.context.now();
  stats_.phase_fs[static_cast<std::size_t>(phase_)] += (now - phase_since_).count();
  phase_since_ = now;
}

void RankRunner::issue(std::int32_t queue, const Ticket& t) {
  settle();
  enter_phase(t.phase);
  running_[static_cast<std::size_t>(queue)] = {t, machine_.context.now(), true};
  const trace::Op& op = op_of(t);
  if (queue == kQueueCompute)
    issue_kernel(t);
  else if (const auto* p = std::get_if<trace::PointToPoint>(&op.body))
    issue_message(queue, t, *p);
  else if (queue == kQueueHost)
    issue_host(queue, t);
  else
    issue_collective(queue, t);
}

void RankRunner::issue_collective(std::int32_t queue, const Ticket& t) {
  const auto& c = std::get<trace::Collective>(op_of(t).body);
  const compile::OpPlan& plan = plan_of(t);
  const compile::GroupSet& set =
      machine_.plan->group_sets[static_cast<std::size_t>(plan.collective)];
  const auto me = static_cast<std::size_t>(rank_);
  const compile::GroupPlan& group = set.groups[static_cast<std::size_t>(set.group_of_rank[me])];
  const auto n = static_cast<std::int64_t>(group.members.size());
  modules::CollectiveJob job;
  job.queue = queue;
  job.set = plan.collective;
  job.program = compile::collective_program(c, compile::shape_of(set, rank_, plan.way));
  ++collectives_;

  auto& chain = machine_.chains[static_cast<std::size_t>(plan.collective)]
                               [static_cast<std::size_t>(set.group_of_rank[me])];
  GroupChain::Entry& entry = chain.open[cc_->next_sequence(plan.collective)];
  entry.starts.resize(group.members.size(), compile::kNotStarted);
  entry.starts[static_cast<std::size_t>(set.position_of_rank[me])] = sequencer_.chain_start(t);
  LabelStats& label = machine_.labels[static_cast<std::size_t>(plan.label)];
  if (!label.used) {
    label.used = true;
    label.in_bytes = c.in;
    label.out_bytes = c.out;
    label.ranks = n;
    label.bus_bytes = bus_bytes(c, n);
    label.algorithm = job.program.algorithm;
    if (*plan.reason != '\0') label.algorithm += fmt::format(", {}", plan.reason);
    label.worst_link = plan.way == compile::Way::Ring ? set.ring.worst_link : set.mesh.worst_link;
  }
  cc_->start(job);
}

void RankRunner::end_collective(const Ticket& t, base::Time start) {
  const base::Time now = machine_.context.now();
  const auto& c = std::get<trace::Collective>(op_of(t).body);
  const compile::OpPlan& plan = plan_of(t);
  const compile::GroupSet& set =
      machine_.plan->group_sets[static_cast<std::size_t>(plan.collective)];
  const auto me = static_cast<std::size_t>(rank_);
  const auto g = static_cast<std::size_t>(set.group_of_rank[me]);
  const compile::GroupPlan& group = set.groups[g];
  const auto n = static_cast<std::int64_t>(group.members.size());
  LabelCount& label = stats_.labels[static_cast<std::size_t>(plan.label)];
  ++label.members;
  label.total_fs += (now - start).count();
  if (group.members.front() == rank_) ++label.instances;

  auto& open = machine_.chains[static_cast<std::size_t>(plan.collective)][g].open;
  const auto it = open.find(cc_->next_sequence(plan.collective) - 1);
  TRN3SIM_CHECK(it != open.end(), "collective ended twice");
  const compile::CollectiveProgram program =
      compile::collective_program(c, compile::shape_of(set, rank_, plan.way));
  const base::Rate cap =
      compile::dma_rate(machine_.run->system.chip, machine_.plan->places[me], false);
  sequencer_.set_chain_end(
      t, compile::least_end(program, group, *machine_.graph, machine_.run->system.chip, cap,
                            it->second.starts, set.position_of_rank[me]));
  if (++it->second.done == n) open.erase(it);
}

void RankRunner::issue_message(std::int32_t queue, const Ticket& t, const trace::PointToPoint& op) {
  const base::Mesh& mesh = machine_.program->header.mesh;
  const std::int64_t peer =
      mesh.with_coordinate(rank_, op.axis, mesh.coordinate(rank_, op.axis) + op.offset);
  sequencer_.set_chain_end(t, sequencer_.chain_start(t));
  if (op.send)
    cc_->send(queue, peer, machine_.plan->message_routes.at({rank_, peer}), base::Bytes(op.bytes),
              op.tag);
  else
    cc_->receive(queue, peer, op.tag);
}

void RankRunner::issue_host(std::int32_t queue, const Ticket& t) {
  ++host_ops_;
  const trace::Op& op = op_of(t);
  sequencer_.set_chain_end(t, sequencer_.chain_start(t));
  if (const auto* d = std::get_if<trace::Delay>(&op.body)) {
    host_->delay(queue, base::nanoseconds(d->ns));
    return;
  }
  const auto& m = std::get<trace::Memory>(op.body);
  // A store to the host reads HBM; a store to HBM writes it.
  const bool reads = m.store != (m.space == trace::MemorySpace::Hbm);
  cc_->count_memory(reads ? m.bytes : 0, reads ? 0 : m.bytes);
  std::size_t kind = (m.space == trace::MemorySpace::Storage ? 2U : 0U) + (m.store ? 1U : 0U);
  if (m.space == trace::MemorySpace::Hbm) kind = 4;
  modules::Message message;
  message.route = &machine_.host_routes[static_cast<std::size_t>(rank_)][kind];
  message.order = static_cast<std::uint64_t>(rank_);
  message.bytes = base::Bytes(m.bytes);
  message.sink = host_;
  message.queue = queue;
  machine_.network.fabric->send(message);
}

void RankRunner::transfer_ended(std::int32_t queue) {
  const Running r = running_[static_cast<std::size_t>(queue)];
  settle();
  if (machine_.timeline != nullptr) record(queue, r.start, -1);
  if (queue == kQueueHost) {
    --host_ops_;
  } else if (queue >= kQueueStream0) {
    end_collective(r.ticket, r.start);
    --collectives_;
  }
  complete(queue);
}

void RankRunner::record(std::int32_t queue, base::Time start, std::int64_t kernel) const {
  machine_.timeline->ended(rank_, queue, running_[static_cast<std::size_t>(queue)].ticket,
                           sequencer_, start, kernel);
}

void RankRunner::complete(std::int32_t queue) {
  const Ticket t = running_[static_cast<std::size_t>(queue)].ticket;
  running_[static_cast<std::size_t>(queue)].busy = false;
  sequencer_.complete(queue, t);
  ++machine_.ops_done;
  if ((machine_.ops_done & kProgressMask) == 0 && machine_.progress)
    machine_.progress(
        {machine_.ops_done, machine_.ops_total, machine_.context.now(), "simulating"});
  if (sequencer_.finished() && stats_.finished_at.count() == 0) {
    stats_.finished_at = machine_.context.now();
    --machine_.unfinished;
    machine_.end = std::max(machine_.end, machine_.context.now());
  }
}

void RankRunner::close(base::Time end) {
  TRN3SIM_CHECK(!kernel_running_, "a kernel is still running at the end");
  const std::int64_t rest = (end - settled_).count();
  stats_.class_fs[static_cast<std::size_t>(TimeClass::Bubble)] += rest;
  settled_ = end;
  stats_.phase_fs[static_cast<std::size_t>(phase_)] += (end - phase_since_).count();
  phase_since_ = end;
}

void RankRunner::loop_boundary(const LoopBoundary& b) {
  if (machine_.skipper != nullptr) machine_.skipper->boundary(rank_, b);
}

bool RankRunner::fingerprint(base::StateHash& hash, const LoopBoundary& loop,
                             const std::vector<bool>& sets) {
  settle_phase();
  const base::Time now = machine_.context.now();
  sequencer_.fingerprint(hash, loop.loop, loop.iteration, loop.chain);
  for (std::size_t q = 0; q < running_.size(); ++q) {
    const Running& r = running_[q];
    const bool active = static_cast<std::int32_t>(q) == kQueueCompute ? kernel_running_ : r.busy;
    hash.add(active ? 1 : 0);
    if (!active) continue;
    if (!sequencer_.inside(r.ticket, loop.loop)) return false;  // work from outside the loop
    hash.add(sequencer_.stable_frame(r.ticket));
    hash.add(r.ticket.op);
    hash.add(r.start, now);
  }
  hash.add(pieces_.left);
  hash.add(pieces_.last);
  hash.add(static_cast<std::int64_t>(pieces_.kernel));
  player_->fingerprint(hash);
  hash.add(kernel_running_ ? 1 : (settled_ - now).count());
  hash.add(collectives_);
  hash.add(host_ops_);
  hash.add(phase_);
  host_->fingerprint(hash);
  return cc_->fingerprint(hash, sets);
}

void RankRunner::jump(const LoopBoundary& loop, std::int64_t iterations, base::Time delta,
                      base::Time chain) {
  sequencer_.jump(loop.loop, iterations, chain);
  for (Running& r : running_) r.start += delta;
  pieces_.start += delta;
  settled_ += delta;
  player_->shift(delta);
  phase_since_ += delta;
  host_->shift(delta);
  cc_->shift(delta);
}

std::string RankRunner::waiting() const {
  std::string text = fmt::format("rank {}: {}", rank_, cc_->waiting());
  for (const Ticket& t : sequencer_.outstanding()) {
    const std::vector<std::string> needs = sequencer_.unmet_dependencies(t);
    std::string list;
    for (const std::string& n : needs) list += (list.empty() ? "" : ", ") + n;
    text += fmt::format("op {} (line {}) waits for {}; ", op_of(t).id, op_of(t).line,
                        list.empty() ? std::string("its queue") : list);
  }
  return text;
}

}  // namespace trn3sim::sim
