// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The format's documentation says what the reader does.
#include <sstream>

#include "unit/trace/trace_file.hpp"
#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

std::string document() {
  std::ifstream stream(std::filesystem::path(TRN3SIM_SOURCE_DIR) / "docs" / "trace_format.md");
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

TEST(TraceFormatPage, ExampleReads) {
  const std::string page = document();
  const std::size_t start = page.find("```\n") + 4;
  ASSERT_LT(start, page.size());
  const TempFile file(page.substr(start, page.find("```", start) - start));
  const Program p = read(file.path());
  // Two layers of six operations and the barrier.
  EXPECT_EQ(scan(p, 0).ops, 2 * 6 + 1);
}

TEST(TraceFormatPage, ListsEveryVectorFunction) {
  const std::string page = document();
  for (const std::string& name : vec_function_names()) {
    const VecFunction& f = *vec_function(name);
    const std::string row =
        fmt::format("| `{}` | {} | {} | {} |", name, f.inputs, f.outputs, f.flop_per_element);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace trn3sim::trace
