// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "trn3sim/base/error.hpp"
#include "trn3sim/stats/checks.hpp"
#include "trn3sim/stats/energy_nj.hpp"

#include "unit/stats/sample_results.hpp"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::stats {
namespace {

using nlohmann::json;
using test::sample_results;

std::string error_of(const std::string& text) {
  try {
    results_from_json(text, "r.json");
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

// The sample as JSON with one change.
template <class Change>
std::string changed(Change change) {
  json j = json::parse(to_json(sample_results()));
  change(j);
  return j.dump();
}

TEST(ResultsJson, ReadsBackWhatItWrote) {
  const std::string text = to_json(sample_results());
  const Results back = results_from_json(text, "r.json");
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.kernels.at(1).bound, "dma");
  EXPECT_EQ(back.links.at(0).queue_fs, 7);
  EXPECT_EQ(back.breakdown.mean_fs[5], 40'000'000'000'000);
  EXPECT_EQ(back.bounds.critical_path_fs, 1'600'000'000'000'000);
  EXPECT_TRUE(back.checks.at(0).passed);
}

TEST(ResultsJson, EveryFieldIsWritten) {
  // A field that is described neither writes nor reads: each value of the sample differs from its
  // default, so a default Results must differ from the sample in every leaf but model constants.
  const json a = json::parse(to_json(sample_results())).flatten();
  const json b = json::parse(to_json(Results{})).flatten();
  for (const auto& item : b.items()) {
    if (!a.contains(item.key())) continue;  // the empty lists
    EXPECT_NE(a[item.key()], item.value()) << item.key();
  }
}

TEST(ResultsJson, IdenticalResultsGiveIdenticalBytes) {
  EXPECT_EQ(to_json(sample_results()), to_json(sample_results()));
}

TEST(ResultsJson, KeysAreSorted) {
  const auto j = nlohmann::ordered_json::parse(to_json(sample_results()));
  std::string previous;
  for (const auto& item : j.items()) {
    EXPECT_LT(previous, item.key());
    previous = item.key();
  }
}

TEST(ResultsJson, DoublesReadBackExactly) {
  Results r = sample_results();
  r.model_flop = 1.0 / 3.0;
  r.hardware_flop = 2.8421709430404007e17;
  const Results back = results_from_json(to_json(r), "r.json");
  EXPECT_EQ(back.model_flop, r.model_flop);
  EXPECT_EQ(back.hardware_flop, r.hardware_flop);
}

TEST(ResultsJson, EnergyTotalIsTheSumOfTheWrittenAccounts) {
  const json j = json::parse(to_json(sample_results()))["energy_nj"];
  std::int64_t sum = 0;
  for (const auto& item : j.items()) {
    if (item.key() != "total") sum += item.value().get<std::int64_t>();
  }
  EXPECT_EQ(j["total"].get<std::int64_t>(), sum);
  // 100 + 200 + ... + 1300; the 13 x 0.9 nJ are dropped account by account.
  EXPECT_EQ(sum, 9100);
  EXPECT_EQ(j["regulator"].get<std::int64_t>(), 1300);
}

TEST(ResultsJson, ErrorsNameFileAndPlace) {
  EXPECT_EQ(error_of(changed([](json& j) { j["chips"] = "four"; })),
            "r.json: chips: is \"four\", expected a 64-bit integer");
  EXPECT_EQ(error_of(changed([](json& j) { j["step_fs"] = 1.5; })),
            "r.json: step_fs: is 1.5, expected a 64-bit integer");
  EXPECT_EQ(error_of(changed([](json& j) { j["step_fs"] = 9223372036854775808ULL; })),
            "r.json: step_fs: is 9223372036854775808, expected a 64-bit integer");
  EXPECT_EQ(error_of(changed([](json& j) { j["links"][1].erase("busy_fs"); })),
            "r.json: links[1].busy_fs: is missing");
  EXPECT_EQ(error_of(changed([](json& j) { j["kernels"][0]["counts"] = 1; })),
            "r.json: kernels[0].counts: unknown key; did you mean \"count\"?");
  EXPECT_EQ(error_of(changed([](json& j) { j["phases"] = 3; })),
            "r.json: phases: is number, expected an array");
  EXPECT_EQ(error_of(changed([](json& j) { j["checks"][0]["passed"] = 1; })),
            "r.json: checks[0].passed: is 1, expected true or false");
  EXPECT_EQ(error_of(changed([](json& j) { j["energy_nj"]["total"] = 9101; })),
            "r.json: energy_nj.total: is 9101, but the accounts sum to 9100");
}

TEST(ResultsJson, AllProblemsAtOnce) {
  const std::string text = error_of(changed([](json& j) {
    j["chips"] = true;
    j["energy_nj"].erase("hbm");
  }));
  EXPECT_NE(text.find("chips: is true"), std::string::npos) << text;
  EXPECT_NE(text.find("energy_nj.hbm: is missing"), std::string::npos) << text;
}

TEST(ResultsJson, RefusesWhatIsNotOneObject) {
  EXPECT_NE(error_of("").find("r.json: is not JSON"), std::string::npos);
  EXPECT_NE(error_of("[]").find("r.json: is array, expected an object"), std::string::npos);
  EXPECT_NE(error_of(R"({"chips":1,"chips":2})").find("key \"chips\" appears twice"),
            std::string::npos);
}

TEST(ResultsJson, NotANumberIsABug) {
  Results r = sample_results();
  r.model_flop = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(to_json(r), base::InternalError);
}

TEST(RunInfoJson, HasItsCounts) {
  RunInfo info;
  info.wall_s = 1.5;
  info.rank_ops = 7;
  info.host = "h";
  const json j = json::parse(to_json(info));
  EXPECT_EQ(j["wall_s"], 1.5);
  EXPECT_EQ(j["rank_ops"], 7);
  EXPECT_EQ(j["host"], "h");
}

// Name of the only check that `change` makes fail, "none" or "several".
template <class Change>
std::string failing(Change change) {
  Results r = sample_results();
  change(r);
  std::string name = "none";
  for (const CheckResult& check : physics_checks(r)) {
    if (check.passed) continue;
    EXPECT_FALSE(check.detail.empty());
    name = name == "none" ? check.name : "several";
  }
  return name;
}

TEST(PhysicsChecks, EachCanFail) {
  EXPECT_EQ(failing([](Results&) {}), "none");
  EXPECT_EQ(failing([](Results& r) { r.bounds.hbm_fs = r.step_fs + 1; }),
            "step time above every lower bound");
  EXPECT_EQ(failing([](Results& r) { r.breakdown.mean_fs[0] -= 1; }),
            "classes of time fill the step");
  EXPECT_EQ(failing([](Results& r) {
              r.breakdown.mean_fs[0] += r.breakdown.mean_fs[1] + 1;
              r.breakdown.mean_fs[1] = -1;
            }),
            "classes of time fill the step");
  EXPECT_EQ(failing([](Results& r) { r.links[1].busy_fs = r.step_fs + 1; }),
            "nothing busy longer than the step");
  EXPECT_EQ(failing([](Results& r) { r.engine_busy_fs[4] = r.step_fs + 1; }),
            "nothing busy longer than the step");
  EXPECT_EQ(failing([](Results& r) { r.bytes_received -= 1; }), "bytes sent = bytes received");
  EXPECT_EQ(failing([](Results& r) { r.energy.of[3] = base::Energy(-1); }),
            "no energy account is negative");
}

TEST(PhysicsChecks, TheRunsOwnChecksComeFirstAndOnce) {
  const std::vector<CheckResult> checks = all_checks(sample_results());
  EXPECT_EQ(checks.size(), 5U);  // "bytes sent = bytes received" is in both
  EXPECT_EQ(checks.front().name, "bytes sent = bytes received");
}

TEST(PhysicsChecks, AFailureIsNotHiddenByARunThatSaysOtherwise) {
  Results r = sample_results();
  r.bytes_received = 1;
  const std::vector<CheckResult> checks = all_checks(r);
  EXPECT_EQ(std::count_if(checks.begin(), checks.end(), [](const auto& c) { return !c.passed; }),
            1);
}

}  // namespace
}  // namespace trn3sim::stats
