// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/sequencer.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::sim {
namespace {

constexpr std::int64_t kWindow = 256;  // fetched ops that are not done, per rank

bool is_nesting(const trace::Op& op) {
  return std::holds_alternative<trace::Call>(op.body) ||
         std::holds_alternative<trace::Repeat>(op.body);
}

std::int32_t queue_of(const trace::Op& op, const compile::OpPlan& plan, std::int64_t streams) {
  if (is_nesting(op) || plan.fused) return kQueueNone;
  if (std::holds_alternative<trace::Collective>(op.body))
    return kQueueStream0 + static_cast<std::int32_t>(plan.collective % streams);
  if (const auto* p = std::get_if<trace::PointToPoint>(&op.body))
    return p->send ? kQueueSend : kQueueReceive;
  if (std::holds_alternative<trace::Memory>(op.body) ||
      std::holds_alternative<trace::Delay>(op.body))
    return kQueueHost;
  return kQueueCompute;
}

BlockInfo block_info(const trace::Block& block, const std::vector<compile::OpPlan>& plan,
                     std::int64_t streams) {
  BlockInfo info;
  const std::size_t n = block.ops.size();
  info.successors.resize(n);
  info.dependencies.resize(n, 0);
  info.is_out.resize(n, block.out.empty());
  info.queue.resize(n);
  for (std::int32_t o : block.out) info.is_out[static_cast<std::size_t>(o)] = true;
  info.outs = static_cast<std::int32_t>(std::count(info.is_out.begin(), info.is_out.end(), true));
  for (std::size_t i = 0; i < n; ++i) {
    const trace::Op& op = block.ops[i];
    for (std::int32_t d : op.deps) {
      if (d == trace::kEntry)
        info.entry_successors.push_back(static_cast<std::int32_t>(i));
      else
        info.successors[static_cast<std::size_t>(d)].push_back(static_cast<std::int32_t>(i));
      ++info.dependencies[i];
    }
    info.queue[i] = queue_of(op, plan[i], streams);
  }
  return info;
}

}  // namespace

SequencerTables make_tables(const trace::Program& program, const compile::Plan& plan,
                            std::int64_t streams) {
  SequencerTables t;
  t.program = &program;
  t.plan = &plan;
  t.phases = {""};
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const trace::Block& block = program.blocks[b];
    t.blocks.push_back(block_info(block, plan.ops[b], streams));
    const auto known = std::find(t.phases.begin(), t.phases.end(), block.phase);
    t.block_phase.push_back(static_cast<std::int32_t>(known - t.phases.begin()));
    if (known == t.phases.end()) t.phases.push_back(block.phase);
  }
  t.queues = kQueueStream0 + static_cast<std::int32_t>(streams);
  return t;
}

Sequencer::Sequencer(const SequencerTables& tables, std::int64_t rank, IssueSink& sink)
    : tables_(tables), rank_(rank), sink_(sink), queues_(static_cast<std::size_t>(tables.queues)) {}

std::int32_t Sequencer::make_frame(std::int32_t block, std::int32_t parent, std::int32_t parent_op,
                                   std::int64_t iteration, std::int64_t iterations) {
  std::int32_t id;
  if (free_frames_.empty()) {
    id = static_cast<std::int32_t>(frames_.size());
    frames_.emplace_back();
  } else {
    id = free_frames_.back();
    free_frames_.pop_back();
  }
  const BlockInfo& info = tables_.blocks[static_cast<std::size_t>(block)];
  const std::int32_t own_phase = tables_.block_phase[static_cast<std::size_t>(block)];
  const std::int32_t parent_phase =
      parent >= 0 ? frames_[static_cast<std::size_t>(parent)].phase : 0;
  Frame& f = frames_[static_cast<std::size_t>(id)];
  std::vector<std::int32_t> waits = std::move(f.waits);
  std::vector<base::Time> chain = std::move(f.chain);
  std::vector<bool> done = std::move(f.done);
  f = Frame{};
  f.block = block;
  f.parent = parent;
  f.parent_op = parent_op;
  f.iteration = iteration;
  f.iterations = iterations;
  f.outs_left = info.outs;
  f.ops_left = static_cast<std::int32_t>(info.dependencies.size());
  f.phase = own_phase != 0 ? own_phase : parent_phase;
  f.serial = next_serial_++;
  f.loop = path_of(parent, parent_op);
  f.used = true;
  ++live_frames_;
  waits.assign(info.dependencies.begin(), info.dependencies.end());
  chain.assign(info.dependencies.size(), base::Time(0));
  done.assign(info.dependencies.size(), false);
  f.waits = std::move(waits);
  f.chain = std::move(chain);
  f.done = std::move(done);
  return id;
}

void Sequencer::start() {
  const std::int32_t top = make_frame(0, -1, -1, 0, 1);
  fetch_stack_.push_back(top);
  draining_ = true;
  enter_entry(top, base::Time(0));
  if (tables_.blocks[0].outs == 0) outs_complete(top);
  draining_ = false;
  drain();
}

// Fetching and finishing alternate until neither can go on.
void Sequencer::drain() {
  if (draining_) return;
  draining_ = true;
  for (;;) {
    while (!finished_ops_.empty()) {
      const auto [frame, op] = finished_ops_.back();
      finished_ops_.pop_back();
      finish(frame, op);
    }
    const std::int64_t before = in_window_;
    const std::size_t depth = fetch_stack_.size();
    fetch();
    if (finished_ops_.empty() && in_window_ == before && fetch_stack_.size() == depth) break;
  }
  draining_ = false;
  for (std::int32_t q = 0; q < tables_.queues; ++q) issue_ready(q);
}

void Sequencer::fetch() {
  while (!fetch_stack_.empty() && in_window_ < kWindow) {
    const std::int32_t id = fetch_stack_.back();
    Frame& f = frames_[static_cast<std::size_t>(id)];
    const auto ops = static_cast<std::int32_t>(f.waits.size());
    if (f.position < ops) {
      if (!fetch_op(id)) return;
      continue;
    }
    // An iteration starts when its predecessor's outs are done, so one ahead is enough.
    if (f.iteration + 1 < f.iterations && !f.entry_done) return;
    f.fetched = true;
    fetch_stack_.pop_back();
    if (f.iteration + 1 < f.iterations) {
      const std::int32_t next =
          make_frame(f.block, f.parent, f.parent_op, f.iteration + 1, f.iterations);
      Frame& now = frames_[static_cast<std::size_t>(id)];  // make_frame may have moved it
      fetch_stack_.push_back(next);
      if (now.outs_done)
        enter_entry(next, now.out_chain);
      else
        now.next_iteration = next;
    }
    release_if_over(id);
  }
}

// False if nothing was fetched.
bool Sequencer::fetch_op(std::int32_t id) {
  const std::int32_t index = frames_[static_cast<std::size_t>(id)].position++;
  const std::int32_t block_id = frames_[static_cast<std::size_t>(id)].block;
  const trace::Op& op = tables_.program->blocks[static_cast<std::size_t>(block_id)]
                            .ops[static_cast<std::size_t>(index)];
  ++in_window_;
  const bool here = trace::runs_on(*tables_.program, op, rank_);
  std::int32_t child_block = -1;
  std::int64_t times = 1;
  if (const auto* call = std::get_if<trace::Call>(&op.body)) child_block = call->block;
  if (const auto* repeat = std::get_if<trace::Repeat>(&op.body)) {
    child_block = repeat->block;
    times = repeat->times;
  }
  const bool waits =
      frames_[static_cast<std::size_t>(id)].waits[static_cast<std::size_t>(index)] > 0;
  if (here && child_block >= 0) {
    const std::int32_t child = make_frame(child_block, id, index, 0, times);
    fetch_stack_.push_back(child);
    if (!waits)
      enter_entry(child,
                  frames_[static_cast<std::size_t>(id)].chain[static_cast<std::size_t>(index)]);
    return true;
  }
  const std::int32_t queue = here ? tables_.blocks[static_cast<std::size_t>(block_id)]
                                        .queue[static_cast<std::size_t>(index)]
                                  : kQueueNone;
  if (queue == kQueueNone) {
    if (!waits) finished_ops_.emplace_back(id, index);
    return true;
  }
  queues_[static_cast<std::size_t>(queue)].waiting.push_back(
      {id, index, block_id, frames_[static_cast<std::size_t>(id)].phase});
  return true;
}

void Sequencer::enter_entry(std::int32_t id, base::Time chain) {
  Frame& f = frames_[static_cast<std::size_t>(id)];
  f.entry_done = true;
  f.entry_chain = chain;
  const BlockInfo& info = tables_.blocks[static_cast<std::size_t>(f.block)];
  if (info.outs == 0 && !f.outs_done) {
    outs_complete(id);
    return;
  }
  if (f.iterations > 1) {
    const Frame& parent = frames_[static_cast<std::size_t>(f.parent)];
    sink_.loop_boundary({f.loop, parent.block, f.parent_op, f.iteration, f.iterations, chain});
  }
  for (std::int32_t op : info.entry_successors) satisfy(id, op, chain);
}

void Sequencer::satisfy(std::int32_t id, std::int32_t op, base::Time chain) {
  Frame& f = frames_[static_cast<std::size_t>(id)];
  base::Time& longest = f.chain[static_cast<std::size_t>(op)];
  longest = std::max(longest, chain);
  if (--f.waits[static_cast<std::size_t>(op)] == 0) ready(id, op);
}

// All dependencies are done; if the op has been fetched and needs no resource, it goes on now.
void Sequencer::ready(std::int32_t id, std::int32_t index) {
  const Frame& f = frames_[static_cast<std::size_t>(id)];
  if (index >= f.position) return;  // fetched later, which looks at waits itself
  const trace::Op& op = tables_.program->blocks[static_cast<std::size_t>(f.block)]
                            .ops[static_cast<std::size_t>(index)];
  const bool here = trace::runs_on(*tables_.program, op, rank_);
  if (here && is_nesting(op)) {
    const base::Time chain = f.chain[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const Frame& child = frames_[i];
      if (child.used && child.parent == id && child.parent_op == index && child.iteration == 0 &&
          !child.entry_done) {
        enter_entry(static_cast<std::int32_t>(i), chain);
        return;
      }
    }
    return;
  }
  const BlockInfo& info = tables_.blocks[static_cast<std::size_t>(f.block)];
  if (!here || info.queue[static_cast<std::size_t>(index)] == kQueueNone)
    finished_ops_.emplace_back(id, index);
}

void Sequencer::complete(std::int32_t queue, const Ticket& ticket) {
  if (queue >= 0) queues_[static_cast<std::size_t>(queue)].busy = false;
  ++completed_ops_;
  finished_ops_.emplace_back(ticket.frame, ticket.op);
  drain();
}

void Sequencer::finish(std::int32_t id, std::int32_t index) {
  --in_window_;
  Frame& f = frames_[static_cast<std::size_t>(id)];
  f.done[static_cast<std::size_t>(index)] = true;
  const base::Time chain = f.chain[static_cast<std::size_t>(index)];
  longest_chain_ = std::max(longest_chain_, chain);
  --f.ops_left;
  const BlockInfo& info = tables_.blocks[static_cast<std::size_t>(f.block)];
  for (std::int32_t s : info.successors[static_cast<std::size_t>(index)]) satisfy(id, s, chain);
  Frame& again = frames_[static_cast<std::size_t>(id)];
  if (info.is_out[static_cast<std::size_t>(index)]) {
    again.out_chain = std::max(again.out_chain, chain);
    if (--again.outs_left == 0) outs_complete(id);
  }
  release_if_over(id);
}

void Sequencer::outs_complete(std::int32_t id) {
  Frame& f = frames_[static_cast<std::size_t>(id)];
  f.outs_done = true;
  const base::Time chain = std::max(f.out_chain, f.entry_chain);
  f.out_chain = chain;
  if (f.iteration + 1 < f.iterations) {
    if (f.next_iteration >= 0) enter_entry(f.next_iteration, chain);
    return;
  }
  if (f.parent < 0) {
    return;
  }
  Frame& parent = frames_[static_cast<std::size_t>(f.parent)];
  base::Time& slot = parent.chain[static_cast<std::size_t>(f.parent_op)];
  slot = std::max(slot, chain);
  finished_ops_.emplace_back(f.parent, f.parent_op);
}

void Sequencer::release_if_over(std::int32_t id) {
  Frame& f = frames_[static_cast<std::size_t>(id)];
  if (!f.used || !f.fetched || f.ops_left > 0 || !f.outs_done) return;
  f.used = false;
  --live_frames_;
  free_frames_.push_back(id);
}

void Sequencer::issue_ready(std::int32_t queue) {
  Queue& q = queues_[static_cast<std::size_t>(queue)];
  if (q.busy || q.waiting.empty()) return;
  const Ticket t = q.waiting.front();
  if (frames_[static_cast<std::size_t>(t.frame)].waits[static_cast<std::size_t>(t.op)] > 0) return;
  q.waiting.pop_front();
  q.busy = true;
  sink_.issue(queue, t);
}

base::Time Sequencer::chain_start(const Ticket& t) const {
  return frames_[static_cast<std::size_t>(t.frame)].chain[static_cast<std::size_t>(t.op)];
}

void Sequencer::set_chain_end(const Ticket& t, base::Time end) {
  base::Time& slot =
      frames_[static_cast<std::size_t>(t.frame)].chain[static_cast<std::size_t>(t.op)];
  slot = std::max(slot, end);
}

std::string Sequencer::iterations(const Ticket& ticket) const {
  std::string text;
  for (std::int32_t f = ticket.frame; f >= 0; f = frames_[static_cast<std::size_t>(f)].parent) {
    const Frame& frame = frames_[static_cast<std::size_t>(f)];
    if (frame.iterations == 1) continue;
    text = std::to_string(frame.iteration) + (text.empty() ? "" : "/") + text;
  }
  return text;
}

std::vector<Ticket> Sequencer::outstanding() const {
  std::vector<Ticket> list;
  for (const Queue& q : queues_)
    if (!q.waiting.empty()) list.push_back(q.waiting.front());
  return list;
}

std::vector<std::string> Sequencer::unmet_dependencies(const Ticket& t) const {
  std::vector<std::string> names;
  const Frame& f = frames_[static_cast<std::size_t>(t.frame)];
  const trace::Block& block = tables_.program->blocks[static_cast<std::size_t>(f.block)];
  for (std::int32_t d : block.ops[static_cast<std::size_t>(t.op)].deps) {
    if (d == trace::kEntry) {
      if (!f.entry_done) names.emplace_back("entry of block " + block.id);
    } else if (!f.done[static_cast<std::size_t>(d)]) {
      names.push_back(block.ops[static_cast<std::size_t>(d)].id);
    }
  }
  return names;
}

}  // namespace trn3sim::sim
