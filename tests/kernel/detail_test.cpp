// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel of each kind, in detail alone on a chip, equals the bench's profile exactly.
#include <vector>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/modules/detailed_chip.hpp"
#include "trn3sim/sim/bench.hpp"

#include "support/kernel_test.hpp"

namespace trn3sim {
namespace {

compile::KernelSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  compile::KernelSpec s;
  s.kind = compile::KernelKind::Gemm;
  s.m = m;
  s.n = n;
  s.k = k;
  s.cores = 2;
  return s;
}

compile::KernelSpec attention(bool backward) {
  compile::KernelSpec s;
  s.kind =
      backward ? compile::KernelKind::AttentionBackward : compile::KernelKind::AttentionForward;
  s.heads = s.kv_heads = 2;
  s.sq = s.skv = 1024;
  s.d = 128;
  s.causal = true;
  s.cores = 2;
  return s;
}

compile::KernelSpec vector(const std::string& fn, int inputs, int outputs) {
  compile::KernelSpec s;
  s.kind = compile::KernelKind::Vector;
  s.fn = fn;
  s.elems = 1 << 20;
  s.rd = inputs * 2 * s.elems;
  s.wr = outputs * 2 * s.elems;
  s.cores = 2;
  return s;
}

class DetailTest : public test::KernelTest {
 protected:
  config::RunSpec run =
      config::load_run(std::string(TRN3SIM_SOURCE_DIR) + "/configs/chip1.json", {});

  void expect_equal(const std::vector<compile::KernelSpec>& kernels) {
    const config::ChipSpec& spec = run.system.chip;
    modules::DetailedChip chip("chip", spec, context);
    sim::KernelBench bench("bench", spec, context);
    for (const compile::KernelSpec& k : kernels) {
      const models::TileProgram program = compile::compile_kernel(k, spec);
      const models::KernelProfile profile = bench.profile(program);
      for (std::size_t s : {std::size_t{0}, chip.stacks() - 1}) {
        context.restart();
        bool done = false;
        chip.stack(s).load(program, base::Rate(0));
        chip.stack(s).arm([&] { done = true; });
        sc_core::sc_start();
        ASSERT_TRUE(done) << k.label();
        const modules::ClusterRun r = chip.stack(s).result();
        EXPECT_EQ(r.duration, profile.duration) << k.label();
        EXPECT_EQ(r.compute_active, profile.compute_active) << k.label();
        EXPECT_EQ(r.hbm_read_bytes, profile.counts.hbm_read_bytes) << k.label();
        EXPECT_EQ(r.hbm_activates, profile.counts.hbm_activates) << k.label();
        EXPECT_GT(r.duration, base::Time(0));
      }
    }
  }
};

TEST_F(DetailTest, MatmulsEqualTheirProfiles) {
  compile::KernelSpec dw = gemm(1024, 512, 1024);
  dw.out = base::DType::Fp32;
  dw.accumulate = true;
  compile::KernelSpec gate = gemm(512, 2048, 1024);
  gate.epilogues = {{"silu_mul", 512 * 1024}};
  expect_equal({gemm(1024, 1024, 2048), dw, gate});
}

TEST_F(DetailTest, AttentionEqualsItsProfiles) {
  expect_equal({attention(false), attention(true)});
}

TEST_F(DetailTest, VectorKernelsEqualTheirProfiles) {
  expect_equal({vector("add", 2, 1), vector("rmsnorm", 1, 1), vector("rmsnorm_bwd", 3, 1),
                vector("silu_mul", 2, 1), vector("embedding", 1, 1),
                vector("cross_entropy", 1, 1)});
}

TEST_F(DetailTest, OptimizerEqualsItsProfile) {
  compile::KernelSpec s = vector("adamw", 4, 4);
  s.in = s.out = base::DType::Fp32;
  s.rd = 16 * s.elems;
  s.wr = 14 * s.elems;
  expect_equal({s});
}

}  // namespace
}  // namespace trn3sim
