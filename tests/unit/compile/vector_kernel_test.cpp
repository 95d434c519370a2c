// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

struct Function {
  const char* name;
  int inputs, outputs;
};
constexpr Function kFunctions[] = {{"rmsnorm", 1, 1},       {"rmsnorm_bwd", 3, 1},
                                   {"layernorm", 1, 1},     {"layernorm_bwd", 3, 1},
                                   {"rope", 1, 1},          {"rope_bwd", 1, 1},
                                   {"softmax", 1, 1},       {"softmax_bwd", 2, 1},
                                   {"silu_mul", 2, 1},      {"silu_mul_bwd", 3, 2},
                                   {"gelu", 1, 1},          {"gelu_bwd", 2, 1},
                                   {"add", 2, 1},           {"mul", 2, 1},
                                   {"scale", 1, 1},         {"cast", 1, 1},
                                   {"copy", 1, 1},          {"zero", 0, 1},
                                   {"cross_entropy", 1, 1}, {"cross_entropy_bwd", 1, 1},
                                   {"embedding", 1, 1},     {"embedding_bwd", 2, 1},
                                   {"adamw", 4, 4},         {"lamb", 6, 5},
                                   {"sum_squares", 1, 0}};

KernelSpec vec(const Function& f, std::int64_t elems, base::DType t) {
  KernelSpec s;
  s.kind = KernelKind::Vector;
  s.fn = f.name;
  s.elems = elems;
  s.in = t;
  const std::int64_t bytes = base::element_bits(t) / 8;
  s.rd = f.inputs * elems * bytes;
  s.wr = f.outputs * elems * bytes;
  s.cores = 2;
  return s;
}

std::int64_t total(const std::map<std::string, std::int64_t>& by_operand) {
  std::int64_t t = 0;
  for (const auto& [name, bytes] : by_operand) t += bytes;
  return t;
}

test::ProgramRun run(const KernelSpec& spec) {
  const auto chip = test::trainium3();
  const models::TileProgram program = compile_kernel(spec, chip);
  EXPECT_LE(program.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count())
      << spec.label();
  return test::ProgramInterpreter(program, chip).run();
}

// The stated bytes move, whatever the size: one element, odd sizes, many tiles.
TEST(VectorKernel, MovesExactlyTheStatedBytes) {
  for (const Function& f : kFunctions) {
    for (const std::int64_t elems : {1LL, 100LL, 4099LL, 128LL * 4096, 5'000'003LL, 16'777'216LL}) {
      for (const auto t : {base::DType::Bf16, base::DType::Fp32}) {
        const KernelSpec spec = vec(f, elems, t);
        const test::ProgramRun r = run(spec);
        EXPECT_EQ(total(r.loaded), spec.rd) << spec.label();
        EXPECT_EQ(total(r.stored), spec.wr) << spec.label();
      }
    }
  }
}

// Bytes need not be a multiple of the elements: operands may stay in SBUF, others may be added.
TEST(VectorKernel, BytesNeedNotFollowTheElements) {
  for (const auto& [rd, wr] :
       {std::pair{0LL, 2'000'000LL}, std::pair{2'000'000LL, 0LL}, std::pair{0LL, 0LL},
        std::pair{7LL, 1'000'003LL}, std::pair{3'000'007LL, 13LL}}) {
    for (const char* fn : {"add", "adamw", "sum_squares", "zero", "rmsnorm"}) {
      KernelSpec spec = vec({fn, 1, 1}, 1'000'000, base::DType::Bf16);
      spec.rd = rd;
      spec.wr = wr;
      const test::ProgramRun r = run(spec);
      EXPECT_EQ(total(r.loaded), rd) << spec.label();
      EXPECT_EQ(total(r.stored), wr) << spec.label();
    }
  }
}

// Large kernels with few passes are limited by DMA: at least 90 % of the 16 x 33 GB/s of each core.
TEST(VectorKernel, StreamsNearTheDmaPlateau) {
  for (const Function& f :
       {Function{"add", 2, 1}, Function{"copy", 1, 1}, Function{"adamw", 4, 4}}) {
    const KernelSpec spec = vec(f, 33'554'432, base::DType::Fp32);
    const double ideal = static_cast<double>(spec.rd + spec.wr) / 2 / 528.0;
    EXPECT_GT(ideal / run(spec).duration_ns, 0.9) << spec.label();
  }
}

// rope makes three passes over 2-byte data on VectorE: 3 x N cycles at 1.2 GHz are its time.
TEST(VectorKernel, RopeIsLimitedByVectorE) {
  const KernelSpec spec = vec({"rope", 1, 1}, 33'554'432, base::DType::Bf16);
  const double ideal = 3.0 * 33'554'432 / 2 / 128 / 1.2;
  EXPECT_NEAR(ideal / run(spec).duration_ns, 1.0, 0.05);
}

// Without memory reuse every pass reads its operands and writes its result: what is not an input or
// an output of the function is spilled. Softmax: maximum of x; exponentials of x; their scaling.
TEST(VectorKernel, WithoutReusePassesGoThroughHbm) {
  for (const Function& f : kFunctions) {
    for (const std::int64_t elems : {100LL, 4099LL, 5'000'003LL}) {
      KernelSpec spec = vec(f, elems, base::DType::Bf16);
      const double reused = run(spec).duration_ns;
      spec.memory_reuse = false;
      const auto chip = test::trainium3();
      const models::TileProgram program = compile_kernel(spec, chip);
      const test::ProgramRun r = test::ProgramInterpreter(program, chip).run();
      const models::EventCounts counts = models::program_counts(program, chip);
      EXPECT_EQ(total(r.loaded) - counts.spill_reload_bytes, spec.rd) << spec.label();
      EXPECT_EQ(total(r.stored) - counts.spill_save_bytes, spec.wr) << spec.label();
      if (elems > 1'000'000) {
        EXPECT_GE(r.duration_ns, 0.99 * reused) << spec.label();
      }
      const std::string name = f.name;
      if (name == "softmax") {
        EXPECT_EQ(counts.spill_reload_bytes, 2 * elems * 2);
        EXPECT_EQ(counts.spill_save_bytes, elems * 2);
      }
      if (name == "silu_mul_bwd") {  // 2 activations and 5 with two operands; 2 of 7 results stay
        EXPECT_EQ(counts.spill_reload_bytes, (2 + 5 * 2 - 3) * elems * 2);
        EXPECT_EQ(counts.spill_save_bytes, (7 - 2) * elems * 2);
      }
      if (name == "add" || name == "cast") {
        EXPECT_EQ(counts.spill_reload_bytes, 0);
      }
    }
  }
}

// With one slot a tile's loads wait for the stores of the one before.
TEST(VectorKernel, WithoutStreamingLoadsNothingOverlaps) {
  KernelSpec spec = vec({"add", 2, 1}, 33'554'432, base::DType::Bf16);
  const double streaming = run(spec).duration_ns;
  spec.streaming_loads = false;
  EXPECT_GT(run(spec).duration_ns, 1.5 * streaming);
}

TEST(VectorKernel, UnknownFunctionHasASuggestion) {
  KernelSpec spec = vec({"rmsnrom", 1, 1}, 100, base::DType::Bf16);
  try {
    compile_kernel(spec, test::trainium3());
    FAIL() << "expected an error";
  } catch (const base::UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"rmsnorm\""), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace trn3sim::compile
