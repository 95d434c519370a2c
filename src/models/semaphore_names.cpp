// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/semaphore_names.hpp"

#include <algorithm>

#include "trn3sim/models/engine_cost.hpp"

#include <fmt/format.h>

namespace trn3sim::models {
namespace {

using Names = std::vector<std::string>;

template <class Slots>
void add(std::vector<Names>& all, const Slots& signals, const std::string& name) {
  for (const SemaphoreSignal& s : signals) {
    if (s.count == 0) continue;
    Names& names = all.at(s.id);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

}  // namespace

std::string transfer_name(const TileProgram& program, const DmaTransfer& t) {
  return fmt::format("{} of {} (queue {})",
                     t.direction == DmaDirection::HbmToSbuf ? "load" : "store",
                     program.operands.at(static_cast<std::size_t>(t.operand)).name, t.queue);
}

std::vector<std::string> semaphore_signallers(const TileProgram& program, const CoreProgram& core) {
  std::vector<Names> all(core.semaphores.size());
  for (std::size_t e = 0; e < kEngines; ++e)
    for (const StreamNode& node : core.streams[e]) {
      if (node.kind != StreamNode::Kind::Instruction) continue;
      const Instruction& i = program.instructions.at(static_cast<std::size_t>(node.index));
      add(all, i.signals, fmt::format("{} {}", name(static_cast<Engine>(e)), name(i.op)));
      if (i.op != Opcode::DmaStart) continue;
      const DmaTransfer& t = program.transfers.at(static_cast<std::size_t>(i.dma));
      add(all, t.signals, transfer_name(program, t));
    }
  std::vector<std::string> out;
  for (const Names& names : all)
    out.push_back(names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, " or ")));
  return out;
}

}  // namespace trn3sim::models
