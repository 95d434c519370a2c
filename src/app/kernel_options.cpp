// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/text.hpp"

#include "app/kernel_command.hpp"
#include "app/kernel_help.hpp"
#include "app/options.hpp"
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

// The options of one kind of kernel.
struct KernelOptions {
  const char* help;
  std::vector<const char*> required, numbers, formats, texts, flags;
};

KernelOptions options_of(const std::string& kind) {
  if (kind == "gemm")
    return {kKernelGemmHelp,
            {"m", "n", "k"},
            {"batch", "cores"},
            {"dtype", "a-format", "b-format", "out"},
            {"sparsity"},
            {"ta", "tb", "accumulate"}};
  if (kind == "attention")
    return {kKernelAttentionHelp,
            {"seq", "heads", "head-dim"},
            {"kv-heads", "kv-seq", "batch", "cores"},
            {"dtype"},
            {},
            {"causal", "backward"}};
  if (kind == "scan")
    return {kKernelScanHelp, {"channels", "state", "seq"}, {"batch", "cores"}, {"dtype"}, {}, {}};
  if (kind == "copy")
    return {kKernelCopyHelp, {"bytes"}, {"partitions", "count", "queues", "cores"}, {},
            {"direction"}, {}};
  return {kKernelVecHelp, {}, {"rows", "cols", "elems", "cores"}, {"dtype"}, {"fn"}, {}};
}

void add_options(po::options_description& options, const KernelOptions& kind) {
  options.add_options()("help,h", "")("explain", "");
  for (const auto* names : {&kind.required, &kind.numbers, &kind.formats, &kind.texts})
    for (const char* name : *names) options.add_options()(name, po::value<std::string>(), "");
  for (const char* name : kind.flags) options.add_options()(name, "");
  for (const char* name :
       {"config", "format", "mapping", "dump-mapping", "timeline", "timeline-limit"})
    options.add_options()(name, po::value<std::string>(), "");
  for (const char* name : {"set", "fuse"})
    options.add_options()(name, po::value<Arguments>()->composing(), "");
}

RunKernel read(const std::string& kind, const KernelOptions& known,
               const po::variables_map& values) {
  RunKernel run;
  run.kind = kind;
  run.config = text_of(values, "config");
  if (run.config.empty())
    fail(fmt::format("--config FILE is missing; see trn3sim kernel {} --help", kind));
  for (const char* name : known.required) {
    if (values.count(name) == 0)
      fail(fmt::format("--{} is missing; see trn3sim kernel {} --help", name, kind));
    run.numbers[name] = number_of(values, name, 1);
  }
  for (const char* name : known.numbers)
    if (values.count(name) > 0) run.numbers[name] = number_of(values, name, 1);
  for (const char* name : known.formats)
    if (const std::string text = choice(values, name, base::dtype_names()); !text.empty())
      run.texts[name] = text;
  for (const char* name : known.texts)
    if (const std::string text = text_of(values, name); !text.empty()) run.texts[name] = text;
  for (const char* name : known.flags)
    if (values.count(name) > 0) run.flags.insert(name);
  if (values.count("fuse") > 0) run.fuse = values["fuse"].as<Arguments>();
  run.overrides = overrides_of(values);
  run.mapping = text_of(values, "mapping");
  run.dump_mapping = text_of(values, "dump-mapping");
  run.timeline = text_of(values, "timeline");
  if (values.count("timeline-limit") > 0) {
    if (run.timeline.empty()) fail("--timeline-limit needs --timeline FILE");
    run.timeline_limit = number_of(values, "timeline-limit", 1);
  }
  run.explain = values.count("explain") > 0;
  run.format = format_of(values);
  return run;
}

}  // namespace

Command parse_kernel(Arguments arguments) {
  static const Arguments kKinds = {"gemm", "attention", "vec", "scan", "copy"};
  if (arguments.empty())
    fail("kernel needs a kind: gemm, attention, vec, scan or copy; see trn3sim kernel --help");
  const std::string kind = arguments.front();
  if (kind == "--help" || kind == "-h") return ShowText{kKernelHelp};
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    fail(fmt::format("unknown kernel \"{}\", expected {}{}; see trn3sim kernel --help", kind,
                     fmt::join(kKinds, ", "), base::did_you_mean(kind, kKinds)));
  arguments.erase(arguments.begin());
  const KernelOptions known = options_of(kind);
  po::options_description options;
  add_options(options, known);
  const std::string help = fmt::format("trn3sim kernel {} --help", kind);
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, help.c_str());
  if (values.count("help") > 0) return ShowText{known.help};
  if (!words.empty()) fail(fmt::format("unexpected \"{}\"; see {}", words[0], help));
  RunKernel run = read(kind, known, values);
  if (kind != "gemm") {
    if (!run.fuse.empty()) fail("--fuse belongs to trn3sim kernel gemm");
    if (!run.mapping.empty() || !run.dump_mapping.empty())
      fail("explicit mappings exist for trn3sim kernel gemm only");
  }
  if (kind == "vec") {
    if (run.texts.count("fn") == 0) fail("--fn NAME is missing; see trn3sim kernel vec --help");
    const bool matrix = run.numbers.count("rows") > 0 && run.numbers.count("cols") > 0;
    const bool half = run.numbers.count("rows") != run.numbers.count("cols");
    if (half || matrix == (run.numbers.count("elems") > 0))
      fail("give the size as --rows N --cols N, or as --elems N");
  }
  return run;
}

}  // namespace trn3sim::app
