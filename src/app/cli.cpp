// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/cli.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "app/help.hpp"
#include <boost/program_options.hpp>
#include <fmt/format.h>

namespace trn3sim::app {
namespace {

namespace po = boost::program_options;
using Arguments = std::vector<std::string>;

constexpr std::array<const char*, 11> kLlamaNumbers = {
    "tp", "dp", "seq", "mbs", "gbs", "layers", "hidden", "heads", "kv-heads", "ffn", "vocab"};

[[noreturn]] void fail(const std::string& what) {
  throw base::UserError("command line", what);
}

// Names of the options, "--config", for suggestions.
Arguments option_names(const po::options_description& options) {
  Arguments names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

// Parses `arguments`; words that belong to no option go to `words` in order.
po::variables_map parse_options(const Arguments& arguments, const po::options_description& options,
                                Arguments& words, const char* help) {
  namespace style = po::command_line_style;
  po::variables_map values;
  try {
    const po::parsed_options parsed = po::command_line_parser(arguments)
                                          .options(options)
                                          .style(style::unix_style ^ style::allow_guessing)
                                          .allow_unregistered()
                                          .run();
    for (const po::option& option : parsed.options) {
      if (option.unregistered) {
        const std::string name = option.original_tokens.front();
        fail(fmt::format("unknown option {}{}; see {}", name,
                         base::did_you_mean(name, option_names(options)), help));
      }
      if (option.position_key >= 0)
        words.insert(words.end(), option.value.begin(), option.value.end());
    }
    po::store(parsed, values);
    po::notify(values);
  } catch (const po::error& e) {
    fail(fmt::format("{}; see {}", e.what(), help));
  }
  return values;
}

std::string text_of(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return "";
  std::string text = values[name].as<std::string>();
  if (text.empty()) fail(fmt::format("--{} is empty", name));
  return text;
}

// The value of option `name`, which must be one of `allowed`; empty if not given.
std::string choice(const po::variables_map& values, const char* name, const Arguments& allowed) {
  std::string text = text_of(values, name);
  if (text.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  fail(fmt::format("--{} is \"{}\", expected {}{}", name, text, fmt::join(allowed, ", "),
                   base::did_you_mean(text, allowed)));
}

Format format_of(const po::variables_map& values) {
  return choice(values, "format", {"text", "json"}) == "json" ? Format::Json : Format::Text;
}

std::int64_t number_of(const po::variables_map& values, const char* name, std::int64_t least) {
  const std::string text = text_of(values, name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    fail(fmt::format("--{} is \"{}\", expected a whole number from {} up", name, text, least));
  }
  return number;
}

// The one file of `trace info` and `trace check`.
std::string only_file(const Arguments& words, const char* command) {
  if (words.size() == 1) return words.front();
  fail(words.empty() ? fmt::format("{} needs a file", command)
                     : fmt::format("{} takes one file, found \"{}\" and \"{}\"", command, words[0],
                                   words[1]));
}

std::string output_file(const po::variables_map& values) {
  std::string file = text_of(values, "output");
  if (file.empty()) fail("-o FILE is missing; \"-\" is standard output");
  return file;
}

Command parse_simulate(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("help,h", "")("version", "")("quiet,q", "")("no-cache", "");
  for (const char* name : {"config", "trace", "compile", "format", "out"}) {
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
  if (values.count("set") > 0) {
    for (const std::string& set : values["set"].as<Arguments>()) {
      const std::size_t equals = set.find('=');
      if (equals == std::string::npos || equals == 0) {
        fail(
            fmt::format("--set \"{}\": expected PATH=VALUE, for example --set "
                        "chip.hbm.bandwidth=\"6.0 TB/s\"",
                        set));
      }
      simulate.overrides.push_back(set);
    }
  }
  simulate.format = format_of(values);
  simulate.out = text_of(values, "out");
  simulate.quiet = values.count("quiet") > 0;
  simulate.cache = values.count("no-cache") == 0;
  return simulate;
}

Command parse_llama(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("help,h", "")("overlap-grad-reduce", "");
  options.add_options()("output,o", po::value<std::string>(), "");
  for (const char* name : {"preset", "rank-unit", "zero1"}) {
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
  if (!arguments.empty() && !arguments.front().empty() && arguments.front().front() != '-') {
    static const Arguments kCommands = {"trace", "help"};
    const std::string& command = arguments.front();
    if (command == "help") return ShowText{kHelp};
    if (command != "trace") {
      fail(fmt::format("unknown command \"{}\"{}; see trn3sim --help", command,
                       base::did_you_mean(command, kCommands)));
    }
    return parse_trace({arguments.begin() + 1, arguments.end()});
  }
  return parse_simulate(arguments);
}

}  // namespace trn3sim::app
