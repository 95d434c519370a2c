// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/dry_run.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/models/semaphore_names.hpp"

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::StreamNode;

class CoreWalk {
 public:
  CoreWalk(const models::TileProgram& program, const models::CoreProgram& core)
      : program_(program), core_(core), tokens_(core.semaphores.begin(), core.semaphores.end()) {}

  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t e = 0; e < models::kEngines; ++e) moved = advance(e) || moved;
    }
    return waiting();
  }

 private:
  struct Stream {
    std::size_t node = 0;
    std::vector<std::int32_t> left;
  };

  [[nodiscard]] const models::Instruction& at(std::size_t e) const {
    const StreamNode& node = core_.streams[e][streams_[e].node];
    return program_.instructions[static_cast<std::size_t>(node.index)];
  }

  // Runs stream `e` until it ends or lacks a token; whether it did anything.
  bool advance(std::size_t e) {
    bool moved = false;
    while (to_instruction(e)) {
      const models::Instruction& in = at(e);
      const bool ready = std::ranges::all_of(
          in.waits, [&](const auto& w) { return w.count == 0 || tokens_[w.id] >= w.count; });
      if (!ready) return moved;
      moved = true;
      for (const auto& w : in.waits)
        if (w.count > 0) tokens_[w.id] -= w.count;
      add(in.signals);
      if (in.dma >= 0) add(program_.transfers[static_cast<std::size_t>(in.dma)].signals);
      ++streams_[e].node;
    }
    return moved;
  }

  template <class Signals>
  void add(const Signals& signals) {
    for (const auto& s : signals)
      if (s.count > 0) tokens_[s.id] += s.count;
  }

  // Passes loop nodes; false at the end.
  bool to_instruction(std::size_t e) {
    const auto& nodes = core_.streams[e];
    Stream& s = streams_[e];
    while (s.node < nodes.size() && nodes[s.node].kind != StreamNode::Kind::Instruction) {
      const StreamNode& node = nodes[s.node];
      if (node.kind == StreamNode::Kind::LoopBegin) {
        s.left.push_back(node.index);
      } else if (--s.left.back() > 0) {
        s.node = static_cast<std::size_t>(node.index);
      } else {
        s.left.pop_back();
      }
      ++s.node;
    }
    return s.node < nodes.size();
  }

  std::string waiting() {
    std::string text;
    std::vector<std::string> names;
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      if (!to_instruction(e)) continue;
      if (names.empty()) names = models::semaphore_signallers(program_, core_);
      const models::Instruction& in = at(e);
      for (const auto& w : in.waits)
        if (w.count > 0 && tokens_[w.id] < w.count)
          text += fmt::format("{}{} {} waits for {}", text.empty() ? "" : ", ",
                              models::name(static_cast<models::Engine>(e)), models::name(in.op),
                              names[w.id]);
    }
    return text;
  }

  const models::TileProgram& program_;
  const models::CoreProgram& core_;
  std::vector<std::int64_t> tokens_;
  std::array<Stream, models::kEngines> streams_;
};

}  // namespace

std::string deadlock_of(const models::TileProgram& program) {
  for (const models::CoreProgram& core : program.cores)
    if (std::string text = CoreWalk(program, core).run(); !text.empty()) return text;
  return {};
}

}  // namespace trn3sim::compile
