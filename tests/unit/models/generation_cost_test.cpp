// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The documented instruction costs on the shipped chip of each generation: an instruction ends at
// its cycle and not before.
#include <optional>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/models/engine_stream.hpp"

#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::DType;

constexpr std::int32_t kElements = 480;

struct Cost {
  const char* what;
  Engine engine;
  Instruction instruction;
  // Cycles on Trainium1, 2 and 3; none: the generation does not have it.
  std::array<std::optional<std::int64_t>, 3> cycles;
};

Instruction on(Opcode op, DType dtype, Space source = Space::Sbuf,
               Space destination = Space::Sbuf) {
  Instruction i = test::lane(op, kElements, 128, dtype);
  i.source = source;
  i.destination = destination;
  return i;
}
Instruction strided(Instruction i, std::int16_t bytes) {
  i.stride = bytes;
  return i;
}
Instruction pair(DType dtype, bool both_in_sbuf) {
  Instruction i = on(Opcode::TensorTensor, dtype);
  i.two_inputs_sbuf = both_in_sbuf;
  return i;
}
Instruction small(Opcode op, std::int32_t elements, bool dependent) {
  Instruction i = test::lane(op, elements, 128, DType::Fp32);
  i.first_of_chain = dependent;
  return i;
}
std::array<std::optional<std::int64_t>, 3> all(std::int64_t cycles) {
  return {cycles, cycles, cycles};
}

const Space kPsum = Space::Psum, kSbuf = Space::Sbuf;

// Performance modes of copies and tensor-scalar: none on NeuronCore-v2, 4x and 2x for BF16 and FP16
// on v3, for FP8 too on v4; ScalarE's 2x is v4's.
std::vector<Cost> modes() {
  constexpr auto kCopy = Opcode::TensorCopy;
  return {
      {"copy bf16", Engine::Vector, on(kCopy, DType::Bf16), {480, 120, 120}},
      {"scale fp16", Engine::Vector, on(Opcode::TensorScalar, DType::Fp16), {480, 120, 120}},
      {"copy fp8", Engine::Vector, on(kCopy, DType::Fp8), {480, 480, 120}},
      {"copy fp32", Engine::Vector, on(kCopy, DType::Fp32), all(480)},
      {"copy from PSUM", Engine::Vector, on(kCopy, DType::Bf16, kPsum), {480, 240, 240}},
      {"copy to PSUM", Engine::Vector, on(kCopy, DType::Bf16, kSbuf, kPsum), {480, 240, 240}},
      {"copy in PSUM", Engine::Vector, on(kCopy, DType::Bf16, kPsum, kPsum), all(480)},
      {"copy every other", Engine::Vector, strided(on(kCopy, DType::Bf16), 4), {480, 240, 240}},
      {"stride of 14 B", Engine::Vector, strided(on(kCopy, DType::Fp32), 14), all(480)},
      {"stride of 16 B", Engine::Vector, strided(on(kCopy, DType::Fp32), 16), all(960)},
      {"wide stride, 2x", Engine::Vector, strided(on(kCopy, DType::Bf16), 16), {960, 480, 480}},
      {"activation, wide", Engine::Scalar, strided(on(Opcode::Activation, DType::Fp32), 64),
       all(960)},
      {"add bf16 in SBUF", Engine::Vector, pair(DType::Bf16, true), all(480)},
      {"add fp16 in SBUF", Engine::Vector, pair(DType::Fp16, true), {960, 480, 480}},
      {"add fp8 in SBUF", Engine::Vector, pair(DType::Fp8, true), {960, 960, 480}},
      {"add fp32 in SBUF", Engine::Vector, pair(DType::Fp32, true), all(960)},
      {"add SBUF to PSUM", Engine::Vector, pair(DType::Fp32, false), all(480)},
      {"scalar copy bf16", Engine::Scalar, on(kCopy, DType::Bf16), {480, 480, 240}},
      {"scalar copy fp8", Engine::Scalar, on(kCopy, DType::Fp8), {480, 480, 240}},
      {"scalar copy fp32", Engine::Scalar, on(kCopy, DType::Fp32), all(480)},
      {"pool copy bf16", Engine::Gpsimd, on(kCopy, DType::Bf16), all(150 + 480)},
  };
}

std::vector<Cost> formulas() {
  constexpr std::optional<std::int64_t> kNone;
  return {
      {"reduce bf16", Engine::Vector, on(Opcode::TensorReduce, DType::Bf16), all(240)},
      {"reduce fp32", Engine::Vector, on(Opcode::TensorReduce, DType::Fp32), all(480)},
      {"reciprocal", Engine::Vector, on(Opcode::Reciprocal, DType::Fp32), all(8 * 480)},
      {"select", Engine::Vector, on(Opcode::Select, DType::Bf16), all(480)},
      {"bn_stats", Engine::Vector, on(Opcode::BnStats, DType::Bf16), all(480)},
      {"memset bf16", Engine::Vector, on(Opcode::Memset, DType::Bf16), all(240)},
      {"memset fp32", Engine::Vector, on(Opcode::Memset, DType::Fp32), all(480)},
      {"scalar tensor tensor", Engine::Vector, on(Opcode::ScalarTensorTensor, DType::Fp32),
       all(960)},
      {"activation", Engine::Scalar, on(Opcode::Activation, DType::Bf16), all(480)},
      {"with row sum", Engine::Scalar, on(Opcode::ActivationReduce, DType::Bf16), all(480 + 64)},
      {"iota", Engine::Gpsimd, on(Opcode::Iota, DType::Fp32), all(150 + 480)},
      {"exponential", Engine::Vector, on(Opcode::Exponential, DType::Bf16), {kNone, kNone, 120}},
      {"exponential", Engine::Vector, on(Opcode::Exponential, DType::Fp32), {kNone, kNone, 240}},
      {"quantize", Engine::Vector, on(Opcode::QuantizeMx, DType::Bf16), {kNone, kNone, 120}},
      {"quantize from PSUM",
       Engine::Vector,
       on(Opcode::QuantizeMx, DType::Bf16, kPsum),
       {kNone, kNone, kNone}},
      {"small", Engine::Vector, small(Opcode::TensorScalar, 1, false), all(64)},
      {"small, dependent", Engine::Vector, small(Opcode::TensorScalar, 1, true), all(164)},
      // Measured on Trainium1: 264 cycles between dependent activations of one element.
      {"small, dependent", Engine::Scalar, small(Opcode::Activation, 1, true), {264, 164, 164}},
  };
}

// End of the instruction on an engine that is free at time 0.
base::Time end_of(const Cost& cost, const config::ChipSpec& chip) {
  test::TileBuilder t;
  t.add(cost.engine, cost.instruction);
  SemaphoreBank bank;
  bank.load(t.program(), t.program().cores[0]);
  EngineStream stream(chip, cost.engine, 0);
  stream.load(t.program(), t.program().cores[0]);
  std::vector<DmaTrigger> triggers;
  stream.run(bank, triggers);
  EXPECT_TRUE(stream.done());
  return stream.end();
}

void expect_costs(const std::vector<Cost>& costs) {
  constexpr std::array kSystems = {"trn1_chip.json", "trn2_chip.json", "chip1.json"};
  for (std::size_t g = 0; g < kSystems.size(); ++g) {
    const config::ChipSpec chip = config::load_run(kSystems[g], {}).system.chip;
    for (const Cost& c : costs) {
      if (c.cycles[g]) {
        const base::Time end = base::cycles_time(*c.cycles[g], engine_clock(chip, c.engine));
        EXPECT_EQ(end_of(c, chip), end) << chip.name << ": " << c.what;
      } else {
        EXPECT_THROW(end_of(c, chip), base::InternalError) << chip.name << ": " << c.what;
      }
    }
  }
}

TEST(GenerationCost, PerformanceModes) {
  expect_costs(modes());
}

TEST(GenerationCost, Formulas) {
  expect_costs(formulas());
}

}  // namespace
}  // namespace trn3sim::models
