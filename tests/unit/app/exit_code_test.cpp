// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/exit_code.hpp"

#include <stdexcept>

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>

namespace trn3sim::app {
namespace {

// Exit code and what went to stderr.
std::pair<int, std::string> outcome(const std::function<int()>& body) {
  ::testing::internal::CaptureStderr();
  const int code = guarded(body);
  return {code, ::testing::internal::GetCapturedStderr()};
}

TEST(ExitCode, IsWhatTheBodyReturns) {
  EXPECT_EQ(outcome([] { return 0; }), std::pair(0, std::string()));
  EXPECT_EQ(outcome([] { return 1; }).first, 1);
}

TEST(ExitCode, UserErrorsGiveTwoAndOneLineEach) {
  const auto [code, text] = outcome([]() -> int {
    throw base::UserError(
        std::vector<base::Problem>{{"a.json: chip.cores", "is -1"}, {"b.trace:7", "unknown op"}});
  });
  EXPECT_EQ(code, 2);
  EXPECT_EQ(text, "error: a.json: chip.cores: is -1\nerror: b.trace:7: unknown op\n");
}

TEST(ExitCode, BugsGiveThree) {
  const auto [code, text] = outcome([]() -> int {
    TRN3SIM_CHECK(1 == 2, "sums");
    return 0;
  });
  EXPECT_EQ(code, 3);
  EXPECT_NE(text.find("bug in trn3sim"), std::string::npos);
  EXPECT_NE(text.find("check failed: 1 == 2: sums"), std::string::npos);
  EXPECT_EQ(outcome([]() -> int { throw std::runtime_error("x"); }).first, 3);
  EXPECT_EQ(outcome([]() -> int { throw 7; }).first, 3);
}

TEST(ExitCode, OutOfMemoryIsNoBug) {
  EXPECT_EQ(outcome([]() -> int { throw std::bad_alloc(); }),
            std::pair(2, std::string("error: out of memory\n")));
}

}  // namespace
}  // namespace trn3sim::app
