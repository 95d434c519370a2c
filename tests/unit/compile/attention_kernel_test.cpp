// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "support/program_interpreter.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

struct Shape {
  std::int64_t batch, heads, kv_heads, sq, skv, d;
  bool causal;
};

KernelSpec attention(const Shape& x, KernelKind kind = KernelKind::AttentionForward) {
  KernelSpec s;
  s.kind = kind;
  s.batch = x.batch;
  s.heads = x.heads;
  s.kv_heads = x.kv_heads;
  s.sq = x.sq;
  s.skv = x.skv;
  s.d = x.d;
  s.causal = x.causal;
  s.cores = 2;
  return s;
}

test::ProgramRun run(const KernelSpec& spec, const config::ChipSpec& chip = test::trainium3()) {
  const models::TileProgram program = compile_kernel(spec, chip);
  EXPECT_LE(program.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count())
      << spec.label();
  EXPECT_LE(program.psum_banks, chip.psum.banks);
  return test::ProgramInterpreter(program, chip).run();
}

constexpr Shape kShapes[] = {{1, 8, 8, 4096, 4096, 128, true}, {1, 8, 8, 4096, 4096, 128, false},
                             {3, 4, 4, 512, 512, 64, true},    {1, 8, 2, 1024, 1024, 128, true},
                             {1, 1, 1, 2048, 2048, 128, true}, {1, 3, 3, 500, 777, 96, false},
                             {2, 2, 1, 384, 640, 128, true},   {1, 2, 2, 1, 4097, 128, false},
                             {1, 2, 2, 130, 130, 256, true},   {1, 8, 1, 4096, 4096, 128, true},
                             {5, 1, 1, 128, 128, 128, true}};

// MACs of Q K^T and of P V: at least the visible pairs, at most these and the rest of the tiles of
// 128 queries on the diagonal.
TEST(AttentionForward, DoesTheVisibleWork) {
  for (const Shape& x : kShapes) {
    const KernelSpec spec = attention(x);
    const test::ProgramRun r = run(spec);
    std::int64_t least = 0, most = 0;
    for (std::int64_t q = 0; q < x.sq; ++q) {
      const std::int64_t visible = x.causal ? q + 1 + x.skv - x.sq : x.skv;
      least += visible;
      most += x.causal ? std::min(x.skv, visible + 127) : x.skv;
    }
    const std::int64_t scale = 2 * x.batch * x.heads * x.d;
    EXPECT_GE(r.total_macs(), least * scale) << spec.label();
    EXPECT_LE(r.total_macs(), most * scale) << spec.label();
    if (!x.causal) {
      EXPECT_EQ(r.total_macs(), least * scale) << spec.label();
    }
  }
}

// Queries are read once; keys and values at least once; outputs and statistics are written once.
TEST(AttentionForward, MovesTheOperands) {
  for (const Shape& x : kShapes) {
    const KernelSpec spec = attention(x);
    const test::ProgramRun r = run(spec);
    EXPECT_EQ(r.loaded.at("q"), x.batch * x.heads * x.sq * x.d * 2) << spec.label();
    EXPECT_GE(r.loaded.at("k"), x.batch * x.kv_heads * x.skv * x.d * 2) << spec.label();
    EXPECT_LE(r.loaded.at("k"), 2 * x.batch * x.kv_heads * x.skv * x.d * 2) << spec.label();
    EXPECT_EQ(r.loaded.at("k"), r.loaded.at("v")) << spec.label();
    EXPECT_EQ(r.stored.at("o"), x.batch * x.heads * x.sq * x.d * 2) << spec.label();
    EXPECT_EQ(r.stored.at("stats"), x.batch * x.heads * x.sq * 4) << spec.label();
  }
}

// Four heads of 4096 causal queries per core: the engines overlap, so the array gets this share of
// its peak (Trainium2 pays for its transposes on the array).
TEST(AttentionForward, Overlaps) {
  const KernelSpec spec = attention(kShapes[0], KernelKind::AttentionForward);
  for (const auto& [chip, least] :
       {std::pair{test::trainium3(), 0.6}, std::pair{test::trainium2(), 0.43}}) {
    const test::ProgramRun r = run(spec, chip);
    const double ideal = static_cast<double>(r.total_macs()) / 2 / 16384 / 2.4;
    EXPECT_GT(ideal / r.duration_ns, least) << chip.name << " " << describe_mapping(spec, chip);
  }
}

// Five products of each visible pair; gradients are written once, by the cores together.
TEST(AttentionBackward, DoesTheVisibleWork) {
  for (const Shape& x : kShapes) {
    const KernelSpec spec = attention(x, KernelKind::AttentionBackward);
    const test::ProgramRun r = run(spec);
    std::int64_t least = 0, most = 0;
    for (std::int64_t q = 0; q < x.sq; ++q) {
      const std::int64_t visible = x.causal ? q + 1 + x.skv - x.sq : x.skv;
      least += visible;
      most += x.causal ? std::min(x.skv, visible + 127) : x.skv;
    }
    const std::int64_t scale = 5 * x.batch * x.heads * x.d;
    EXPECT_GE(r.total_macs(), least * scale) << spec.label();
    EXPECT_LE(r.total_macs(), most * scale) << spec.label();
    EXPECT_EQ(r.stored.at("dq"), x.batch * x.heads * x.sq * x.d * 2) << spec.label();
    EXPECT_EQ(r.stored.at("dk"), r.stored.at("dv")) << spec.label();
    // One core per key/value head, or two that add to the same gradients.
    EXPECT_GE(r.stored.at("dk"), x.batch * x.kv_heads * x.skv * x.d * 2) << spec.label();
    EXPECT_LE(r.stored.at("dk"), 2 * x.batch * x.kv_heads * x.skv * x.d * 2) << spec.label();
    EXPECT_EQ(r.loaded.at("q"), 2 * x.batch * x.heads * x.sq * x.d * 2) << spec.label();
    EXPECT_EQ(r.loaded.at("o"), x.batch * x.heads * x.sq * x.d * 2) << spec.label();
  }
}

// Four heads of 4096 causal queries per core: the engines overlap, so the array gets this share of
// its peak (Trainium2 pays for its transposes on the array).
TEST(AttentionBackward, Overlaps) {
  const KernelSpec spec = attention(kShapes[0], KernelKind::AttentionBackward);
  for (const auto& [chip, least] :
       {std::pair{test::trainium3(), 0.85}, std::pair{test::trainium2(), 0.65}}) {
    const test::ProgramRun r = run(spec, chip);
    const double ideal = static_cast<double>(r.total_macs()) / 2 / 16384 / 2.4;
    EXPECT_GT(ideal / r.duration_ns, least) << chip.name << " " << describe_mapping(spec, chip);
  }
}

// Long sequences: keys of two heads, of one head, or streamed queries, whatever fits.
TEST(Attention, LongSequencesFit) {
  for (const std::int64_t s : {8192, 16384, 32768}) {
    for (const auto kind : {KernelKind::AttentionForward, KernelKind::AttentionBackward}) {
      const KernelSpec spec = attention({1, 2, 2, s, s, 128, true}, kind);
      const test::ProgramRun r = run(spec);
      const std::int64_t products = kind == KernelKind::AttentionForward ? 2 : 5;
      EXPECT_GE(r.total_macs(), products * 2 * 128 * (s * (s + 1) / 2)) << spec.label();
      EXPECT_LE(r.total_macs(), products * 2 * 128 * (s * (s + 1) / 2 + s * 127)) << spec.label();
    }
  }
}

// Without fusion the scores are written and read, so are the probabilities; masked pairs count.
TEST(Attention, UnfusedMovesTheScores) {
  KernelSpec spec = attention({2, 4, 4, 1024, 768, 128, false});
  spec.flash = false;
  const std::int64_t pairs = 2 * 4 * 1024 * 768;
  const test::ProgramRun forward = run(spec);
  EXPECT_EQ(forward.stored.at("scores"), pairs * 2);
  EXPECT_EQ(forward.loaded.at("scores"), pairs * 2);
  EXPECT_EQ(forward.stored.at("probabilities"), pairs * 2);
  EXPECT_GE(forward.loaded.at("probabilities"), pairs * 2);
  EXPECT_EQ(forward.total_macs(), 2 * pairs * 128);
  EXPECT_EQ(forward.stored.at("o"), 2 * 4 * 1024 * 128 * 2);
  spec.kind = KernelKind::AttentionBackward;
  const test::ProgramRun backward = run(spec);
  EXPECT_EQ(backward.total_macs(), 4 * pairs * 128);
  EXPECT_EQ(backward.stored.at("ds"), pairs * 2);
  EXPECT_EQ(backward.stored.at("dq"), 2 * 4 * 1024 * 128 * 2);
  EXPECT_EQ(backward.stored.at("dk"), 2 * 4 * 768 * 128 * 2);
}

TEST(Attention, MxFormatsAreRefusedByName) {
  KernelSpec spec = attention(kShapes[0]);
  spec.in = base::DType::Mxfp8;
  try {
    compile_kernel(spec, test::trainium3());
    FAIL() << "expected an error";
  } catch (const base::UserError& e) {
    EXPECT_NE(
        std::string(e.what()).find("attention in mxfp8 is not available; use bf16, fp16 or fp8"),
        std::string::npos)
        << e.what();
  }
}

// A chip without the fast exponential, or a run that turns it off, leaves them all to ScalarE.
TEST(AttentionForward, ExponentialsFollowTheChip) {
  KernelSpec spec = attention({1, 8, 8, 1024, 1024, 128, false});
  const auto count = [&](const config::ChipSpec& chip) {
    const models::TileProgram program = compile_kernel(spec, chip);
    return std::ranges::count(program.instructions, models::Opcode::Exponential,
                              &models::Instruction::op);
  };
  EXPECT_GT(count(test::trainium3()), 0);
  EXPECT_EQ(count(test::trainium2()), 0);
  spec.fast_exponential = false;
  EXPECT_EQ(count(test::trainium3()), 0);
}

// VectorE makes all exponentials four times as fast as ScalarE, which copies the scores and takes
// their maximum meanwhile.
TEST(AttentionForward, TheFastExponentialPays) {
  KernelSpec spec = attention({1, 4, 4, 4096, 4096, 128, true});
  const double fast = run(spec).duration_ns;
  spec.fast_exponential = false;
  EXPECT_GT(run(spec).duration_ns, 1.1 * fast);
}

TEST(AttentionForward, TheFastExponentialNeverCosts) {
  for (const std::int64_t s : {128, 256, 512, 1024, 2048}) {
    for (const std::int64_t d : {64, 128, 256}) {
      for (const bool causal : {false, true}) {
        KernelSpec spec = attention({1, 2, 2, s, s, d, causal});
        const double fast = run(spec).duration_ns;
        spec.fast_exponential = false;
        EXPECT_LT(fast, 1.001 * run(spec).duration_ns) << spec.label();
      }
    }
  }
}

// One PSUM bank of scores and one of results: TensorE waits for each tile.
TEST(Attention, OneAccumulatorStallsTheArray) {
  for (const KernelKind kind : {KernelKind::AttentionForward, KernelKind::AttentionBackward}) {
    KernelSpec spec = attention({1, 4, 4, 2048, 2048, 128, true});
    spec.kind = kind;
    const double twice = run(spec).duration_ns;
    spec.double_accumulators = false;
    EXPECT_GT(run(spec).duration_ns, 1.2 * twice);
  }
}

// The scores and what becomes of them are the intermediates of attention without flash.
TEST(UnfusedAttention, CountsItsSpills) {
  KernelSpec spec = attention({1, 4, 4, 1024, 1024, 128, true});
  spec.flash = false;
  const auto chip = test::trainium3();
  const std::int64_t scores = 4 * 1024 * 1024 * 2;
  const auto spills = [&] {
    const models::EventCounts c = models::program_counts(compile_kernel(spec, chip), chip);
    return std::pair{c.spill_save_bytes / scores, c.spill_reload_bytes / scores};
  };
  EXPECT_EQ(spills(), (std::pair<std::int64_t, std::int64_t>{2, 2}));  // S, P
  spec.fusion = false;                                                 // and scaled, masked S
  EXPECT_EQ(spills(), (std::pair<std::int64_t, std::int64_t>{4, 4}));
  spec.memory_reuse = false;  // the softmax reads S twice and writes the exponentials
  EXPECT_EQ(spills(), (std::pair<std::int64_t, std::int64_t>{5, 6}));
  spec.kind = KernelKind::AttentionBackward;
  spec.fusion = spec.memory_reuse = true;  // P for dV; dP and P for dS; dS for dQ and dK
  EXPECT_EQ(spills(), (std::pair<std::int64_t, std::int64_t>{2, 5}));
}

TEST(Attention, BadShapesAreUserErrors) {
  EXPECT_THROW(compile_kernel(attention({1, 8, 3, 128, 128, 128, true}), test::trainium3()),
               base::UserError);
  EXPECT_THROW(compile_kernel(attention({1, 8, 8, 256, 128, 128, true}), test::trainium3()),
               base::UserError);
  EXPECT_THROW(compile_kernel(attention({1, 8, 8, 128, 128, 1024, false}), test::trainium3()),
               base::UserError);
  EXPECT_THROW(compile_kernel(attention({1, 8, 8, 0, 128, 128, false}), test::trainium3()),
               base::UserError);
  // 256 Ki keys of one head: 2 x 512 KiB per partition do not fit.
  EXPECT_THROW(compile_kernel(attention({1, 8, 8, 128, 262144, 128, false}), test::trainium3()),
               base::UserError);
}

}  // namespace
}  // namespace trn3sim::compile
