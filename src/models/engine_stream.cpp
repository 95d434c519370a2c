// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/engine_stream.hpp"

#include <algorithm>
#include <optional>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include <fmt/format.h>

namespace trn3sim::models {

EngineStream::EngineStream(const config::ChipSpec& chip, Engine engine, std::int32_t core)
    : chip_(&chip),
      engine_(engine),
      core_(core),
      edges_(engine_clock(chip, engine)),
      engine_latency_(chip.sync.engine_cycles),
      dma_latency_(chip.sync.dma_to_engine),
      pipeline_(chip.tensor.fill_cycles, chip.tensor.matmul_overhead_cycles,
                chip.tensor.background_transpose,
                engine == Engine::Tensor ? DidtLimiter(chip.tensor) : DidtLimiter()) {}

EngineStream::Op EngineStream::decode(const TileProgram& program,
                                      const Instruction& instruction) const {
  Op op;
  op.op = instruction.op;
  op.cycles = instruction_cost(instruction, engine_, *chip_).cycles;
  op.latency = access_latency(instruction, engine_);
  op.dma = instruction.dma;
  op.ports = shared_ports(instruction, engine_, *chip_);
  if (instruction.op == Opcode::DmaStart) {
    op.kind = Kind::Dma;
    const DmaTransfer& t = program.transfers.at(std::size_t(instruction.dma));
    if (t.direction == DmaDirection::HbmToSbuf)
      op.ahead = program.operands.at(std::size_t(t.operand)).weight ? Ahead::Weights : Ahead::Loads;
  } else if (instruction.op == Opcode::Nop)
    op.kind = Kind::Nop;
  else
    op.kind = engine_ == Engine::Tensor ? Kind::Tensor : Kind::Lane;
  for (const SemaphoreWait& w : instruction.waits)
    if (w.count > 0) op.wait[op.waits++] = w;
  for (const SemaphoreSignal& s : instruction.signals)
    if (s.count > 0) op.signal[op.signals++] = s;
  return op;
}

void EngineStream::load(const TileProgram& program, const CoreProgram& core, Ahead ahead) {
  ahead_ = ahead;
  nodes_ = core.streams[static_cast<std::size_t>(engine_)];
  execution_counts(program, nodes_);  // checks the loops
  ops_.clear();
  std::vector<std::int32_t> op_of(program.instructions.size(), -1);
  for (StreamNode& node : nodes_) {
    if (node.kind != StreamNode::Kind::Instruction) continue;
    std::int32_t& index = op_of[std::size_t(node.index)];
    if (index < 0) {
      index = static_cast<std::int32_t>(ops_.size());
      ops_.push_back(decode(program, program.instructions[std::size_t(node.index)]));
    }
    node.index = index;
  }
  computes_ = std::any_of(ops_.begin(), ops_.end(), [](const Op& op) {
    return op.kind == Kind::Lane || op.kind == Kind::Tensor;
  });
  ports_ = contested_ = asking_ = 0;
  for (const Op& op : ops_) ports_ |= op.ports;
  loops_.clear();
  intervals_.clear();
  stalls_.assign(core.semaphores.size(), 0);
  records_.clear();
  unrecorded_ = 0;
  pipeline_.reset();
  position_ = 0;
  free_ = end_ = busy_ = active_ = active_until_ = executed_ = last_compute_ = 0;
  first_compute_ = -1;
}

void EngineStream::release(base::Time at) {
  ahead_ = Ahead::Everything;
  free_ = std::max(free_, edges_.edge_at_or_after(at));
}

void EngineStream::continue_limiter(const DidtLimiter& before, base::Time ago) {
  limiter() = before;
  limiter().shift(ago.count() >= 0 ? edges_.edge_at_or_after(ago)
                                   : -edges_.edge_at_or_after(base::Time(-ago.count())));
}

void EngineStream::under_way(std::int64_t start, std::int64_t end) {
  active_ += std::max<std::int64_t>(0, end - std::max(start, active_until_));
  active_until_ = std::max(active_until_, end);
}

void EngineStream::occupy(std::int64_t start, std::int64_t end) {
  busy_ += end - start;
  if (!intervals_.empty() && intervals_.back().end >= start)
    intervals_.back().end = end;
  else
    intervals_.push_back({start, end});
}

std::int64_t EngineStream::issue(const Op& op, std::int64_t ready) {
  if (op.kind == Kind::Tensor) {
    const TensorPipeline::Slot slot = pipeline_.issue(op.op, op.cycles, ready);
    if (slot.array) occupy(slot.start, slot.end);
    under_way(slot.start, slot.visible);
    if (record_limit_ > 0) note(op, slot.start, slot.end);
    if (first_compute_ < 0) first_compute_ = slot.start;
    last_compute_ = std::max(last_compute_, slot.end);
    free_ = slot.start;  // the pipeline keeps the order of the rest
    return slot.visible;
  }
  const std::int64_t start = std::max(free_, ready);
  free_ = start + op.cycles;
  if (record_limit_ > 0 && op.kind != Kind::Nop) note(op, start, free_);
  if (op.kind == Kind::Lane) {
    occupy(start, free_);
    under_way(start, free_ + op.latency);
    if (first_compute_ < 0) first_compute_ = start;
    last_compute_ = free_;
  }
  return free_;
}

void EngineStream::note(const Op& op, std::int64_t start, std::int64_t end) {
  if (records_.size() < record_limit_)
    records_.push_back({op.op, op.dma, start, end});
  else
    ++unrecorded_;
}

std::int64_t EngineStream::take(const Op& op, SemaphoreBank& semaphores) {
  std::int64_t ready = free_;
  std::uint16_t last = 0;
  for (unsigned w = 0; w < op.waits; ++w) {
    const SemaphoreBank::Taken t = semaphores.take(op.wait[w].id, op.wait[w].count);
    std::int64_t at = free_;
    if (t.source == TokenSource::Dma)
      at = edges_.edge_at_or_after(t.at + dma_latency_);
    else if (t.source == TokenSource::Engine)
      at = edges_.edge_at_or_after(t.at) + engine_latency_;
    if (at <= ready) continue;
    ready = at;
    last = op.wait[w].id;
  }
  // TensorE issues ahead of its array.
  const std::int64_t able = std::max(free_, pipeline_.array_free());
  if (ready > able) stalls_[last] += ready - able;
  return ready;
}

void EngineStream::enter_loops() {
  for (; position_ != nodes_.size(); ++position_) {
    const StreamNode& node = nodes_[position_];
    if (node.kind == StreamNode::Kind::Instruction) return;
    if (node.kind == StreamNode::Kind::LoopBegin) {
      loops_.push_back({static_cast<std::uint32_t>(position_) + 1, node.index});
    } else if (--loops_.back().left > 0) {
      position_ = loops_.back().begin - 1;
    } else {
      loops_.pop_back();
    }
  }
}

std::uint32_t EngineStream::execute(const Op& op, std::int64_t ready, SemaphoreBank& semaphores,
                                    std::vector<DmaTrigger>& triggers) {
  const std::int64_t visible = issue(op, ready);
  end_ = std::max(end_, visible);
  ++executed_;
  ++position_;
  if (op.kind == Kind::Dma)
    triggers.push_back({edges_.edge(visible), core_, static_cast<std::int32_t>(engine_), op.dma});
  std::uint32_t woken = 0;
  if (op.signals > 0) {
    const base::Time at = edges_.edge(visible);
    for (unsigned s = 0; s < op.signals; ++s)
      woken |= semaphores.post(op.signal[s].id, op.signal[s].count, at);
  }
  return woken;
}

std::uint32_t EngineStream::run(SemaphoreBank& semaphores, std::vector<DmaTrigger>& triggers) {
  std::uint32_t woken = 0;
  if (asking_ != 0) return woken;
  for (;;) {
    enter_loops();
    if (done()) return woken;
    const Op& op = ops_[std::size_t(nodes_[position_].index)];
    if (op.ahead < ahead_) return woken;
    for (unsigned w = 0; w < op.waits; ++w)
      if (!semaphores.ready(op.wait[w].id, op.wait[w].count)) return woken;
    const std::int64_t ready = take(op, semaphores);
    if ((op.ports & contested_) != 0) {
      asking_ = op.ports & contested_;
      free_ = ready;
      return woken;
    }
    woken |= execute(op, ready, semaphores, triggers);
  }
}

base::Time EngineStream::grant(base::Time at, SemaphoreBank& semaphores,
                               std::vector<DmaTrigger>& triggers, std::uint32_t& woken) {
  TRN3SIM_CHECK(asking_ != 0, "a grant that nobody asked for");
  const Op& op = ops_[std::size_t(nodes_[position_].index)];
  asking_ = 0;
  woken |= execute(op, std::max(free_, edges_.edge_at_or_after(at)), semaphores, triggers);
  const base::Time back = edges_.edge(free_);
  woken |= run(semaphores, triggers);
  return back;
}

EngineStream::Lacks EngineStream::lacks(const SemaphoreBank& semaphores) const {
  Lacks lacks;
  if (done() || asking_ != 0) return lacks;
  const Op& op = ops_[std::size_t(nodes_[position_].index)];
  if (op.ahead < ahead_) return lacks;
  for (unsigned w = 0; w < op.waits; ++w) {
    if (semaphores.available(op.wait[w].id) >= op.wait[w].count) continue;
    const std::optional<Engine> signaller = semaphores.signalling_engine(op.wait[w].id);
    if (signaller)
      lacks.engines |= std::uint32_t{1} << static_cast<unsigned>(*signaller);
    else
      lacks.dma = true;
  }
  return lacks;
}

std::string EngineStream::waiting(const SemaphoreBank& semaphores) const {
  if (done()) return {};
  const StreamNode& node = nodes_[position_];
  if (node.kind != StreamNode::Kind::Instruction) return fmt::format("node {} (loop)", position_);
  const Op& op = ops_[std::size_t(node.index)];
  if (asking_ != 0) return fmt::format("{} (node {}) asks for a port", name(op.op), position_);
  std::string text = fmt::format("{} (node {})", name(op.op), position_);
  const char* separator = " waits for ";
  for (unsigned w = 0; w < op.waits; ++w) {
    const SemaphoreWait& wait = op.wait[w];
    const std::int64_t has = semaphores.available(wait.id);
    if (has >= wait.count) continue;
    text += fmt::format("{}{} of semaphore {} (has {}, signalled by {})", separator, wait.count,
                        wait.id, has, semaphores.signaller(wait.id));
    separator = " and ";
  }
  return text;
}

}  // namespace trn3sim::models
