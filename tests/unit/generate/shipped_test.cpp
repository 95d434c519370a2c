// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The shipped traces are exactly what the generators make. To write them anew after an intended
// change, run this test with TRN3SIM_WRITE_TRACES=1 and look at the difference.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "trn3sim/generate/llama.hpp"
#include "trn3sim/generate/synthetic.hpp"
#include "trn3sim/trace/program.hpp"

#include <gtest/gtest.h>

namespace trn3sim::generate {
namespace {

std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(TRN3SIM_SOURCE_DIR) / "configs" / "traces" / name;
}

void expect_shipped(const std::string& name, const std::string& text) {
  const std::filesystem::path file = shipped(name);
  if (std::getenv("TRN3SIM_WRITE_TRACES") != nullptr) std::ofstream(file, std::ios::binary) << text;
  std::ifstream stream(file, std::ios::binary);
  ASSERT_TRUE(stream) << file;
  std::stringstream content;
  content << stream.rdbuf();
  EXPECT_EQ(content.str(), text) << name << " differs from what the generator makes";
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 120) << name;
  const trace::Program program = trace::read(file);
  EXPECT_GT(trace::scan(program, 0).ops, 0);
}

// Llama-2 7B, sequences of 4096, 16 micro-steps of one sequence, TP4 inside a chip.
LlamaPlan llama7b(std::int64_t dp) {
  LlamaPlan plan;
  plan.dims = llama_preset("llama2-7b");
  plan.tp = 4;
  plan.dp = dp;
  plan.gbs = 16 * dp;
  return plan;
}

TEST(ShippedTraces, Llama7b) {
  expect_shipped("llama7b.trace", generate_llama(llama7b(64)));
}
TEST(ShippedTraces, Llama7bInstance16) {
  expect_shipped("llama7b_instance16.trace", generate_llama(llama7b(16)));
}
TEST(ShippedTraces, Llama7bChip1) {
  expect_shipped("llama7b_chip1.trace", generate_llama(llama7b(1)));
}
TEST(ShippedTraces, ResidualAdd) {
  expect_shipped("residual_add.trace", generate_residual_add());
}
TEST(ShippedTraces, OptimizerOnly) {
  expect_shipped("optimizer_only.trace", generate_optimizer_only());
}

}  // namespace
}  // namespace trn3sim::generate
