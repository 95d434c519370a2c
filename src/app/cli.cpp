// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/cli.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "app/config_commands.hpp"
#include "app/hbm_command.hpp"
#include "app/help.hpp"
#include "app/kernel_command.hpp"
#include "app/options.hpp"
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

constexpr std::array<const char*, 11> kLlamaNumbers = {
    "tp", "dp", "seq", "mbs", "gbs", "layers", "hidden", "heads", "kv-heads", "ffn", "vocab"};

std::string output_file(const po::variables_map& values) {
  std::string file = text_of(values, "output");
  if (file.empty()) fail("-o FILE is missing; \"-\" is standard output");
  return file;
}

// "0,5,12" as numbers.
std::vector<std::int64_t> numbers_of(const po::variables_map& values, const char* name) {
  std::vector<std::int64_t> numbers;
  const std::string text = text_of(values, name);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::int64_t number = 0;
    const char* const last = text.data() + comma;
    const auto [end, error] = std::from_chars(text.data() + at, last, number);
    if (error != std::errc() || end != last || number < 0) {
      fail(fmt::format("--{} is \"{}\", expected whole numbers with commas between them", name,
                       text));
    }
    numbers.push_back(number);
    at = comma + 1;
  }
  return numbers;
}

void parse_timeline(const po::variables_map& values, Simulate& simulate) {
  simulate.timeline = values.count("timeline") > 0;
  for (const char* name : {"timeline-chips", "timeline-limit", "timeline-gzip"}) {
    if (values.count(name) > 0 && !simulate.timeline)
      fail(fmt::format("--{} needs --timeline", name));
  }
  if (simulate.timeline && simulate.out.empty())
    fail("--timeline needs --out DIR, where the file goes");
  if (values.count("timeline-chips") > 0)
    simulate.timeline_chips = numbers_of(values, "timeline-chips");
  if (values.count("timeline-limit") > 0)
    simulate.timeline_limit = number_of(values, "timeline-limit", 1);
  simulate.timeline_gzip = values.count("timeline-gzip") > 0;
}

Command parse_simulate(const Arguments& arguments) {
  po::options_description options;
  for (const char* flag : {"help,h", "version", "quiet,q", "timeline", "timeline-gzip", "no-cache",
                           "no-fast-forward"}) {
    options.add_options()(flag, "");
  }
  for (const char* name : {"config", "trace", "compile", "format", "out", "timeline-chips",
                           "timeline-limit", "fidelity", "detailed-chips"}) {
    options.add_options()(name, po::value<std::string>(), "");
  }
  options.add_options()("set", po::value<Arguments>()->composing(), "");
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, "trn3sim --help");
  if (values.count("help") > 0) return ShowText{kHelp};
  if (values.count("version") > 0) return ShowText{"trn3sim " + version() + "\n"};
  if (!words.empty()) {
    fail(fmt::format("unexpected \"{}\"; files are given as --config FILE and --trace FILE",
                     words[0]));
  }
  Simulate simulate;
  simulate.config = text_of(values, "config");
  simulate.trace = text_of(values, "trace");
  for (const auto& [name, value] :
       {std::pair("--config", &simulate.config), {"--trace", &simulate.trace}}) {
    if (value->empty()) {
      fail(
          fmt::format("{} FILE is missing; for example trn3sim --config ultraserver64.json --trace "
                      "llama7b.trace; see trn3sim --help",
                      name));
    }
  }
  const std::string level = choice(values, "compile", {"stock", "tuned", "ideal"});
  if (!level.empty()) simulate.overrides.push_back("compile.level=" + level);
  if (values.count("no-fast-forward") > 0) simulate.overrides.push_back("run.fast_forward=false");
  for (std::string& set : overrides_of(values)) simulate.overrides.push_back(std::move(set));
  simulate.format = format_of(values);
  simulate.out = text_of(values, "out");
  simulate.quiet = values.count("quiet") > 0;
  parse_timeline(values, simulate);
  simulate.cache = values.count("no-cache") == 0;
  const std::string fidelity = choice(values, "fidelity", {"profiled", "detailed"});
  simulate.detailed = fidelity == "detailed";
  if (values.count("detailed-chips") > 0)
    simulate.detailed_chips = numbers_of(values, "detailed-chips");
  if (!fidelity.empty() && !simulate.detailed_chips.empty())
    fail("--detailed-chips chooses the chips in full detail, --fidelity says it of all: give one");
  return simulate;
}

// The options of a command that runs steps: --config, --trace, --compile and --set as arguments for
// each run; `extra` are further options with a text.
struct StepOptions {
  po::variables_map values;
  Arguments arguments;
  bool help = false;
};

StepOptions parse_steps(const Arguments& arguments, const std::string& command,
                        const std::vector<const char*>& extra) {
  po::options_description options;
  options.add_options()("help,h", "")("no-cache", "");
  for (const char* name : {"config", "trace", "compile", "format"})
    options.add_options()(name, po::value<std::string>(), "");
  for (const char* name : extra) options.add_options()(name, po::value<std::string>(), "");
  options.add_options()("set", po::value<Arguments>()->composing(), "");
  const std::string help = fmt::format("trn3sim {} --help", command);
  Arguments words;
  StepOptions step;
  step.values = parse_options(arguments, options, words, help.c_str());
  step.help = step.values.count("help") > 0;
  if (step.help) return step;
  if (!words.empty())
    fail(fmt::format("unexpected \"{}\"; files are given as --config FILE and --trace FILE",
                     words[0]));
  for (const char* name : {"config", "trace", "compile"}) {
    const std::string text = text_of(step.values, name);
    if (text.empty() && std::string_view(name) != "compile")
      fail(fmt::format("--{} FILE is missing; see {}", name, help));
    if (!text.empty()) step.arguments.push_back(fmt::format("--{}={}", name, text));
  }
  for (const std::string& set : overrides_of(step.values)) step.arguments.push_back("--set=" + set);
  if (step.values.count("no-cache") > 0) step.arguments.emplace_back("--no-cache");
  return step;
}

Command parse_fidelity(const Arguments& arguments) {
  const StepOptions step = parse_steps(arguments, "fidelity", {"detailed-chips"});
  if (step.help) return ShowText{kFidelityHelp};
  Fidelity fidelity;
  fidelity.arguments = step.arguments;
  if (step.values.count("detailed-chips") > 0) {
    (void)numbers_of(step.values, "detailed-chips");  // a mistake is said before the first run
    fidelity.detail = "--detailed-chips=" + text_of(step.values, "detailed-chips");
  }
  fidelity.format = format_of(step.values);
  return fidelity;
}

Command parse_precision(const Arguments& arguments) {
  const StepOptions step = parse_steps(arguments, "precision", {"from", "to"});
  if (step.help) return ShowText{kPrecisionHelp};
  for (const std::string& set : overrides_of(step.values)) {
    for (const char* path : {"precision.matmul=", "precision.parts="})
      if (set.starts_with(path))
        fail(fmt::format(
            "--set {}: the command sets it itself; give the formats by --from and --to", set));
  }
  AttributePrecision precision;
  precision.arguments = step.arguments;
  precision.trace = text_of(step.values, "trace");
  if (const std::string from = choice(step.values, "from", {"trace", "bf16", "fp16"});
      !from.empty())
    precision.from = from;
  if (const std::string to =
          choice(step.values, "to", {"bf16", "fp16", "fp8", "mxfp8", "mxfp4", "fp32"});
      !to.empty())
    precision.to = to;
  precision.format = format_of(step.values);
  return precision;
}

Command parse_llama(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("help,h", "")("overlap-grad-reduce", "");
  options.add_options()("output,o", po::value<std::string>(), "");
  for (const char* name : {"preset", "rank-unit", "zero1", "recompute"}) {
    options.add_options()(name, po::value<std::string>(), "");
  }
  for (const char* name : kLlamaNumbers) options.add_options()(name, po::value<std::string>(), "");
  Arguments words;
  const po::variables_map values =
      parse_options(arguments, options, words, "trn3sim trace gen llama --help");
  if (values.count("help") > 0) return ShowText{kLlamaHelp};
  if (!words.empty())
    fail(fmt::format("unexpected \"{}\"; the file is given as -o FILE", words[0]));
  GenerateLlama generate;
  generate.preset = text_of(values, "preset");
  for (const char* name : kLlamaNumbers) {
    if (values.count(name) > 0) generate.values.emplace_back(name, number_of(values, name, 1));
  }
  generate.rank_unit = choice(values, "rank-unit", {"chip", "logical_core", "core"});
  generate.recompute = choice(values, "recompute", {"none", "selective", "full"});
  generate.zero1 = choice(values, "zero1", {"on", "off"}) != "off";
  generate.overlap_grad_reduce = values.count("overlap-grad-reduce") > 0;
  generate.out = output_file(values);
  return generate;
}

Command parse_generate(Arguments arguments) {
  static const Arguments kModels = {"llama", "residual_add", "optimizer_only"};
  if (arguments.empty()) {
    fail(
        "trace gen needs a model: llama, residual_add or optimizer_only; see trn3sim trace --help");
  }
  const std::string model = arguments.front();
  arguments.erase(arguments.begin());
  if (model == "--help" || model == "-h") return ShowText{kTraceHelp};
  if (model == "llama") return parse_llama(arguments);
  if (std::find(kModels.begin(), kModels.end(), model) == kModels.end()) {
    fail(fmt::format("unknown model \"{}\", expected {}{}", model, fmt::join(kModels, ", "),
                     base::did_you_mean(model, kModels)));
  }
  po::options_description options;
  options.add_options()("help,h", "")("output,o", po::value<std::string>(), "");
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, "trn3sim trace --help");
  if (values.count("help") > 0) return ShowText{kTraceHelp};
  if (!words.empty())
    fail(fmt::format("unexpected \"{}\"; the file is given as -o FILE", words[0]));
  return GenerateSynthetic{model, output_file(values)};
}

Command parse_trace(Arguments arguments) {
  static const Arguments kCommands = {"gen", "info", "check"};
  if (arguments.empty())
    fail("trace needs a command: gen, info or check; see trn3sim trace --help");
  const std::string command = arguments.front();
  if (command == "--help" || command == "-h") return ShowText{kTraceHelp};
  if (std::find(kCommands.begin(), kCommands.end(), command) == kCommands.end()) {
    fail(fmt::format("unknown command \"trace {}\"{}; see trn3sim trace --help", command,
                     base::did_you_mean(command, kCommands)));
  }
  arguments.erase(arguments.begin());
  if (command == "gen") return parse_generate(arguments);
  po::options_description options;
  options.add_options()("help,h", "");
  if (command == "info") {
    options.add_options()("format", po::value<std::string>(), "")("rank", po::value<std::string>(),
                                                                  "");
  }
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, "trn3sim trace --help");
  if (values.count("help") > 0) return ShowText{kTraceHelp};
  if (command == "check") return TraceCheck{only_file(words, "trace check")};
  TraceInfo info;
  info.file = only_file(words, "trace info");
  info.format = format_of(values);
  if (values.count("rank") > 0) info.rank = number_of(values, "rank", 0);
  return info;
}

}  // namespace

std::string version() {
  return TRN3SIM_VERSION;
}

Command parse(const Arguments& arguments) {
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      (arguments.front().ends_with(".json") || arguments.front().ends_with(".trace")))
    fail(fmt::format("unexpected \"{}\"; files are given as --config FILE and --trace FILE",
                     arguments.front()));
  if (!arguments.empty() && !arguments.front().empty() && arguments.front().front() != '-') {
    static const Arguments kCommands = {"trace",  "config", "fidelity", "precision",
                                        "kernel", "hbm",    "help"};
    const std::string& command = arguments.front();
    if (command == "help") {  // help trace gen llama = trace gen llama --help
      Arguments rest{arguments.begin() + 1, arguments.end()};
      rest.emplace_back("--help");
      return parse(rest);
    }
    if (command == "config") return parse_config({arguments.begin() + 1, arguments.end()});
    if (command == "hbm") return parse_hbm({arguments.begin() + 1, arguments.end()});
    if (command == "fidelity") return parse_fidelity({arguments.begin() + 1, arguments.end()});
    if (command == "precision") return parse_precision({arguments.begin() + 1, arguments.end()});
    if (command == "kernel") return parse_kernel({arguments.begin() + 1, arguments.end()});
    if (command != "trace") {
      fail(fmt::format("unknown command \"{}\"{}; see trn3sim --help", command,
                       base::did_you_mean(command, kCommands)));
    }
    return parse_trace({arguments.begin() + 1, arguments.end()});
  }
  return parse_simulate(arguments);
}

}  // namespace trn3sim::app
