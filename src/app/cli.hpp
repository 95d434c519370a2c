// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line. Boost.Program_options stays in cli.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trn3sim::app {

enum class Format : std::uint8_t { Text, Json };

struct ShowText {  // --help, --version
  std::string text;
};

// trn3sim --config FILE --trace FILE
struct Simulate {
  std::string config, trace;
  std::vector<std::string> overrides;  // "path=value", --compile first
  Format format = Format::Text;
  std::string out;  // directory; empty: none
  bool quiet = false;
  bool cache = true;  // kernel profiles of earlier runs
};

// trn3sim trace gen llama
struct GenerateLlama {
  std::string preset;                                        // empty: none
  std::vector<std::pair<std::string, std::int64_t>> values;  // "tp", 4; in the order of the options
  std::string rank_unit;                                     // empty: the default
  bool zero1 = true;
  bool overlap_grad_reduce = false;
  std::string out;  // file; "-": standard output
};

// trn3sim trace gen residual_add | optimizer_only
struct GenerateSynthetic {
  std::string name;
  std::string out;  // file; "-": standard output
};

// trn3sim trace info FILE
struct TraceInfo {
  std::string file;
  std::int64_t rank = 0;
  Format format = Format::Text;
};

// trn3sim trace check FILE
struct TraceCheck {
  std::string file;
};

using Command =
    std::variant<ShowText, Simulate, GenerateLlama, GenerateSynthetic, TraceInfo, TraceCheck>;

// `arguments` without the program's name. Throws base::UserError (place "command line") with a
// suggestion for unknown commands and options.
Command parse(const std::vector<std::string>& arguments);

// The version of the program, "0.1.0".
std::string version();

}  // namespace trn3sim::app
