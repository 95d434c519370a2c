// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

KernelSpec scan(std::int64_t channels, std::int64_t states, std::int64_t steps,
                base::DType t = base::DType::Fp32, std::int64_t batch = 1, std::int64_t cores = 1) {
  KernelSpec s;
  s.kind = KernelKind::Scan;
  s.batch = batch;
  s.m = channels;
  s.n = states;
  s.k = steps;
  s.in = s.out = t;
  s.cores = cores;
  return s;
}

// delta, u and y once, A once per sequence, B and C for each 128 channels of a core.
TEST(ScanKernel, MovesEachTensorAsOftenAsTheTilesNeedIt) {
  for (const auto t : {base::DType::Fp32, base::DType::Bf16})
    for (const std::int64_t cores : {1LL, 2LL})
      for (const std::int64_t channels : {1LL, 128LL, 300LL, 512LL})
        for (const std::int64_t steps : {1LL, 512LL, 1300LL}) {
          const KernelSpec s = scan(channels, 16, steps, t, 2, cores);
          const auto chip = test::trainium3();
          const test::ProgramRun r = test::ProgramInterpreter(compile_kernel(s, chip), chip).run();
          const std::int64_t e = base::element_bits(t) / 8;
          std::int64_t tiles = 0;
          for (std::int64_t c = 0; c < cores; ++c)
            tiles += (channels * (c + 1) / cores - channels * c / cores + 127) / 128;
          EXPECT_EQ(r.loaded.at("delta"), 2 * channels * steps * e) << s.label();
          EXPECT_EQ(r.loaded.at("u"), 2 * channels * steps * e);
          EXPECT_EQ(r.loaded.at("A"), 2 * channels * 16 * e);
          EXPECT_EQ(r.loaded.at("B"), 2 * tiles * 16 * steps * e);
          EXPECT_EQ(r.loaded.at("C"), 2 * tiles * 16 * steps * e);
          EXPECT_EQ(r.stored.at("y"), 2 * channels * steps * e);
        }
}

// Per tile and state: n, 2 n, n and 2 n elements, three of them after the one they depend on; one
// product of delta and u per tile.
TEST(ScanKernel, VectorWorkPerStateIsSixPassesInFp32) {
  const auto chip = test::trainium3();
  const models::TileProgram program = compile_kernel(scan(128, 16, 512), chip);
  const auto& stream = program.cores[0].streams[static_cast<std::size_t>(models::Engine::Vector)];
  const auto counts = models::execution_counts(program, stream);
  std::int64_t cycles = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0 && program.instructions[i].op != models::Opcode::Nop)
      cycles +=
          counts[i] *
          models::instruction_cost(program.instructions[i], models::Engine::Vector, chip).cycles;
  EXPECT_EQ(cycles, 16 * (6 * 512 + 3 * chip.vector.access_cycles) + 2 * 512);
}

TEST(ScanKernel, RefusesWhatItCannotDo) {
  const auto chip = test::trainium3();
  EXPECT_THROW(compile_kernel(scan(0, 16, 512), chip), base::UserError);
  EXPECT_THROW(compile_kernel(scan(128, 16, 0), chip), base::UserError);
  EXPECT_THROW(compile_kernel(scan(128, 16, 512, base::DType::Fp8), chip), base::UserError);
  EXPECT_THROW(compile_kernel(scan(128, 100'000, 512), chip), base::UserError);
  EXPECT_NO_THROW(compile_kernel(scan(128, 256, 512), chip)) << "narrower tiles";
}

}  // namespace
}  // namespace trn3sim::compile
