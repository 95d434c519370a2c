// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Peak rates of the shipped chips: 2 x 128 x 128 PEs x clock x MACs per PE and cycle (x 4 for
// weights of which 4 in 16 are kept), and the same from the cycles that the engine model charges.
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "support/tile_builder.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::DType;

struct Peak {
  DType dtype;
  double core, chip;  // TFLOPS
  int sparsity = 1;
};

struct Generation {
  const char* system;
  std::vector<Peak> peaks;
  std::vector<DType> missing;
};

// FLOP/s of MultiplyMovings back to back, sparse zeros counted.
double charged(const config::ChipSpec& chip, const Peak& peak) {
  const double rate = chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(peak.dtype)];
  Instruction i = test::multiply(
      static_cast<std::int16_t>(128 * peak.sparsity * std::max(1, static_cast<int>(rate))), 128,
      512, peak.dtype);
  i.sparsity = static_cast<std::int8_t>(peak.sparsity);
  const auto cycles = static_cast<double>(instruction_cost(i, Engine::Tensor, chip).cycles);
  return 2.0 * i.rows * i.columns * i.elements * static_cast<double>(chip.tensor.clock.count()) /
         cycles;
}

const std::vector<Generation>& generations() {
  static const std::vector<Generation> all = {{"trn1_chip.json",
                                               {{DType::Fp32, 22.9376, 45.8752},
                                                {DType::Tf32, 91.7504, 183.5008},
                                                {DType::Bf16, 91.7504, 183.5008},
                                                {DType::Fp16, 91.7504, 183.5008},
                                                {DType::Fp8, 91.7504, 183.5008}},
                                               {DType::Mxfp8, DType::Mxfp4}},
                                              {"trn2_chip.json",
                                               {{DType::Fp32, 19.6608, 157.2864},
                                                {DType::Tf32, 78.6432, 629.1456},
                                                {DType::Bf16, 78.6432, 629.1456},
                                                {DType::Fp16, 78.6432, 629.1456},
                                                {DType::Fp8, 157.2864, 1258.2912},
                                                {DType::Tf32, 314.5728, 2516.5824, 4},
                                                {DType::Bf16, 314.5728, 2516.5824, 4},
                                                {DType::Fp16, 314.5728, 2516.5824, 4}},
                                               {DType::Mxfp8, DType::Mxfp4}},
                                              {"chip1.json",
                                               {{DType::Fp32, 19.6608, 157.2864},
                                                {DType::Tf32, 78.6432, 629.1456},
                                                {DType::Bf16, 78.6432, 629.1456},
                                                {DType::Fp16, 78.6432, 629.1456},
                                                {DType::Fp8, 157.2864, 1258.2912},
                                                {DType::Mxfp8, 314.5728, 2516.5824},
                                                {DType::Mxfp4, 314.5728, 2516.5824},
                                                {DType::Tf32, 314.5728, 2516.5824, 4},
                                                {DType::Bf16, 314.5728, 2516.5824, 4},
                                                {DType::Fp16, 314.5728, 2516.5824, 4}},
                                               {}}};
  return all;
}

TEST(Peak, FollowsFromGeometryClockAndMacs) {
  for (const Generation& g : generations()) {
    const config::ChipSpec chip = config::load_run(g.system, {}).system.chip;
    for (const Peak& p : g.peaks) {
      const double core = chip.peak_flops_per_core(p.dtype) * p.sparsity;
      EXPECT_DOUBLE_EQ(core, p.core * 1e12) << chip.name << ' ' << base::name(p.dtype);
      EXPECT_DOUBLE_EQ(core * static_cast<double>(chip.cores), p.chip * 1e12) << chip.name;
      EXPECT_DOUBLE_EQ(charged(chip, p), core) << chip.name << ' ' << base::name(p.dtype);
      EXPECT_TRUE(p.sparsity == 1 || chip.tensor.sparse_weights);
    }
    for (const DType t : g.missing) EXPECT_EQ(chip.peak_flops_per_core(t), 0) << chip.name;
  }
  EXPECT_FALSE(config::load_run("trn1_chip.json", {}).system.chip.tensor.sparse_weights);
}

// The maker rounds; what it adds to dense totals besides TensorE is not in the geometry.
TEST(Peak, IsWhatTheMakerPrintsPerCore) {
  const auto tflops = [](const char* system, DType t) {
    return config::load_run(system, {}).system.chip.peak_flops_per_core(t) * 1e-12;
  };
  EXPECT_NEAR(tflops("trn1_chip.json", DType::Bf16), 92, 0.5);
  EXPECT_NEAR(tflops("trn1_chip.json", DType::Fp8), 92, 0.5);
  EXPECT_NEAR(tflops("trn1_chip.json", DType::Fp32), 23, 0.5);
  EXPECT_NEAR(tflops("trn2_chip.json", DType::Bf16), 79, 0.5);
  EXPECT_NEAR(tflops("trn2_chip.json", DType::Fp8), 158, 1);
  EXPECT_NEAR(tflops("trn2_chip.json", DType::Fp32), 20, 0.5);
  EXPECT_NEAR(tflops("chip1.json", DType::Bf16), 79, 0.5);
  EXPECT_NEAR(tflops("chip1.json", DType::Mxfp8), 315, 0.5);
  EXPECT_NEAR(tflops("chip1.json", DType::Fp32), 20, 0.5);
}

}  // namespace
}  // namespace trn3sim::models
