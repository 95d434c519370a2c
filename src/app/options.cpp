// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/options.hpp"

#include <algorithm>
#include <charconv>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include <fmt/format.h>

namespace trn3sim::app {

void fail(const std::string& what) {
  throw base::UserError("command line", what);
}

namespace {

// Names of the options, "--config", for suggestions.
Arguments option_names(const po::options_description& options) {
  Arguments names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

}  // namespace

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

std::string only_file(const Arguments& words, const char* command) {
  if (words.size() == 1) return words.front();
  fail(
      words.empty()
          ? fmt::format("{} needs a file; trn3sim config list shows what there is", command)
          : fmt::format("{} takes one file, found \"{}\" and \"{}\"", command, words[0], words[1]));
}

Arguments overrides_of(const po::variables_map& values) {
  if (values.count("set") == 0) return {};
  Arguments overrides = values["set"].as<Arguments>();
  for (const std::string& set : overrides) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(
          fmt::format("--set \"{}\": expected PATH=VALUE, for example --set "
                      "chip.hbm.bandwidth=\"6.0 TB/s\"",
                      set));
  }
  return overrides;
}

}  // namespace trn3sim::app
