// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Short hand for tile programs in tests.
#pragma once

#include <initializer_list>
#include <utility>

#include "trn3sim/models/instruction.hpp"

namespace trn3sim::test {

using models::Engine;
using models::Instruction;
using models::Opcode;

class TileBuilder {
 public:
  explicit TileBuilder(std::size_t cores = 1) { program_.cores.resize(cores); }

  std::uint16_t semaphore(std::uint32_t tokens = 0, std::size_t core = 0) {
    program_.cores[core].semaphores.push_back(tokens);
    return static_cast<std::uint16_t>(program_.cores[core].semaphores.size() - 1);
  }
  std::int32_t operand(std::int64_t bytes, bool weight = false) {
    program_.operands.push_back({"operand", bytes, weight});
    return static_cast<std::int32_t>(program_.operands.size() - 1);
  }
  std::int32_t transfer(models::DmaTransfer t) {
    program_.transfers.push_back(t);
    return static_cast<std::int32_t>(program_.transfers.size() - 1);
  }
  void add(Engine engine, const Instruction& i, std::size_t core = 0) {
    program_.instructions.push_back(i);
    node(engine, models::StreamNode::Kind::Instruction,
         static_cast<std::int32_t>(program_.instructions.size() - 1), core);
  }
  // Everything that `body` adds to `engine` runs `trips` times.
  template <class Body>
  void loop(Engine engine, std::int32_t trips, Body body, std::size_t core = 0) {
    const auto begin = static_cast<std::int32_t>(stream(engine, core).size());
    node(engine, models::StreamNode::Kind::LoopBegin, trips, core);
    body();
    node(engine, models::StreamNode::Kind::LoopEnd, begin, core);
  }
  void dma(Engine engine, std::int32_t transfer, models::SemaphoreWait wait = {},
           std::size_t core = 0) {
    Instruction i;
    i.op = Opcode::DmaStart;
    i.dma = transfer;
    i.waits[0] = wait;
    add(engine, i, core);
  }
  [[nodiscard]] const models::TileProgram& program() const { return program_; }
  models::TileProgram& program() { return program_; }

 private:
  std::vector<models::StreamNode>& stream(Engine engine, std::size_t core) {
    return program_.cores[core].streams[static_cast<std::size_t>(engine)];
  }
  void node(Engine engine, models::StreamNode::Kind kind, std::int32_t index, std::size_t core) {
    models::StreamNode n;
    n.kind = kind;
    n.index = index;
    stream(engine, core).push_back(n);
  }

  models::TileProgram program_;
};

inline Instruction load_stationary(std::int16_t rows, std::int16_t columns,
                                   base::DType dtype = base::DType::Bf16) {
  Instruction i;
  i.op = Opcode::LoadStationary;
  i.dtype = dtype;
  i.rows = rows;
  i.columns = columns;
  return i;
}

inline Instruction multiply(std::int16_t rows, std::int16_t columns, std::int32_t elements,
                            base::DType dtype = base::DType::Bf16) {
  Instruction i = load_stationary(rows, columns, dtype);
  i.op = Opcode::MultiplyMoving;
  i.destination = models::Space::Psum;
  i.elements = elements;
  return i;
}

inline Instruction lane(Opcode op, std::int32_t elements, std::int16_t rows = 128,
                        base::DType dtype = base::DType::Bf16) {
  Instruction i;
  i.op = op;
  i.dtype = dtype;
  i.rows = rows;
  i.elements = elements;
  return i;
}

inline models::DmaTransfer load(std::int32_t operand, std::int32_t rows, std::int32_t row_bytes,
                                std::int16_t queue = 0) {
  models::DmaTransfer t;
  t.operand = operand;
  t.rows = rows;
  t.row_bytes = row_bytes;
  t.queue = queue;
  return t;
}

}  // namespace trn3sim::test
