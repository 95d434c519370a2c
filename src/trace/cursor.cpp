// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/trace/program.hpp"

#include "trace/nested.hpp"

namespace trn3sim::trace {
namespace {

// Position of a frame whose block has just been left: the next step enters it again or drops it.
constexpr std::int32_t kLeft = -1;

}  // namespace

bool runs_on(const Program& program, const Op& op, std::int64_t rank) {
  for (const auto& [axis, coordinate] : op.when)
    if (program.header.mesh.coordinate(rank, axis) != coordinate) return false;
  return true;
}

Cursor::Cursor(const Program& program, std::int64_t rank) : program_(&program), rank_(rank) {
  stack_.push_back({0, 0, 0});
}

bool Cursor::runs_here(const Op& op) const {
  return op.when.empty() || runs_on(*program_, op, rank_);
}

Cursor::Step Cursor::next() {
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    const auto& ops = program_->blocks[static_cast<std::size_t>(frame.block)].ops;
    if (frame.position == kLeft) {
      Frame& parent = stack_[stack_.size() - 2];
      const Op& op = program_->blocks[static_cast<std::size_t>(parent.block)]
                         .ops[static_cast<std::size_t>(parent.position)];
      if (frame.iteration < nested_of(op).times) {
        frame.position = 0;
        return {Event::Enter, frame.block, parent.position, frame.iteration};
      }
      ++parent.position;
      stack_.pop_back();
      continue;
    }
    while (static_cast<std::size_t>(frame.position) < ops.size() &&
           !runs_here(ops[static_cast<std::size_t>(frame.position)]))
      ++frame.position;
    if (static_cast<std::size_t>(frame.position) < ops.size()) {
      const Nested nested = nested_of(ops[static_cast<std::size_t>(frame.position)]);
      if (nested.block < 0) return {Event::Op, frame.block, frame.position++, frame.iteration};
      const std::int32_t op = frame.position;
      stack_.push_back({nested.block, 0, 0});
      return {Event::Enter, nested.block, op, 0};
    }
    if (stack_.size() == 1) {
      stack_.pop_back();
      break;
    }
    frame.position = kLeft;
    return {Event::Leave, frame.block, stack_[stack_.size() - 2].position, frame.iteration++};
  }
  return {};
}

}  // namespace trn3sim::trace
