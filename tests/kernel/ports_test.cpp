// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports that two engines share, on the detailed cores of a stack.
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/modules/stack_cluster.hpp"

#include "support/kernel_test.hpp"
#include "support/tile_builder.hpp"

namespace trn3sim::modules {
namespace {

using compile::KernelKind;
using compile::KernelSpec;
using test::Engine;
using test::Opcode;

class PortsTest : public test::KernelTest {
 protected:
  config::ChipSpec chip = config::load_run("trn1_chip.json", {}).system.chip;

  ClusterRun run(StackCluster& cluster, const models::TileProgram& program) {
    context.restart();
    cluster.load(program, base::Rate(0));
    cluster.arm([] {});
    sc_core::sc_start();
    EXPECT_TRUE(cluster.finished());
    return cluster.result();
  }
  // VectorE needs a loaded tile and GpSimdE does not; `gap` cycles pass before GpSimdE asks.
  static models::TileProgram race(std::int32_t gap) {
    test::TileBuilder t;
    const auto loaded = t.semaphore();
    t.transfer(test::load(t.operand(4096), 1, 4096));
    t.program().transfers[0].signals[0] = {loaded, 1};
    t.dma(Engine::Sync, 0);
    models::Instruction vector = test::lane(Opcode::Select, 1120);  // 1 us
    vector.waits[0] = {loaded, 1};
    t.add(Engine::Vector, vector);
    models::Instruction wait = test::lane(Opcode::Iota, gap - 150);
    wait.source = wait.destination = models::Space::Psum;
    t.add(Engine::Gpsimd, wait);
    t.add(Engine::Gpsimd, test::lane(Opcode::Select, 1250));  // 1 us with its start
    return t.program();
  }
};

// Whoever asks first has SBUF for its microsecond, and the other one follows.
TEST_F(PortsTest, FirstAskedFirstServed) {
  StackCluster cluster("cluster", chip, context), reverse("reverse", chip, context, true);
  config::ChipSpec free = chip;
  free.sbuf.shared_port = "none";
  StackCluster apart("apart", free, context);
  const models::TileProgram late = race(28'000), early = race(700);
  // Alone, VectorE ends some 3 us after the start: 1.3 us until the transfer, 0.25 us for its
  // token.
  const base::Time vector = run(apart, early).duration;
  EXPECT_GT(vector, base::nanoseconds(2550));
  EXPECT_LT(vector, base::nanoseconds(3000));
  // GpSimdE asks after 0.5 us and has given back when VectorE asks, or asks after 20 us: neither is
  // in the way of the other.
  EXPECT_EQ(run(cluster, early).duration, vector);
  EXPECT_EQ(run(cluster, late).duration, base::nanoseconds(21'000));
  // It asks while VectorE works, whose microsecond is over at `vector`.
  const auto middle = static_cast<std::int32_t>((vector.count() - 500'000'000) * 14 / 10'000'000);
  const base::Time both = run(cluster, race(middle)).duration;
  EXPECT_GE(both, vector + base::nanoseconds(1000));
  EXPECT_LT(both, vector + base::nanoseconds(1001));
  EXPECT_EQ(run(reverse, race(middle)).duration, both);
}

// Kernels that use all engines come out the same whatever was constructed first, and sharing costs
// time but no work.
TEST_F(PortsTest, KernelsOfTheFirstGeneration) {
  StackCluster cluster("cluster", chip, context), reverse("reverse", chip, context, true);
  config::ChipSpec free = chip;
  free.sbuf.shared_port = free.psum.shared_port = "none";
  StackCluster apart("apart", free, context);
  KernelSpec adamw;
  adamw.kind = KernelKind::Vector;
  adamw.fn = "adamw";
  adamw.elems = 1'000'003;
  adamw.in = base::DType::Fp32;
  adamw.rd = adamw.wr = 16 * adamw.elems;
  KernelSpec attention;
  attention.heads = attention.kv_heads = 2;
  attention.sq = attention.skv = 1000;
  attention.d = 128;
  attention.causal = true;
  for (const KernelKind kind :
       {KernelKind::Vector, KernelKind::AttentionForward, KernelKind::AttentionBackward}) {
    KernelSpec spec = kind == KernelKind::Vector ? adamw : attention;
    spec.kind = kind;
    const models::TileProgram program = compile::compile_kernel(spec, chip);
    const ClusterRun a = run(cluster, program), b = run(reverse, program);
    EXPECT_EQ(a.duration, b.duration) << spec.label();
    EXPECT_EQ(a.compute_active, b.compute_active) << spec.label();
    EXPECT_EQ(a.dma_busy, b.dma_busy) << spec.label();
    const ClusterRun c = run(apart, program);
    EXPECT_EQ(a.engine_busy, c.engine_busy) << spec.label();
    EXPECT_GE(a.duration.count(), c.duration.count() - c.duration.count() / 1000) << spec.label();
  }
}

}  // namespace
}  // namespace trn3sim::modules
