// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  std::vector<std::string> overrides;  // "path=value", --compile and --no-fast-forward first
  Format format = Format::Text;
  std::string out;  // directory; empty: none
  bool quiet = false;
  bool timeline = false;                     // only with `out`
  std::vector<std::int64_t> timeline_chips;  // empty: the first few
  std::optional<std::int64_t> timeline_limit;
  bool timeline_gzip = false;
  bool cache = true;                         // kernel profiles of earlier runs
  bool detailed = false;                     // --fidelity detailed
  std::vector<std::int64_t> detailed_chips;  // --detailed-chips
};

// trn3sim fidelity --config FILE --trace FILE
struct Fidelity {
  std::vector<std::string> arguments;          // that both runs get
  std::string detail = "--fidelity=detailed";  // that the second one gets
  Format format = Format::Text;
};

// trn3sim precision --config FILE --trace FILE
struct AttributePrecision {
  std::vector<std::string> arguments;  // that all runs get
  std::string trace;
  std::string from = "trace", to = "mxfp8";
  Format format = Format::Text;
};

// trn3sim kernel gemm | attention | vec
struct RunKernel {
  std::string kind;
  std::string config;
  std::vector<std::string> overrides;            // "path=value"
  std::map<std::string, std::int64_t> numbers;   // options as given: "m", 4096
  std::map<std::string, std::string> texts;      // "dtype", "bf16"
  std::set<std::string> flags;                   // "ta", "causal"
  std::vector<std::string> fuse;                 // functions of the epilogue
  std::string mapping, dump_mapping, timeline;   // files; empty: none
  std::optional<std::int64_t> timeline_limit;
  bool explain = false;
  Format format = Format::Text;
};

// trn3sim trace gen llama
struct GenerateLlama {
  std::string preset;                                        // empty: none
  std::vector<std::pair<std::string, std::int64_t>> values;  // "tp", 4; in the order of the options
  std::string rank_unit;                                     // empty: the default
  std::string recompute;                                     // empty: the default
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

// trn3sim config list
struct ConfigList {
  Format format = Format::Text;
};

// trn3sim config show CONFIG
struct ConfigShow {
  std::string config;
  std::vector<std::string> overrides;  // "path=value", --compile first
  Format format = Format::Text;
};

// trn3sim config check FILE
struct ConfigCheck {
  std::string file;
};

// trn3sim config schema chip | system
struct ConfigSchema {
  bool chip = false;
  bool markdown = false;  // the reference of both kinds of files
};

// trn3sim hbm --config FILE
struct DriveHbm {
  std::string config;
  std::vector<std::string> overrides;  // "path=value", those that options stand for first
  bool random = false;
  std::int64_t block = 4096, streams = 1, turn = 128, channels = 1, bursts = 200'000, seed = 1;
  double reads = 1.0;
  Format format = Format::Text;
};

using Command =
    std::variant<ShowText, Simulate, Fidelity, AttributePrecision, RunKernel, GenerateLlama, GenerateSynthetic,
                 TraceInfo, TraceCheck, ConfigList, ConfigShow, ConfigCheck, ConfigSchema, DriveHbm>;

// `arguments` without the program's name. Throws base::UserError (place "command line") with a
// suggestion for unknown commands and options.
Command parse(const std::vector<std::string>& arguments);

// The version of the program, "0.1.0".
std::string version();

}  // namespace trn3sim::app
