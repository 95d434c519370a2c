// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/program_builder.hpp"

#include <limits>

namespace trn3sim::compile {
namespace {

using models::StreamNode;

template <class Slots>
void add_to(Slots& slots, Semaphore semaphore, std::int64_t count) {
  if (!semaphore) return;
  TRN3SIM_CHECK(count > 0 && count <= std::numeric_limits<std::uint16_t>::max(),
                "a semaphore count must be 1 .. 65535");
  for (auto& slot : slots) {
    if (slot.count == 0) {
      slot.id = static_cast<std::uint16_t>(semaphore.id);
      slot.count = static_cast<std::uint16_t>(count);
      return;
    }
  }
  TRN3SIM_CHECK(false, "no free semaphore slot");
}

std::vector<StreamNode>& stream_of(models::CoreProgram& core, models::Engine engine) {
  return core.streams[static_cast<std::size_t>(engine)];
}

}  // namespace

void add_wait(models::Instruction& instruction, Semaphore semaphore, std::int64_t count) {
  add_to(instruction.waits, semaphore, count);
}
void add_signal(models::Instruction& instruction, Semaphore semaphore, std::int64_t count) {
  add_to(instruction.signals, semaphore, count);
}
void add_signal(models::DmaTransfer& transfer, Semaphore semaphore, std::int64_t count) {
  add_to(transfer.signals, semaphore, count);
}

Semaphore CoreBuilder::semaphore(std::int64_t tokens) {
  core_->semaphores.push_back(static_cast<std::uint32_t>(tokens));
  return {static_cast<std::int32_t>(core_->semaphores.size()) - 1};
}

void CoreBuilder::emit(models::Engine engine, const models::Instruction& instruction) {
  stream_of(*core_, engine)
      .push_back({StreamNode::Kind::Instruction,
                  static_cast<std::int32_t>(program_->instructions.size())});
  program_->instructions.push_back(instruction);
}

void CoreBuilder::start(models::Engine engine, const models::DmaTransfer& transfer,
                        const std::vector<Wait>& waits) {
  TRN3SIM_CHECK(transfer.rows > 0 && transfer.row_bytes > 0, "an empty transfer");
  models::Instruction instruction;
  instruction.op = models::Opcode::DmaStart;
  instruction.dma = static_cast<std::int32_t>(program_->transfers.size());
  for (const Wait& w : waits) add_wait(instruction, w.semaphore, w.count);
  program_->transfers.push_back(transfer);
  emit(engine, instruction);
}

std::int32_t CoreBuilder::open(models::Engine engine, std::int64_t trips) {
  TRN3SIM_CHECK(trips <= std::numeric_limits<std::int32_t>::max(), "too many loop trips");
  auto& stream = stream_of(*core_, engine);
  stream.push_back({StreamNode::Kind::LoopBegin, static_cast<std::int32_t>(trips)});
  return static_cast<std::int32_t>(stream.size()) - 1;
}

void CoreBuilder::close(models::Engine engine, std::int32_t begin) {
  auto& stream = stream_of(*core_, engine);
  if (begin + 1 == static_cast<std::int32_t>(stream.size())) {
    stream.pop_back();  // nothing to repeat
  } else {
    stream.push_back({StreamNode::Kind::LoopEnd, begin});
  }
}

}  // namespace trn3sim::compile
