// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/timeline.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

using nlohmann::json;
using stats::Timeline;

struct Sample {
  std::int32_t track;
  std::int64_t start, end;
};

// Chips 2 and 5 of eight, a rank each; `samples` by ascending end.
Timeline timeline(const std::vector<Sample>& samples, std::int64_t limit = 100) {
  Timeline t({{2, 5}, limit});
  t.add_track({2, 8, "compute", true});
  t.add_track({2, 8, "send", false});
  t.add_track({5, 20, "compute", true});
  for (const Sample& s : samples) {
    Timeline::Slice slice;
    slice.track = s.track;
    slice.name = t.name_id("gemm \"a\"");
    slice.op = t.name_id("up");
    slice.block = t.name_id("layer");
    slice.iteration = "3/12";
    slice.bytes = 4096;
    slice.start = base::Time(s.start);
    slice.end = base::Time(s.end);
    t.slice(slice);
  }
  return t;
}

std::vector<json> slices_of(const json& file) {
  std::vector<json> slices;
  for (const json& e : file["traceEvents"])
    if (e["ph"] == "X") slices.push_back(e);
  return slices;
}

TEST(TimelineJson, SlicesCarryTimeNameAndOrigin) {
  // 1,500,000,001 fs = 1.500000001 us.
  const std::string text = timeline_json(timeline({{0, 500'000'000, 1'500'000'001}}), 8);
  EXPECT_NE(text.find("\"ts\":0.500000000,\"dur\":1.000000001,"), std::string::npos) << text;
  const json slice = slices_of(json::parse(text)).at(0);
  EXPECT_EQ(slice["name"], "gemm \"a\"");
  EXPECT_EQ(slice["cat"], "kernel");
  EXPECT_EQ(slice["pid"], 2);
  EXPECT_EQ(slice["args"],
            (json{{"op", "up"}, {"block", "layer"}, {"iteration", "3/12"}, {"bytes", 4096}}));
}

TEST(TimelineJson, NamesProcessesAndUsedTracksOnly) {
  const json file = json::parse(timeline_json(timeline({{0, 0, 1}, {2, 0, 2}}), 8));
  std::vector<std::string> names;
  for (const json& e : file["traceEvents"])
    if (e["ph"] == "M" && e["args"].contains("name")) names.push_back(e["args"]["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"chip 2", "rank 8 compute", "chip 5", "rank 20 compute"}));
}

TEST(TimelineJson, IsSortedWhateverTheOrderOfEqualEnds) {
  const std::string one = timeline_json(timeline({{0, 0, 5}, {2, 1, 5}, {0, 5, 9}}), 8);
  EXPECT_EQ(timeline_json(timeline({{2, 1, 5}, {0, 0, 5}, {0, 5, 9}}), 8), one);
  EXPECT_EQ(slices_of(json::parse(one))[1]["ts"], 5e-9);
}

TEST(TimelineJson, SaysWhatIsNotInIt) {
  const json all = json::parse(timeline_json(timeline({{0, 0, 1}}), 2))["otherData"];
  EXPECT_EQ(all["note"], "all chips are shown");
  const json part =
      json::parse(timeline_json(timeline({{0, 0, 1}, {0, 1, 2}, {0, 2, 3}}, 2), 8))["otherData"];
  EXPECT_EQ(part["chips"], 8);
  EXPECT_EQ(part["sampled_chips"], (json{2, 5}));
  EXPECT_EQ(part["slices"], 2);
  EXPECT_EQ(part["dropped_slices"], 1);
  EXPECT_EQ(part["complete_until_us"], "0.000000003");
  EXPECT_EQ(
      part["note"],
      "only 2 of 8 chips are shown; 1 slices that end at 0.000000003 us or later were dropped");
}

TEST(TimelineJson, WithoutSlicesIsStillAFile) {
  const json file = json::parse(timeline_json(timeline({}), 8));
  EXPECT_TRUE(file["traceEvents"].empty());
  EXPECT_EQ(file["otherData"]["slices"], 0);
}

}  // namespace
}  // namespace trn3sim::report
