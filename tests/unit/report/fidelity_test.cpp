// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/fidelity.hpp"

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trn3sim::report {
namespace {

stats::KernelResult kernel(const std::string& label, std::int64_t count, std::int64_t total) {
  stats::KernelResult k;
  k.label = label;
  k.count = count;
  k.total_fs = total;
  return k;
}

stats::Results results(std::int64_t step, std::vector<stats::KernelResult> kernels) {
  stats::Results r;
  r.step_fs = step;
  r.kernels = std::move(kernels);
  return r;
}

TEST(Fidelity, SortsByErrorAndWeighsByTime) {
  const stats::Results profiled =
      results(1010, {kernel("a", 2, 606), kernel("b", 1, 380), kernel("c", 4, 4)});
  const stats::Results detailed =
      results(1000, {kernel("a", 2, 600), kernel("b", 1, 400), kernel("c", 4, 8)});
  const FidelityReport r = compare_fidelity(profiled, detailed);
  ASSERT_EQ(r.kernels.size(), 3U);
  // c takes half of its time, b is 5 % short, a 1 % long.
  EXPECT_EQ(r.kernels[0].label, "c");
  EXPECT_DOUBLE_EQ(r.kernels[0].error_percent, -50);
  EXPECT_EQ(r.kernels[0].detailed_fs, 2);
  EXPECT_DOUBLE_EQ(r.kernels[1].error_percent, -5);
  EXPECT_DOUBLE_EQ(r.kernels[2].error_percent, 1);
  // a alone is 600 / 1008 = 59.5 % of the time, a and b 99.2 %.
  EXPECT_DOUBLE_EQ(r.p50_percent, 1);
  EXPECT_DOUBLE_EQ(r.p95_percent, 5);
  EXPECT_DOUBLE_EQ(r.worst_percent, 50);
  EXPECT_DOUBLE_EQ(r.step_error_percent, 1);
  EXPECT_DOUBLE_EQ(r.kernel_time_error_percent, 100.0 * (990 - 1008) / 1008);
  const auto json = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(json["kernels"].size(), 3U);
  EXPECT_EQ(json["kernel_error_p95_percent"], 5.0);
  EXPECT_NE(to_text(r).find("-50.000 %"), std::string::npos);
}

TEST(Fidelity, RefusesRunsOfDifferentWork) {
  EXPECT_THROW(compare_fidelity(results(1, {kernel("a", 1, 1)}), results(1, {kernel("b", 1, 1)})),
               base::UserError);
  EXPECT_THROW(compare_fidelity(results(1, {kernel("a", 1, 1)}), results(1, {kernel("a", 2, 2)})),
               base::UserError);
  EXPECT_THROW(compare_fidelity(results(1, {kernel("a", 1, 1)}), results(1, {})), base::UserError);
}

}  // namespace
}  // namespace trn3sim::report
