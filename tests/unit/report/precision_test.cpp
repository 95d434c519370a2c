// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/precision.hpp"

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

stats::Results run(std::int64_t step, std::int64_t bytes, std::int64_t scales,
                   std::int64_t tensor_nj) {
  stats::Results r;
  r.trace_sha256 = std::string("a");
  r.chips = 1;
  r.tokens_per_step = 10;
  r.step_fs = step;
  r.model_flop = 1e6;
  r.peak_geometry_flops = 1e15;
  r.hbm_read_bytes = bytes - 1;
  r.hbm_write_bytes = 1;
  r.hbm_scale_bytes = scales;
  r.energy[base::EnergyAccount::Tensor] =
      base::Energy(Int128(tensor_nj) * stats::kAttojoulesPerNanojoule);
  r.engine_busy_fs[0] = step / 2;
  return r;
}

std::array<stats::Results, 4> ladder() {
  return {run(10'000'000, 1000, 0, 900), run(6'000'001, 1000, 0, 500), run(4'000'003, 600, 20, 499),
          run(5'000'007, 610, 21, 502)};
}

TEST(PrecisionReport, ChangesOfThePartsAddUpExactly) {
  const PrecisionReport r = attribute_precision("trace", "mxfp8", ladder());
  ASSERT_EQ(r.stages.size(), 4U);
  EXPECT_EQ(r.stages[1].part, "rate");
  EXPECT_EQ(r.stages[1].change.step_fs, -3'999'999);
  EXPECT_EQ(r.stages[2].change.hbm_bytes, -400);
  EXPECT_EQ(r.stages[3].change.scale_bytes, 1);
  PrecisionFigures sum;
  for (const PrecisionStage& s : r.stages) {
    sum.step_fs += s.change.step_fs;
    sum.hbm_bytes += s.change.hbm_bytes;
    sum.scale_bytes += s.change.scale_bytes;
    sum.engine_busy_fs[0] += s.change.engine_busy_fs[0];
    sum.energy.of[0] += s.change.energy.of[0];
    sum.energy.total += s.change.energy.total;
  }
  EXPECT_EQ(sum.step_fs, r.change.step_fs);
  EXPECT_EQ(sum.hbm_bytes, r.change.hbm_bytes);
  EXPECT_EQ(sum.scale_bytes, r.change.scale_bytes);
  EXPECT_EQ(sum.engine_busy_fs[0], r.change.engine_busy_fs[0]);
  EXPECT_EQ(sum.energy.of[0], r.change.energy.of[0]);
  EXPECT_EQ(sum.energy.total, r.change.energy.total);
  EXPECT_EQ(r.change.energy.total, 502 - 900);
}

TEST(PrecisionReport, TextAndJsonHaveTheFigures) {
  const PrecisionReport r = attribute_precision("trace", "mxfp8", ladder());
  const std::string text = to_text(r);
  for (const char* piece :
       {"trace to mxfp8", "+ rate", "-4.00 ns", "-400 B", "energy, tensor", "all"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  EXPECT_EQ(text.find("energy, link"), std::string::npos) << "nothing changes there";
  const auto json = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(json["stages"].size(), 4U);
  EXPECT_EQ(json["stages"][3]["part"], "quantise");
  EXPECT_EQ(json["stages"][2]["total"]["hbm_scale_bytes"], 20);
  EXPECT_EQ(json["change"]["energy_nj"]["tensor"], -398);
}

TEST(PrecisionReport, RunsOfTwoTracesAreNoLadder) {
  auto runs = ladder();
  runs[2].trace_sha256 = std::string("b");
  EXPECT_THROW(attribute_precision("trace", "mxfp8", runs), base::UserError);
}

}  // namespace
}  // namespace trn3sim::report
