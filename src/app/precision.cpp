// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/precision.hpp"

#include <algorithm>
#include <array>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/report/precision.hpp"
#include "trn3sim/trace/program.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include "app/self_run.hpp"
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

// The first run must convert nothing, or the parts would mix with what it converts.
void check_from(const AttributePrecision& options) {
  if (options.from == "trace") return;
  const base::DType trace = trace::read(config::find_trace(options.trace)).header.dtype;
  if (base::element_bits(trace) == 16) return;
  throw base::UserError("--from",
                        fmt::format("the tensors of the trace are {}, so a run in {} converts "
                                    "them itself; use --from trace",
                                    base::name(trace), options.from));
}

}  // namespace

int precision(const AttributePrecision& options) {
  check_from(options);
  const std::array<std::pair<std::string, const char*>, 4> kRuns = {{{options.from, "all"},
                                                                     {options.to, "rate"},
                                                                     {options.to, "rate_bytes"},
                                                                     {options.to, "all"}}};
  const TemporaryDirectory directory;
  std::vector<stats::Results> results;
  for (const auto& [format, parts] : kRuns) {
    std::vector<std::string> arguments = options.arguments;
    arguments.push_back("--set=precision.matmul=" + format);
    arguments.push_back(fmt::format("--set=precision.parts={}", parts));
    const std::string name = fmt::format("{}", results.size());
    if (const int code = run_self(std::move(arguments), directory.path() / name, results);
        code != kOk)
      return code;
  }
  std::array<stats::Results, 4> runs;
  std::ranges::move(results, runs.begin());
  const report::PrecisionReport report =
      report::attribute_precision(options.from, options.to, runs);
  print(options.format == Format::Json ? report::to_json(report) : report::to_text(report));
  return kOk;
}

}  // namespace trn3sim::app
