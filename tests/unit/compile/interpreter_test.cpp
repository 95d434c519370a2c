// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The checks that the tests of kernels rest on.
#include "compile/kernel/program_builder.hpp"
#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using models::Engine;
using models::Instruction;
using models::Opcode;

struct TwoStreams {
  models::TileProgram program;
  TwoStreams() { program.cores.resize(1); }
  CoreBuilder builder() { return CoreBuilder(program, program.cores[0]); }
  test::ProgramRun run() { return test::ProgramInterpreter(program, test::trainium3()).run(); }
};

Instruction copy(Semaphore wait, Semaphore signal) {
  Instruction i;
  i.op = Opcode::TensorCopy;
  i.rows = 128;
  i.elements = 64;
  add_wait(i, wait);
  add_signal(i, signal);
  return i;
}

TEST(ProgramInterpreter, MissingTokenIsADeadlock) {
  TwoStreams t;
  CoreBuilder b = t.builder();
  const Semaphore s = b.semaphore();
  b.emit(Engine::Scalar, copy({}, s));
  b.loop(Engine::Vector, 2, [&] { b.emit(Engine::Vector, copy(s, {})); });
  EXPECT_THROW(t.run(), std::runtime_error);
}

TEST(ProgramInterpreter, TwoWaitingStreamsAreRefused) {
  TwoStreams t;
  CoreBuilder b = t.builder();
  const Semaphore s = b.semaphore(2);
  b.emit(Engine::Scalar, copy(s, {}));
  b.emit(Engine::Vector, copy(s, {}));
  EXPECT_THROW(t.run(), std::runtime_error);
}

TEST(ProgramInterpreter, TwoSignallingStreamsAreRefused) {
  TwoStreams t;
  CoreBuilder b = t.builder();
  const Semaphore s = b.semaphore();
  b.emit(Engine::Scalar, copy({}, s));
  b.emit(Engine::Vector, copy({}, s));
  EXPECT_THROW(t.run(), std::runtime_error);
}

// Nested loops multiply, equal neighbours become one loop, empty loops leave no nodes.
TEST(ProgramBuilder, RunsOfEqualStepsAreLoops) {
  TwoStreams t;
  CoreBuilder b = t.builder();
  const std::vector<int> steps = {1, 1, 1, 2, 1};
  b.loop(Engine::Vector, 10, [&] {
    b.runs(Engine::Vector, steps, [&](int) { b.emit(Engine::Vector, copy({}, {})); });
  });
  b.loop(Engine::Scalar, 10, [] {});
  EXPECT_EQ(t.run().instructions, 50);
  // Outer begin and end, inner begin and end, three instructions.
  EXPECT_EQ(t.program.cores[0].streams[static_cast<std::size_t>(Engine::Vector)].size(), 7U);
  EXPECT_TRUE(t.program.cores[0].streams[static_cast<std::size_t>(Engine::Scalar)].empty());
}

}  // namespace
}  // namespace trn3sim::compile
