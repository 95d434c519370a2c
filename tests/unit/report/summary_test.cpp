// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/summary.hpp"

#include <numeric>
#include <sstream>

#include "trn3sim/base/error.hpp"

#include "unit/stats/sample_results.hpp"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

using nlohmann::json;
using test::sample_results;

const TextContext kContext{base::Power(800'000'000), "0.1.0"};

std::string text_of(const stats::Results& r) {
  return to_text(summarise(r), r, kContext);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The sample: 2 s at a geometry peak of 1000 FLOP/s, so 2000 FLOP are 100 %.
TEST(Summary, Utilisation) {
  const Summary s = summarise(sample_results());
  EXPECT_DOUBLE_EQ(s.step_time_s, 2.0);
  EXPECT_DOUBLE_EQ(s.tokens_per_s, 200.0);           // 400 tokens in 2 s
  EXPECT_DOUBLE_EQ(s.mfu_estimated_percent, 50.0);   // 1000 of 2000
  EXPECT_DOUBLE_EQ(s.mfu_causal_percent, 45.0);      // 900 of 2000
  EXPECT_DOUBLE_EQ(s.mfu_headline_percent, 40.0);    // 1000 of 2500
  EXPECT_DOUBLE_EQ(s.mfu_dtype_peak_percent, 12.5);  // 1000 of 8000
  EXPECT_DOUBLE_EQ(s.hfu_estimated_percent, 55.0);   // 1100 of 2000
  EXPECT_DOUBLE_EQ(s.mbu_estimated_percent, 25.0);   // 800 B of 3200 B
  EXPECT_DOUBLE_EQ(s.tensor_at_peak_percent, 55.0);  // 1.1 s of 2 s
}

TEST(Summary, MfuIsHfuLessRecomputePlusTheSkippedHalf) {
  const Summary s = summarise(sample_results());
  EXPECT_DOUBLE_EQ(s.recompute_and_padding_percent, 10.0);  // 1100 - 900 of 2000
  EXPECT_DOUBLE_EQ(s.causal_skipped_percent, 5.0);          // 1000 - 900 of 2000
  EXPECT_DOUBLE_EQ(
      s.hfu_estimated_percent - s.recompute_and_padding_percent + s.causal_skipped_percent,
      s.mfu_estimated_percent);
}

TEST(Summary, EnergyIsTheSumOfTheWrittenAccounts) {
  const Summary s = summarise(sample_results());
  EXPECT_DOUBLE_EQ(s.energy_j, 9.1e-6);  // 9100 nJ
  EXPECT_DOUBLE_EQ(*s.energy_per_token_j, 9.1e-6 / 400);
  EXPECT_DOUBLE_EQ(s.average_power_w, 4.55e-6);             // over 2 s
  EXPECT_DOUBLE_EQ(s.energy_percent[12], 100.0 * 13 / 91);  // regulator, 1300 of 9100
  EXPECT_NEAR(std::accumulate(s.energy_percent.begin(), s.energy_percent.end(), 0.0), 100.0, 1e-9);
}

TEST(Summary, BreakdownAndBounds) {
  const Summary s = summarise(sample_results());
  EXPECT_DOUBLE_EQ(s.breakdown_percent[0], 70.0);
  EXPECT_NEAR(std::accumulate(s.breakdown_percent.begin(), s.breakdown_percent.end(), 0.0), 100.0,
              1e-9);
  EXPECT_EQ(kLowerBoundNames[s.bound], "critical_path");  // 1.6 s is the highest
  EXPECT_DOUBLE_EQ(s.above_bound_percent, 25.0);          // 2.0 / 1.6
}

TEST(Summary, IsTheSameFromAResultFile) {
  const stats::Results r = sample_results();
  const stats::Results back = stats::results_from_json(stats::to_json(r), "r.json");
  EXPECT_EQ(to_json(summarise(back), back), to_json(summarise(r), r));
  EXPECT_EQ(text_of(back), text_of(r));
}

TEST(Summary, WithoutTokensOrTrafficNothingIsInfinite) {
  stats::Results r = sample_results();
  r.tokens_per_step = 0;
  r.hbm_peak_rate = 0;
  r.peak_headline_flops = 0;
  r.energy = {};
  r.links.clear();
  r.collectives.clear();
  r.kernels.clear();
  r.bounds = {};
  const Summary s = summarise(r);
  EXPECT_FALSE(s.energy_per_token_j.has_value());
  EXPECT_EQ(s.mbu_estimated_percent, 0.0);
  const std::string text = to_text(s, r, kContext);
  EXPECT_FALSE(contains(text, "nan"));
  EXPECT_FALSE(contains(text, "inf "));
  EXPECT_TRUE(json::parse(to_json(s, r))["energy_per_token_j"].is_null());
}

TEST(Summary, AStepWithoutLengthIsABug) {
  stats::Results r = sample_results();
  r.step_fs = 0;
  EXPECT_THROW(summarise(r), base::InternalError);
}

TEST(Tenths, AddUpToAHundredPercent) {
  // Thirds: 333.33 each; the first takes the left-over tenth.
  EXPECT_EQ(tenths_of_percent({1, 1, 1}), (std::vector<std::int64_t>{334, 333, 333}));
  EXPECT_EQ(tenths_of_percent({0, 5}), (std::vector<std::int64_t>{0, 1000}));
  EXPECT_EQ(tenths_of_percent({0, 0}), (std::vector<std::int64_t>{0, 0}));
  // 9e18 x 1000 does not fit in 64 bits.
  EXPECT_EQ(tenths_of_percent({4'500'000'000'000'000'000, 4'500'000'000'000'000'000}),
            (std::vector<std::int64_t>{500, 500}));
}

TEST(Text, FitsAScreen) {
  stats::Results r = sample_results();
  r.kernels.resize(1, r.kernels[0]);
  r.kernels.resize(40, r.kernels[0]);
  r.kernels[0].label = std::string(200, 'k');
  r.collectives.resize(40, r.collectives[0]);
  r.collectives[0].label = std::string(200, 'c');
  r.collectives[0].worst_link = std::string(200, 'l');
  r.links[0].name = std::string(200, 'n');
  r.assumed.resize(40, r.assumed[0]);
  r.config_name = std::string(200, 'x');
  r.phases.insert(r.phases.begin(), {"", 1, 0.0});  // ops outside any phase
  const std::vector<std::string> all = lines(text_of(r));
  EXPECT_LE(all.size(), 50U);
  for (const std::string& line : all) EXPECT_LE(line.size(), 100U) << line;
}

TEST(Text, SaysWhatMatters) {
  const std::string text = text_of(sample_results());
  for (const char* part :
       {"four_chips x toy",
        "4 chips, 10 ranks, 20 cores",
        "Step time  2.00 s",
        "200 tokens/s",
        "full 50.0 %, causal 45.0 % of the bf16 geometry peak (1.00 kFLOP/s)",
        "full 40.0 %, causal 36.0 % of the bf16 headline peak",
        "HFU        55.0 %",
        "MBU 25.0 %",
        "add up to 100.0 %",
        "compute 70.0 % = matmuls at peak 55.0 + the rest of compute 15.0",
        "MFU full 50.0 % = HFU 55.0 - recompute and padding 10.0 + causal half not run 5.0",
        "9.10 uJ per step, 22.8 nJ/token",
        "of the 800 W TDP",
        "gemm 4096x5504x4096 bf16",
        "all_gather tp 33.6 MB",
        "150 GB/s",
        "chip0.stack1->chip0.stack2 is the hottest: busy 25.0 %",
        "critical_path 1.60 s; the step is 25.0 % above it",
        "all 5 checks ok",
        "chip.on_chip.stack_link = 1 TB/s"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
  }
  // Kernel: 9 s of 10 ranks x 2 s = 45 %; each 9 s / 640 = 14.06 ms.
  EXPECT_TRUE(contains(text, "640   45.0 %   14.1 ms  tensor")) << text;
  // Collective: 3 s of 20 s = 15 %; each 3 s / (64 instances x 4 ranks) = 11.7 ms.
  EXPECT_TRUE(contains(text, "64   15.0 %   11.7 ms")) << text;
}

TEST(Text, LeavesOutWhatAStepHasNot) {
  // One chip that only moves data: no tokens, no matmuls, no phases, two classes of time.
  stats::Results r = sample_results();
  r.chips = r.ranks = r.cores_used = 1;
  r.tokens_per_step = 0;
  r.model_flop = r.model_flop_causal = r.hardware_flop = 0;
  r.tensor_ideal_fs = 0;
  r.breakdown.mean_fs = {1'500'000'000'000'000, 0, 500'000'000'000'000, 0, 0, 0};
  r.phases = {{"", r.step_fs, 0.0}};
  r.energy[base::EnergyAccount::Tensor] = {};
  const std::string text = text_of(r);
  EXPECT_TRUE(contains(text, "1 chip, 1 rank, 1 core; compile level tuned")) << text;
  EXPECT_TRUE(contains(text, "no matmuls in this step     MBU 25.0 %")) << text;
  for (const char* part : {"token", "MFU full", "throttled", "bubble", "phase", "  tensor  "})
    EXPECT_FALSE(contains(text, part)) << part << "\nin\n" << text;
  EXPECT_TRUE(contains(text, "compute                 75.0 %"));
  EXPECT_TRUE(contains(text, "exposed_memory          25.0 %"));
}

TEST(Text, CutsNoUsualName) {
  stats::Results r = sample_results();
  r.collectives[0].worst_link = "chip143.stack3->chip143.stack0";
  r.trace_name = "llama7b_instance16.trace";
  r.config_name = "ultraserver64.json";
  const std::string text = text_of(r);
  EXPECT_TRUE(contains(text, r.collectives[0].worst_link)) << text;
  EXPECT_TRUE(contains(text, "ultraserver64.json x llama7b_instance16.trace")) << text;
  EXPECT_FALSE(contains(text, "..\n")) << text;
  // Bounds as long as they get.
  r.bounds = {6'360'000'000'000, 1'890'000'000, 1'630'000'000, 4'440'000'000'000,
              3'330'000'000'000};
  EXPECT_TRUE(contains(text_of(r), "critical_path 3.33 ms\n")) << text_of(r);
}

TEST(Text, NamesAsManyAssumedNumbersAsFit) {
  stats::Results r = sample_results();
  r.assumed = {{"chip.energy.leakage", "60 W", ""}, {"chip.hbm.derate", "0.93", ""}};
  EXPECT_TRUE(contains(text_of(r),
                       "2 numbers have no source (see results.json): chip.hbm.derate = "
                       "0.93, ...\n"))
      << text_of(r);
  r.assumed.resize(1);
  EXPECT_TRUE(contains(text_of(r),
                       "1 number has no source (see results.json): chip.energy.leakage "
                       "= 60 W\n"));
}

TEST(Text, ListsFailedChecks) {
  stats::Results r = sample_results();
  r.checks.push_back({"messages drained", false, "3 left"});
  const Summary s = summarise(r);
  EXPECT_FALSE(s.checks_passed);
  EXPECT_TRUE(contains(to_text(s, r, kContext), "FAILED messages drained: 3 left"));
}

TEST(SummaryJson, HasTheNamedMetrics) {
  const stats::Results r = sample_results();
  const json j = json::parse(to_json(summarise(r), r));
  for (const char* key :
       {"step_time_s", "tokens_per_s", "mfu_estimated_percent", "mfu_causal_percent",
        "mfu_headline_percent", "mfu_dtype_peak_percent", "hfu_estimated_percent",
        "mbu_estimated_percent", "energy_j", "energy_per_token_j", "average_power_w"}) {
    EXPECT_TRUE(j.at(key).is_number()) << key;
  }
  EXPECT_EQ(j.at("breakdown_percent").size(), 6U);
  EXPECT_EQ(j.at("energy_percent").size(), 13U);
  EXPECT_EQ(j.at("lower_bounds_s").size(), 5U);
  EXPECT_EQ(j["breakdown_percent"]["host_input"], 2.0);
  EXPECT_EQ(j["lower_bounds_s"]["hbm"], 0.5);
  EXPECT_EQ(j["mfu_estimated_percent"], 50.0);
}

}  // namespace
}  // namespace trn3sim::report
