// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/trace_commands.hpp"

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::app {
namespace {

TEST(LlamaPlan, OptionsOverrideThePreset) {
  GenerateLlama options;
  options.preset = "llama2-7b";
  options.values = {{"layers", 2}, {"dp", 3}, {"gbs", 6}};
  options.rank_unit = "core";
  options.zero1 = false;
  const generate::LlamaPlan plan = llama_plan(options);
  EXPECT_EQ(plan.dims.layers, 2);
  EXPECT_EQ(plan.dims.hidden, 4096);
  EXPECT_EQ(plan.dp, 3);
  EXPECT_EQ(plan.gbs, 6);
  EXPECT_EQ(plan.rank_unit, base::RankUnit::Core);
  EXPECT_FALSE(plan.zero1);
  EXPECT_EQ(plan.name, "llama2-7b");
}

TEST(LlamaPlan, NamesMissingSizes) {
  GenerateLlama options;
  options.values = {{"layers", 2}, {"hidden", 64}, {"heads", 4}};
  try {
    llama_plan(options);
    FAIL() << "no error";
  } catch (const base::UserError& e) {
    EXPECT_NE(
        std::string(e.what()).find("missing: --ffn, --vocab; give them or --preset llama2-7b"),
        std::string::npos)
        << e.what();
  }
}

trace::Op op(std::string id, trace::Body body, std::int32_t after) {
  trace::Op result;
  result.id = std::move(id);
  result.body = std::move(body);
  result.deps = {after};
  return result;
}

// One gemm of 2 x 8 x 4 x 2 = 128 FLOP, three times, and an all-reduce.
trace::Program program() {
  trace::Program p;
  p.file = "toy.trace";
  p.header.name = "toy";
  p.header.mesh = base::Mesh({{"dp", 2}});
  p.header.tokens_per_step = 16;
  p.header.memory = {{"weights", 1000, "always"}};
  trace::Block top, body;
  body.id = "b";
  body.phase = "forward";
  body.ops.push_back(op("g", trace::Gemm{8, 4, 2, 1, {}, {}, false}, trace::kEntry));
  top.ops.push_back(op("r", trace::Repeat{1, 3}, trace::kEntry));
  const trace::Collective all_reduce{trace::CollectiveKind::AllReduce, "dp", {0}, 64, 64, {}};
  top.ops.push_back(op("c", all_reduce, 0));
  p.blocks = {top, body};
  return p;
}

TEST(TraceInfo, CountsOneRank) {
  const auto j = nlohmann::json::parse(info_json(program(), 0));
  EXPECT_EQ(j["ranks"], 2);
  EXPECT_EQ(j["ops"], 4);
  EXPECT_EQ(j["model_flop"], 384.0);
  EXPECT_EQ(j["collectives"][0]["in_bytes"], 64);
  EXPECT_EQ(j["peak_memory_bytes"], 1000);
  const std::string text = info_text(program(), 0);
  EXPECT_NE(text.find("384 FLOP full attention"), std::string::npos) << text;
  EXPECT_NE(text.find("768 FLOP of all ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("forward"), std::string::npos) << text;
}

}  // namespace
}  // namespace trn3sim::app
