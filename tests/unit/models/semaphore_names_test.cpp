// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/semaphore_names.hpp"

#include "trn3sim/models/engine_stream.hpp"

#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using test::TileBuilder;

TEST(SemaphoreNames, SayWhoSignals) {
  TileBuilder t;
  const auto loaded = t.semaphore(), done = t.semaphore(), unused = t.semaphore(2);
  DmaTransfer load = test::load(t.operand(1 << 20), 128, 1024, 2);
  load.signals[0] = {loaded, 1};
  t.dma(Engine::Sync, t.transfer(load));
  Instruction mm = test::multiply(128, 128, 512);
  mm.waits[0] = {loaded, 1};
  mm.signals[0] = {done, 1};
  t.add(Engine::Tensor, mm);
  const auto names = semaphore_signallers(t.program(), t.program().cores[0]);
  EXPECT_EQ(names.at(loaded), "load of operand (queue 2)");
  EXPECT_EQ(names.at(done), "tensor multiply_moving");
  EXPECT_EQ(names.at(unused), "nobody");
}

// VectorE copies 100 cycles, then needs a token that ScalarE posts after 300: it waits for 200
// and the way between engines. A token that is there in time costs nothing.
TEST(Stalls, CountTheTimeWithoutATokenOnly) {
  const config::ChipSpec chip = test::test_chip();
  TileBuilder t;
  const auto late = t.semaphore(), early = t.semaphore(1);
  const Instruction copy = test::lane(Opcode::Select, 100);
  Instruction needs = copy, posts = test::lane(Opcode::Select, 300);
  needs.waits = {{{late, 1}, {early, 1}}};
  posts.signals[0] = {late, 1};
  t.add(Engine::Vector, copy);
  t.add(Engine::Vector, needs);
  t.add(Engine::Scalar, posts);
  SemaphoreBank bank;
  bank.load(t.program(), t.program().cores[0]);
  std::vector<DmaTrigger> triggers;
  EngineStream scalar(chip, Engine::Scalar, 0), vector(chip, Engine::Vector, 0);
  vector.record(1);
  scalar.load(t.program(), t.program().cores[0]);
  vector.load(t.program(), t.program().cores[0]);
  scalar.run(bank, triggers);
  vector.run(bank, triggers);
  EXPECT_EQ(vector.stalls().at(late), 200 + chip.sync.engine_cycles);
  EXPECT_EQ(vector.stalls().at(early), 0);
  EXPECT_EQ(scalar.stalls().at(late), 0);
  ASSERT_EQ(vector.records().size(), 1u);
  EXPECT_EQ(vector.records()[0].end, 100);
  EXPECT_EQ(vector.unrecorded(), 1);
}

}  // namespace
}  // namespace trn3sim::models
