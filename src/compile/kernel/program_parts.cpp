// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/program_parts.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "compile/kernel/program_builder.hpp"

namespace trn3sim::compile {
namespace {

using models::CoreProgram;
using models::Engine;
using models::Instruction;
using models::StreamNode;
using models::TileProgram;

// A semaphore whose tokens are all back when the program so far is over: stores signal it when they
// complete, or it holds the free buffers of loads.
struct EndSemaphore {
  std::int32_t id = 0;
  std::int32_t waiter = -1;  // stream
  std::int64_t tokens = 0;   // left when everything is done
};

// Signals and waits of a semaphore by the program of one core, loops multiplied out.
std::vector<EndSemaphore> end_semaphores(const TileProgram& program, const CoreProgram& core) {
  std::vector<EndSemaphore> all(core.semaphores.size());
  std::vector<bool> stored(core.semaphores.size(), false);
  for (std::size_t s = 0; s < all.size(); ++s) {
    all[s] = {static_cast<std::int32_t>(s), -1, core.semaphores[s]};
  }
  for (std::size_t e = 0; e < models::kEngines; ++e) {
    const std::vector<std::int64_t> counts = models::execution_counts(program, core.streams[e]);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const Instruction& in = program.instructions[i];
      for (const auto& w : in.waits) {
        if (w.count == 0) continue;
        all[w.id].waiter = static_cast<std::int32_t>(e);
        all[w.id].tokens -= counts[i] * w.count;
      }
      for (const auto& g : in.signals) {
        if (g.count > 0) all[g.id].tokens += counts[i] * g.count;
      }
      if (in.dma < 0) continue;
      const models::DmaTransfer& t = program.transfers[static_cast<std::size_t>(in.dma)];
      for (const auto& g : t.signals) {
        if (g.count == 0) continue;
        all[g.id].tokens += counts[i] * g.count;
        if (t.direction == models::DmaDirection::SbufToHbm) stored[g.id] = true;
      }
    }
  }
  std::vector<EndSemaphore> out;
  for (std::size_t s = 0; s < all.size(); ++s) {
    const bool buffers = all[s].waiter == static_cast<std::int32_t>(Engine::Sync);
    if ((stored[s] || buffers) && all[s].tokens > 0)  // 0: an earlier part, all taken
      out.push_back(all[s]);
  }
  return out;
}

// SyncE goes on when everything so far is done: the streams that wait for buffers to come back take
// all of them and tell SyncE.
void wait_for_end(TileProgram& program, CoreProgram& core) {
  const std::vector<EndSemaphore> list = end_semaphores(program, core);
  CoreBuilder build(program, core);
  for (const EndSemaphore& s : list) {
    Instruction all_back;
    add_wait(all_back, {s.id}, s.tokens);
    const auto waiter = s.waiter < 0 ? Engine::Sync : static_cast<Engine>(s.waiter);
    if (waiter == Engine::Sync) {
      build.emit(Engine::Sync, all_back);
      continue;
    }
    const Semaphore stored = build.semaphore();
    add_signal(all_back, stored);
    build.emit(waiter, all_back);
    Instruction proceed;
    add_wait(proceed, stored);
    build.emit(Engine::Sync, proceed);
  }
}

}  // namespace

void ProgramParts::append(TileProgram part, const std::vector<std::string>& names) {
  TileProgram& program = program_;
  for (CoreProgram& core : program.cores) wait_for_end(program, core);
  TRN3SIM_CHECK(names.size() == part.operands.size(), "a name for each operand");
  const auto instructions = static_cast<std::int32_t>(program.instructions.size());
  const auto transfers = static_cast<std::int32_t>(program.transfers.size());
  std::vector<std::int32_t> operand_of;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto known = std::ranges::find(program.operands, names[i], &models::Operand::name);
    operand_of.push_back(static_cast<std::int32_t>(known - program.operands.begin()));
    if (known == program.operands.end())
      program.operands.push_back({names[i], part.operands[i].bytes, false});
  }
  if (program.cores.size() < part.cores.size()) program.cores.resize(part.cores.size());
  std::vector<std::uint16_t> shift;
  for (const CoreProgram& core : program.cores)
    shift.push_back(static_cast<std::uint16_t>(core.semaphores.size()));
  // Cores may share instructions, so their semaphores must move alike.
  const std::uint16_t base_id = *std::ranges::max_element(shift);
  for (CoreProgram& core : program.cores) core.semaphores.resize(base_id, 0);
  for (models::DmaTransfer& t : part.transfers) {
    t.operand = operand_of[static_cast<std::size_t>(t.operand)];
    for (auto& g : t.signals) g.id = static_cast<std::uint16_t>(g.id + (g.count > 0 ? base_id : 0));
    program.transfers.push_back(t);
  }
  for (Instruction& i : part.instructions) {
    if (i.dma >= 0) i.dma += transfers;
    for (auto& w : i.waits) w.id = static_cast<std::uint16_t>(w.id + (w.count > 0 ? base_id : 0));
    for (auto& g : i.signals) g.id = static_cast<std::uint16_t>(g.id + (g.count > 0 ? base_id : 0));
    program.instructions.push_back(i);
  }
  for (std::size_t c = 0; c < part.cores.size(); ++c) {
    CoreProgram& core = program.cores[c];
    core.semaphores.insert(core.semaphores.end(), part.cores[c].semaphores.begin(),
                           part.cores[c].semaphores.end());
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      const auto nodes = static_cast<std::int32_t>(core.streams[e].size());
      for (StreamNode node : part.cores[c].streams[e]) {
        if (node.kind == StreamNode::Kind::Instruction) node.index += instructions;
        if (node.kind == StreamNode::Kind::LoopEnd) node.index += nodes;
        core.streams[e].push_back(node);
      }
    }
  }
  program.sbuf_bytes_per_partition =
      std::max(program.sbuf_bytes_per_partition, part.sbuf_bytes_per_partition);
  program.psum_banks = std::max(program.psum_banks, part.psum_banks);
}

}  // namespace trn3sim::compile
