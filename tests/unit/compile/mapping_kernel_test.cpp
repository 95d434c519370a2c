// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Explicit mappings: the work, the bytes and the mistakes.
#include <functional>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"

#include "compile/kernel/dry_run.hpp"
#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

using base::DType;

KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  return s;
}

// for m, n, k with both operands loaded in the inner loop.
config::MappingSpec inner_loads() {
  config::MappingSpec m;
  m.type = "loops";
  m.file = "x.json";
  m.loops.loops = {{"m", 128}, {"n", 512}, {"k", 128}};
  m.loops.a = {3, 128, 128, 2, "sync", 0};
  m.loops.b = {3, 128, 512, 2, "sync", 1};
  m.loops.c = {2, 2, "vector", "fp32", 2, 512, 2, "gpsimd", 3};
  return m;
}

config::MappingSpec with(config::MappingSpec m,
                         const std::function<void(config::LoopMapping&)>& f) {
  f(m.loops);
  return m;
}

test::ProgramRun run(const KernelSpec& spec, const config::MappingSpec& mapping,
                     const config::ChipSpec& chip = test::trainium2()) {
  const models::TileProgram program = compile_kernel(spec, chip, &mapping);
  EXPECT_EQ(deadlock_of(program), "");
  return test::ProgramInterpreter(program, chip).run();
}

std::string error_of(const KernelSpec& spec, const config::MappingSpec& mapping,
                     const config::ChipSpec& chip = test::trainium2()) {
  try {
    compile_kernel(spec, chip, &mapping);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

// Published matmuls: how often each operand moves follows from where it is loaded.
struct Published {
  const char* file;
  KernelSpec spec;
  double a = 1, b = 1;  // times
  std::int64_t matmuls = 0, transposes = 0;
};

KernelSpec fp32(KernelSpec s) {
  s.in = s.out = DType::Fp32;
  return s;
}
KernelSpec transposed(KernelSpec s) {
  s.a_transposed = true;
  return s;
}

TEST(ExplicitMapping, PublishedKernelsMoveTheirBytes) {
  const KernelSpec cube = gemm(4096, 4096, 4096), small = gemm(2048, 2048, 2048),
                   wide = gemm(4096, 8192, 8192);
  const std::vector<Published> all = {
      {"mm4096_v0", cube, 3, 32, 8192},
      {"mm4096_v1", cube, 1, 4, 8192},
      {"mm4096_v2", cube, 1, 4, 8192},
      {"unblocked", small, 4, 16, 1024},
      {"unblocked_transpose", transposed(small), 4, 16, 1024, 1024},
      {"sunk_single", small, 4, 16, 1024},
      {"mm2048_psum1", small, 1, 1, 1024},
      {"mm2048_psum2", small, 1, 1, 1024},
      {"mm_fp32_v3", fp32(wide), 1, 32, 32768},
      {"mm_fp32_v4", fp32(wide), 1, 32, 32768},
      {"mm_v5", fp32(wide), 8, 2, 32768},
      {"mm_bf16_v5", wide, 8, 1, 32768},
      {"nkibench_matmul", transposed(fp32(gemm(4096, 12288, 5120))), 12, 32, 30720, 15360}};
  for (const Published& p : all) {
    SCOPED_TRACE(p.file);
    const config::MappingSpec mapping = config::load_mapping(
        std::string(TRN3SIM_SOURCE_DIR) + "/tests/validation/data/mappings/" + p.file + ".json");
    const test::ProgramRun r = run(p.spec, mapping);
    const KernelSpec& s = p.spec;
    const double element = static_cast<double>(base::element_bits(s.in)) / 8;
    EXPECT_EQ(r.total_macs(), s.m * s.n * s.k);
    EXPECT_EQ(static_cast<double>(r.loaded.at("a")),
              p.a * element * static_cast<double>(s.m * s.k));
    EXPECT_EQ(static_cast<double>(r.loaded.at("b")),
              p.b * element * static_cast<double>(s.k * s.n));
    EXPECT_EQ(r.stored.at("c"), base::storage_bytes(s.out, s.m * s.n));
    EXPECT_EQ(r.transposes, p.transposes);
    const models::TileProgram program = compile_kernel(s, test::trainium2(), &mapping);
    std::int64_t matmuls = 0;
    for (const models::Instruction& i : program.instructions)
      matmuls += i.op == models::Opcode::MultiplyMoving ? 1 : 0;
    EXPECT_EQ(matmuls, p.matmuls);
  }
}

// Whatever the sizes, cores, orders and places: the work is done once and the program ends.
TEST(ExplicitMapping, DoesAllTheWorkOnALadderOfShapes) {
  const auto base = inner_loads();
  const std::vector<config::MappingSpec> mappings = {
      base,
      with(base, [](auto& l) { l.a.inside = l.b.inside = 0; }),
      with(base, [](auto& l) { l.a.buffers = l.b.buffers = l.c.buffers = l.c.psum_buffers = 1; }),
      with(base,
           [](auto& l) {  // B stationary
             l.stationary = std::string("b");
             l.loops = {{"n", 128}, {"m", 512}, {"k", 128}};
           }),
      with(base,
           [](auto& l) {  // four tiles accumulate at once
             l.loops = {{"m", 256}, {"n", 1024}, {"k", 128}, {"m", 128}, {"n", 512}};
             l.a.inside = l.b.inside = 3;
             l.c.psum_inside = l.c.store_inside = 2;
             l.c.evict = "both";
           }),
      with(base,
           [](auto& l) {  // partial sums
             l.loops = {{"m", 512}, {"k", 256}, {"m", 128}, {"n", 512}, {"k", 128}};
             l.a.inside = 2;
             l.b.inside = 4;
             l.c.psum_inside = 4;
             l.c.store_inside = 1;
             l.c.store_width = 1024;
           }),
      with(base,
           [](auto& l) {  // several rings, more transfers than rings
             l.a = {1, 64, 64, 2, "sync", 0, 3};
             l.b = {2, 32, 512, 1, "sync", 4, 5};
           }),
      with(base, [](auto& l) {  // one pool
        l.loops = {{"m", 256}, {"n", 512}, {"m", 128}, {"k", 128}};
        l.a.inside = 1;
        l.b.inside = 2;
        l.pool = 65536;
      })};
  for (std::size_t i = 0; i < mappings.size(); ++i)
    for (const std::int64_t m : {1, 300, 1024})
      for (const std::int64_t n : {96, 1000, 1536})
        for (const std::int64_t k : {64, 512, 700})
          for (const int what : {0, 1, 2, 3}) {
            KernelSpec spec = gemm(m, n, k);
            spec.batch = what == 3 ? 2 : 1;
            spec.cores = what == 1 ? 2 : 1;
            config::MappingSpec mapping = mappings[i];
            if (what == 1) mapping.loops.split = std::string("n");
            if (what == 2) {
              if (mapping.loops.pool > 0) continue;
              spec.a_transposed = spec.b_transposed = true;
              mapping.loops.transpose.evict = "vector";
              mapping.loops.c.psum_buffers = 1;  // transposes take two banks
            }
            SCOPED_TRACE(testing::Message() << "mapping " << i << ", " << m << "x" << n << "x" << k
                                            << ", variant " << what);
            const test::ProgramRun r = run(spec, mapping, test::trainium3());
            EXPECT_EQ(r.total_macs(), spec.batch * m * n * k);
            EXPECT_EQ(r.stored.at("c"), 2 * spec.batch * m * n);
            EXPECT_GE(r.loaded.at("a"), 2 * spec.batch * m * k);
            EXPECT_GE(r.loaded.at("b"), 2 * spec.batch * k * n);
          }
}

TEST(ExplicitMapping, OtherFormats) {
  KernelSpec spec = gemm(256, 1024, 2048);
  spec.in = DType::Mxfp8;
  spec.out = DType::Bf16;
  const auto mapping = with(inner_loads(), [](auto& l) {
    l.loops[2].step = 512;
    l.a.transfer_k = l.b.transfer_k = 512;
  });
  const test::ProgramRun r = run(spec, mapping, test::trainium3());
  EXPECT_EQ(r.total_macs(), spec.m * spec.n * spec.k);
  EXPECT_EQ(r.loaded.at("a"), 2 * base::storage_bytes(DType::Mxfp8, spec.m * spec.k));
}

// The compiler's own choice as a file is the same program.
TEST(ExplicitMapping, ChosenMappingGivesTheSameProgram) {
  const config::ChipSpec chip = test::trainium3();
  for (const std::int64_t cores : {1, 2})
    for (const int what : {0, 1, 2}) {
      KernelSpec spec = gemm(1024, 3072, 2048);
      spec.cores = cores;
      spec.a_transposed = what == 1;
      if (what == 2) {
        spec.in = DType::Mxfp8;
        spec.out = DType::Bf16;
        spec.a_format = DType::Bf16;
      }
      const config::MappingSpec chosen = chosen_mapping(spec, chip);
      const test::ProgramRun own = test::ProgramInterpreter(compile_kernel(spec, chip), chip).run();
      const test::ProgramRun again = run(spec, chosen, chip);
      EXPECT_EQ(own.loaded, again.loaded);
      EXPECT_EQ(own.stored, again.stored);
      EXPECT_EQ(own.instructions, again.instructions);
      EXPECT_EQ(own.duration_ns, again.duration_ns);
      EXPECT_EQ(describe_mapping(spec, chip), describe_mapping(spec, chip, &chosen));
    }
}

TEST(ExplicitMapping, MistakesNameFileAndKey) {
  const KernelSpec spec = gemm(2048, 2048, 2048);
  const auto said = [&](const std::function<void(config::LoopMapping&)>& change,
                        const std::string& what, const KernelSpec& kernel) {
    const std::string error = error_of(kernel, with(inner_loads(), change));
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_EQ(error.find("x.json: /loops"), 0u) << error;
  };
  const auto expect = [&](const std::function<void(config::LoopMapping&)>& change,
                          const std::string& what) { said(change, what, spec); };
  EXPECT_EQ(error_of(spec, inner_loads()), "no error");
  expect([](auto& l) { l.loops.pop_back(); }, "no loop over k");
  expect([](auto& l) { l.loops[0].step = 256; },
         "the last step of m is 256; a tile has at most 128");
  expect([](auto& l) { l.loops[1].step = 1024; }, "a tile has at most 512");
  expect(
      [](auto& l) {
        l.loops.insert(l.loops.begin(), {"m", 300});
      },
      "/loops/loops/0/step: is 300; expected a multiple of the step 128");
  expect([](auto& l) { l.a.inside = 4; }, "/loops/a/inside: is 4; there are 3 loops");
  expect([](auto& l) { l.c.store_inside = 3; }, "/loops/c/store_inside: is 3");
  expect([](auto& l) { l.c.psum_inside = l.c.store_inside = 3; },
         "/loops/c/store_inside: a loop over k");
  expect([](auto& l) { l.c.psum_inside = l.c.store_inside = 0; },
         "/loops/c/psum_buffers: PSUM needs 128 banks");
  expect(
      [](auto& l) {
        l.b.inside = 0;
        l.b.buffers = 8;
      },
      "/loops/b/buffers: SBUF needs");
  expect([](auto& l) { l.a.queue = 16; }, "/loops/a/queue: is 16; trn2 has queues 0 to 15");
  expect([](auto& l) { l.a.queues = 17; }, "/loops/a/queue: is 0 with queues 17");
  expect([](auto& l) { l.c.engine = "vector"; }, "/loops/c/engine: is \"vector\", which c/evict");
  expect([](auto& l) { l.b.engine = "gpsimd"; }, "/loops/b/engine: is \"gpsimd\", which c/engine");
  expect([](auto& l) { l.split = std::string("n"); },
         "/loops/split: is \"n\" with 1 core; expected \"none\"");
  expect([](auto& l) { l.pool = 128; }, "/loops/pool: is 128; one transfer of B takes 1024");
  expect(
      [](auto& l) {
        l.pool = 1024;
        l.b.transfer_width = 256;
        l.b.inside = 1;
        l.loops[1].step = 256;
        l.loops = {{"m", 128}, {"n", 256}, {"k", 128}};
      },
      "/loops: the kernel would never end: tensor");
  expect([](auto& l) { l.a.transfer_k = l.a.transfer_width = 1; },
         "/loops/a/transfer_width: is 1 with transfer_k 1: 16384 transfers for one matmul");
  expect(
      [](auto& l) {
        l.loops = {{"m", 8}, {"n", 4}, {"k", 128}};
        l.c.store_inside = 0;
      },
      "/loops/c/store_inside: is 0: 131072 tiles are stored at once");
  KernelSpec two = spec;
  two.cores = 2;
  said([](auto&) {}, "/loops/split: is \"none\" with 2 cores", two);
}

TEST(ExplicitMapping, WhatLoopsLackIsRefused) {
  KernelSpec spec = gemm(256, 512, 256);
  spec.accumulate = true;
  EXPECT_EQ(error_of(spec, inner_loads()),
            "x.json: a mapping of type loops has no accumulation onto C (--accumulate); use type "
            "panels");
  spec = gemm(256, 512, 256);
  spec.epilogues = {{"gelu", 256 * 512}};
  EXPECT_NE(error_of(spec, inner_loads()).find("no epilogue"), std::string::npos);
}

TEST(ExplicitMapping, PanelMistakes) {
  const KernelSpec spec = gemm(2048, 2048, 2048);
  config::MappingSpec m = chosen_mapping(spec, test::trainium2());
  m.file = "p.json";
  EXPECT_EQ(error_of(spec, m), "no error");
  config::MappingSpec wrong = m;
  wrong.panels.psum_moving_tiles = 4;
  wrong.panels.psum_stationary_tiles = 4;
  EXPECT_NE(error_of(spec, wrong).find("p.json: /panels/psum_stationary_tiles: PSUM needs 32"),
            std::string::npos);
  wrong = m;
  wrong.panels.outer_buffers = 10'000;
  EXPECT_NE(error_of(spec, wrong).find("p.json: /panels/outer_block: SBUF needs"),
            std::string::npos);
  wrong = m;
  wrong.panels.outer_buffers = 1;
  wrong.panels.chunk_tiles = 1;
  EXPECT_NE(error_of(spec, wrong).find("p.json: /panels: the kernel would never end"),
            std::string::npos)
      << error_of(spec, wrong);
}

}  // namespace
}  // namespace trn3sim::compile
