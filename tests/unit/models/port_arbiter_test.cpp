// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/port_arbiter.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "trn3sim/models/engine_cost.hpp"

#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::DType;
using base::nanoseconds;
using base::Time;

Instruction waiting(Instruction i, std::uint16_t id) {
  i.waits[0] = {id, 1};
  return i;
}
Instruction signalling(Instruction i, std::uint16_t id) {
  i.signals[0] = {id, 1};
  return i;
}
Instruction from_psum(std::int32_t elements) {
  Instruction i = test::lane(Opcode::Select, elements, 128, DType::Fp32);
  i.source = Space::Psum;
  return i;
}

// NeuronCore-v2: all clocks 1 GHz, no overheads, so a cycle is a nanosecond.
config::ChipSpec first_generation() {
  config::ChipSpec c = test::test_chip();
  c.vector.clock = c.scalar.clock = c.gpsimd.clock = base::Frequency(1'000'000'000);
  c.gpsimd.access_cycles = 0;
  c.vector.max_speedup_16bit = c.scalar.max_speedup_16bit = 1;
  c.sync.engine_cycles = 0;
  c.sync.dma_to_engine = nanoseconds(250);
  c.sbuf.shared_port = c.psum.shared_port = "exclusive";
  return c;
}

// A core without its module: runs the streams in the given order of visits and, between, DMA tokens
// and the simulator's time.
class PortArbiterTest : public ::testing::Test {
 protected:
  void load(const test::TileBuilder& t) {
    bank.load(t.program(), t.program().cores[0]);
    for (std::size_t e = 0; e < kEngines; ++e) {
      own[e] = std::make_unique<EngineStream>(chip, static_cast<Engine>(e), 0);
      streams[e] = own[e].get();
      streams[e]->load(t.program(), t.program().cores[0]);
    }
    arbiter.load(streams);
  }
  // Everything that can be known at `now`; returns the time to go on, kTimeMax if nothing asks.
  Time go_on(Time now) {
    for (;;) {
      std::uint32_t mask = (1u << kEngines) - 1;
      for (std::uint32_t woken = 0; mask != 0; mask = woken, woken = 0)
        for (const std::size_t e : order)
          if ((mask >> e & 1) != 0) woken |= streams[e]->run(bank, triggers);
      const PortArbiter::Choice choice = arbiter.next(streams, bank, now);
      if (!choice.engine) return choice.retry;
      const std::uint8_t ports = streams[*choice.engine]->asking();
      std::uint32_t woken = 0;
      arbiter.give_back(ports, streams[*choice.engine]->grant(choice.at, bank, triggers, woken));
    }
  }
  [[nodiscard]] Time end(Engine e) const { return streams[std::size_t(e)]->end(); }

  config::ChipSpec chip = first_generation();
  SemaphoreBank bank;
  std::array<std::unique_ptr<EngineStream>, kEngines> own;
  PortArbiter::Streams streams{};
  PortArbiter arbiter;
  std::vector<DmaTrigger> triggers;
  std::vector<std::size_t> order{0, 1, 2, 3, 4};
};

TEST_F(PortArbiterTest, FirstGenerationExcludesVectorAndGpsimdOnSbuf) {
  test::TileBuilder t;
  t.add(Engine::Vector, test::lane(Opcode::Select, 100));
  t.add(Engine::Gpsimd, test::lane(Opcode::Select, 70));
  t.add(Engine::Vector, test::lane(Opcode::Select, 100));
  load(t);
  EXPECT_EQ(go_on(Time(0)), base::kTimeMax);
  // Both ask at 0 and VectorE has the lower number; GpSimdE has asked before VectorE's second.
  EXPECT_EQ(end(Engine::Gpsimd), nanoseconds(170));
  EXPECT_EQ(end(Engine::Vector), nanoseconds(270));
  EXPECT_EQ(streams[std::size_t(Engine::Vector)]->busy(), nanoseconds(200));
}

TEST_F(PortArbiterTest, FirstGenerationExcludesVectorAndScalarOnPsum) {
  test::TileBuilder t;
  t.add(Engine::Vector, from_psum(100));
  t.add(Engine::Scalar, from_psum(80));
  t.add(Engine::Scalar, test::lane(Opcode::Activation, 80));  // in SBUF: not shared with VectorE
  load(t);
  EXPECT_EQ(go_on(Time(0)), base::kTimeMax);
  EXPECT_EQ(end(Engine::Vector), nanoseconds(100));
  EXPECT_EQ(end(Engine::Scalar), nanoseconds(260));
}

TEST_F(PortArbiterTest, ScalarAndGpsimdNeverMeet) {
  test::TileBuilder t;
  t.add(Engine::Scalar, from_psum(100));
  t.add(Engine::Gpsimd, test::lane(Opcode::Select, 70));
  load(t);
  EXPECT_FALSE(arbiter.contested());
  EXPECT_EQ(go_on(Time(0)), base::kTimeMax);
  EXPECT_EQ(end(Engine::Scalar), nanoseconds(100));
  EXPECT_EQ(end(Engine::Gpsimd), nanoseconds(70));
}

TEST_F(PortArbiterTest, LaterGenerationsShareTheBusOfTheFastModesOnly) {
  chip.sbuf.shared_port = "fast_modes";
  chip.psum.shared_port = "none";
  chip.vector.max_speedup_16bit = 4;
  for (const auto& [dtype, contested] : {std::pair{DType::Fp32, false}, {DType::Bf16, true}}) {
    test::TileBuilder t;
    t.add(Engine::Vector, test::lane(Opcode::TensorCopy, 400, 128, dtype));
    t.add(Engine::Gpsimd, test::lane(Opcode::Select, 70));
    load(t);
    EXPECT_EQ(arbiter.contested(), contested);
    EXPECT_EQ(go_on(Time(0)), base::kTimeMax);
    EXPECT_EQ(end(Engine::Vector), nanoseconds(contested ? 100 : 400));
    EXPECT_EQ(end(Engine::Gpsimd), nanoseconds(contested ? 170 : 70));
  }
  test::TileBuilder psum;
  psum.add(Engine::Vector, from_psum(100));
  psum.add(Engine::Scalar, from_psum(80));
  load(psum);
  EXPECT_FALSE(arbiter.contested());
}

// GpSimdE asks at 1000, VectorE waits for DMA: until the time at which no token can be earlier, the
// order is open.
TEST_F(PortArbiterTest, WaitsForTokensThatMayComeEarlier) {
  const auto build = [](test::TileBuilder& t) {
    const auto from_dma = t.semaphore();
    t.transfer(test::load(t.operand(4096), 1, 4096));
    t.program().transfers[0].signals[0] = {from_dma, 1};
    t.dma(Engine::Sync, 0);
    t.add(Engine::Gpsimd, test::lane(Opcode::Iota, 1000));
    t.add(Engine::Gpsimd, test::lane(Opcode::Select, 100));
    t.add(Engine::Vector, waiting(test::lane(Opcode::Select, 300), from_dma));
    return from_dma;
  };
  test::TileBuilder t;
  const auto id = build(t);
  load(t);
  // The first GpSimdE instruction may start at 0: a token cannot be earlier than 250 ns.
  EXPECT_EQ(go_on(Time(0)), nanoseconds(750) + Time(1)) << "1000 less the latency of a token";
  bank.post(id, 1, nanoseconds(600));  // VectorE asks at 850, has SBUF from 1000 to 1300
  EXPECT_EQ(go_on(nanoseconds(600)), base::kTimeMax);
  EXPECT_EQ(end(Engine::Vector), nanoseconds(1300));
  EXPECT_EQ(end(Engine::Gpsimd), nanoseconds(1400));
  test::TileBuilder late;
  build(late);
  load(late);
  go_on(Time(0));
  EXPECT_EQ(go_on(nanoseconds(750) + Time(1)), base::kTimeMax) << "nothing can be earlier now";
  EXPECT_EQ(end(Engine::Gpsimd), nanoseconds(1100));
  bank.post(id, 1, nanoseconds(800));  // asks at 1050
  go_on(nanoseconds(800));
  EXPECT_EQ(end(Engine::Vector), nanoseconds(1400));
}

// A ring of streams that hand tokens on, with ports in between: any order of visits gives the same.
TEST_F(PortArbiterTest, OrderOfVisitsChangesNothing) {
  std::vector<Time> ends;
  std::sort(order.begin(), order.end());
  do {
    test::TileBuilder t;
    const auto a = t.semaphore(2), b = t.semaphore(), c = t.semaphore();
    t.loop(Engine::Vector, 9, [&] {
      t.add(Engine::Vector, signalling(waiting(from_psum(130), a), b));
      t.add(Engine::Vector, test::lane(Opcode::Select, 70));
    });
    t.loop(Engine::Scalar, 9, [&] {
      t.add(Engine::Scalar, from_psum(90));
      t.add(Engine::Scalar, signalling(waiting(from_psum(110), b), c));
    });
    t.loop(Engine::Gpsimd, 9, [&] {
      t.add(Engine::Gpsimd, test::lane(Opcode::Iota, 65));
      t.add(Engine::Gpsimd, signalling(waiting(test::lane(Opcode::Select, 120), c), a));
    });
    load(t);
    EXPECT_EQ(go_on(Time(0)), base::kTimeMax);
    for (const EngineStream* s : streams) EXPECT_TRUE(s->done());
    const std::vector<Time> now = {end(Engine::Vector), end(Engine::Scalar), end(Engine::Gpsimd)};
    if (ends.empty()) ends = now;
    ASSERT_EQ(now, ends);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace trn3sim::models
