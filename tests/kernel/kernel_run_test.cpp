// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/kernel_run.hpp"

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/models/engine_cost.hpp"
#include "trn3sim/sim/bench.hpp"

#include "support/kernel_test.hpp"
#include "support/test_chip.hpp"

namespace trn3sim::sim {
namespace {

class KernelRunTest : public test::KernelTest {
 protected:
  KernelRunTest() {
    spec.m = 512;
    spec.n = 1024;
    spec.k = 1024;
  }
  config::ChipSpec chip = test::test_chip();
  compile::KernelSpec spec;
};

std::int64_t stalled(const stats::KernelResults& r, const std::string& engine) {
  std::int64_t total = 0;
  for (const stats::KernelStall& s : r.stalls) total += s.engine == engine ? s.time_fs : 0;
  return total;
}

TEST_F(KernelRunTest, IsTheBench) {
  const models::TileProgram program = compile::compile_kernel(spec, chip);
  KernelRun kernel(chip);
  KernelBench bench("bench", chip, context);
  const stats::KernelResults r = kernel.run(spec, program);
  const modules::ClusterRun b = bench.run(program, base::Rate(0));
  EXPECT_EQ(r.time_fs, b.duration.count());
  EXPECT_EQ(r.active_fs[0], b.engine_active[0].count());
  EXPECT_EQ(r.hbm_read_bytes, b.hbm_read_bytes);
  EXPECT_EQ(r.hbm_write_bytes, b.hbm_write_bytes);
  EXPECT_EQ(r.dma_active_fs, b.dma_active.count());
}

// The array works or waits for a token, but for filling and results on their way.
TEST_F(KernelRunTest, ActiveAndWaitingTimeFillTheKernel) {
  const models::TileProgram program = compile::compile_kernel(spec, chip);
  KernelRun kernel(chip);
  const stats::KernelResults r = kernel.run(spec, program);
  const std::int64_t known = r.active_fs[0] + stalled(r, "tensor");
  EXPECT_LE(known, r.time_fs);
  EXPECT_GT(static_cast<double>(known), 0.8 * static_cast<double>(r.time_fs));
  EXPECT_LE(r.bounds.tensor_fs, r.active_fs[0]);
  EXPECT_LE(r.bounds.dma_fs, r.dma_active_fs);
  EXPECT_LE(r.dma_active_fs, r.time_fs);
}

// A timeline changes nothing; its slices of TensorE and DMA are all there.
TEST_F(KernelRunTest, TimelineShowsWhatRan) {
  const models::TileProgram program = compile::compile_kernel(spec, chip);
  KernelRun kernel(chip);
  const stats::KernelResults plain = kernel.run(spec, program);
  stats::Timeline timeline{stats::TimelineSpec{}};
  const stats::KernelResults r = kernel.run(spec, program, &timeline);
  EXPECT_EQ(r.time_fs, plain.time_fs);
  EXPECT_EQ(timeline.dropped(), 0);
  std::int64_t matmuls = 0, bytes = 0;
  for (const stats::Timeline::Slice& s : timeline.slices()) {
    bytes += s.bytes;
    const std::string& name = timeline.names()[static_cast<std::size_t>(s.name)];
    matmuls += name == models::name(models::Opcode::MultiplyMoving) ? 1 : 0;
    EXPECT_LE(s.start, s.end);
    EXPECT_LE(s.end.count(), r.time_fs);
  }
  EXPECT_EQ(matmuls, r.matmuls);
  EXPECT_EQ(bytes, r.hbm_read_bytes + r.hbm_write_bytes);
}

// One PSUM buffer instead of two: TensorE waits for the engine that empties it.
TEST_F(KernelRunTest, StallsNameTheCause) {
  config::MappingSpec mapping;
  mapping.type = "loops";
  mapping.loops.loops = {{"m", 128}, {"n", 512}, {"k", 128}};
  mapping.loops.a = {0, 128, 512, 1, "sync", 0};
  mapping.loops.b = {0, 128, 1024, 1, "sync", 1};
  mapping.loops.c = {2, 1, "vector", "fp32", 2, 512, 2, "gpsimd", 3};
  const auto waits_for_vector = [](const stats::KernelResults& r) {
    for (const stats::KernelStall& s : r.stalls)
      if (s.engine == "tensor" && s.waits_for == "vector tensor_copy") return s.time_fs;
    return std::int64_t{0};
  };
  KernelRun kernel(chip);
  const models::TileProgram one = compile::compile_kernel(spec, chip, &mapping);
  const stats::KernelResults single = kernel.run(spec, one);
  mapping.loops.c.psum_buffers = 2;
  const models::TileProgram two = compile::compile_kernel(spec, chip, &mapping);
  const stats::KernelResults twice = kernel.run(spec, two);
  EXPECT_GT(waits_for_vector(single), 10 * waits_for_vector(twice));
  EXPECT_LT(twice.time_fs, single.time_fs);
  EXPECT_EQ(single.hbm_read_bytes, twice.hbm_read_bytes);
}

}  // namespace
}  // namespace trn3sim::sim
