// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/config_commands.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/config/catalog.hpp"
#include "trn3sim/config/schema.hpp"
#include "trn3sim/trace/program.hpp"

#include "app/config_help.hpp"
#include "app/exit_code.hpp"
#include "app/options.hpp"
#include "app/output.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSeeHelp = "trn3sim config --help";

Command parse_show(const po::variables_map& values, const Arguments& words) {
  ConfigShow show;
  show.config = only_file(words, "config show");
  const std::string level = choice(values, "compile", {"stock", "tuned", "ideal"});
  if (!level.empty()) show.overrides.push_back("compile.level=" + level);
  for (std::string& set : overrides_of(values)) show.overrides.push_back(std::move(set));
  show.format = format_of(values);
  return show;
}

Command parse_schema(const po::variables_map& values, const Arguments& words) {
  static const Arguments kKinds = {"chip", "system"};
  ConfigSchema schema;
  schema.markdown = choice(values, "format", {"json", "markdown"}) == "markdown";
  if (schema.markdown && words.empty()) return schema;
  if (schema.markdown)
    fail("config schema --format markdown describes both kinds of files at once");
  if (words.size() != 1) fail("config schema needs one kind of file: chip or system");
  if (std::find(kKinds.begin(), kKinds.end(), words[0]) == kKinds.end())
    fail(fmt::format("unknown kind of file \"{}\", expected chip, system{}", words[0],
                     base::did_you_mean(words[0], kKinds)));
  schema.chip = words[0] == "chip";
  return schema;
}

// One line of `config list`.
struct Listed {
  std::string file, path, name;
  std::int64_t size = 0;  // chips of a system, ranks of a trace; 0 = not known
  std::string problem;    // the file is wrong
};

Listed listed_configuration(const config::FoundFile& file, bool& chip) {
  Listed line{file.name, file.path.string(), "", 0, ""};
  try {
    const config::CheckedFile checked = config::check_file(file.path.string());
    chip = checked.kind == "chip";
    line.name = checked.name;
    line.size = checked.chips;
  } catch (const base::UserError&) {
    chip = file.name.starts_with("chips/");
    line.problem = fmt::format("cannot be used; see trn3sim config check {}", file.name);
  }
  return line;
}

Listed listed_trace(const config::FoundFile& file) {
  Listed line{file.name, file.path.string(), "", 0, ""};
  try {
    const trace::Program program = trace::read(file.path);
    line.name = program.header.name;
    line.size = program.header.mesh.ranks();
  } catch (const base::UserError&) {
    line.problem = fmt::format("cannot be used; see trn3sim trace check {}", file.name);
  }
  return line;
}

struct Group {
  std::string title, unit;
  std::vector<Listed> lines;
};

std::string list_text(const std::vector<Group>& groups) {
  std::size_t width = 0;
  for (const Group& group : groups)
    for (const Listed& line : group.lines) width = std::max(width, line.file.size());
  std::string text;
  for (const Group& group : groups) {
    text += group.title + "\n";
    if (group.lines.empty()) text += "  none\n";
    for (const Listed& line : group.lines) {
      const std::string size =
          line.size == 0 ? ""
                         : fmt::format("{} {}{}", line.size, group.unit, line.size == 1 ? "" : "s");
      text += fmt::format("  {:{}}  {:>10}  {}\n", line.file, width, size,
                          line.problem.empty() ? line.name : line.problem);
    }
  }
  return text;
}

std::string list_json(const std::vector<Group>& groups) {
  Json all = Json::object();
  for (const Group& group : groups) {
    Json& lines = all[group.title] = Json::array();
    for (const Listed& line : group.lines) {
      Json entry = {{"file", line.file}, {"path", line.path}, {"name", line.name}};
      if (line.size > 0) entry[group.unit + "s"] = line.size;
      if (!line.problem.empty()) entry["problem"] = line.problem;
      lines.push_back(std::move(entry));
    }
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string show_text(const config::RunSpec& run) {
  const std::vector<config::ResolvedValue> values = config::resolved_values(run);
  std::size_t path = 0, value = 0;
  for (const config::ResolvedValue& v : values) {
    path = std::max(path, v.path.size());
    if (!v.unit.empty()) value = std::max(value, v.value.size());
  }
  std::string text = fmt::format("{} ({} chip{})\n", run.config_file.string(), run.system.chips(),
                                 run.system.chips() == 1 ? "" : "s");
  for (const config::ResolvedValue& v : values) {
    std::string line = fmt::format("{:{}}  {:>{}} {:4}  {:11}  {}", v.path, path, v.value, value,
                                   v.unit, v.confidence, v.source);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

Command parse_config(Arguments arguments) {
  static const Arguments kCommands = {"list", "show", "check", "schema"};
  if (arguments.empty())
    fail(fmt::format("config needs a command: {}; see {}", fmt::join(kCommands, ", "), kSeeHelp));
  const std::string command = arguments.front();
  if (command == "--help" || command == "-h") return ShowText{kConfigHelp};
  if (std::find(kCommands.begin(), kCommands.end(), command) == kCommands.end())
    fail(fmt::format("unknown command \"config {}\"{}; see {}", command,
                     base::did_you_mean(command, kCommands), kSeeHelp));
  arguments.erase(arguments.begin());
  po::options_description options;
  options.add_options()("help,h", "");
  if (command != "check") options.add_options()("format", po::value<std::string>(), "");
  if (command == "show") {
    options.add_options()("compile", po::value<std::string>(), "");
    options.add_options()("set", po::value<Arguments>()->composing(), "");
  }
  Arguments words;
  const po::variables_map values = parse_options(arguments, options, words, kSeeHelp);
  if (values.count("help") > 0) return ShowText{kConfigHelp};
  if (command == "show") return parse_show(values, words);
  if (command == "check") return ConfigCheck{only_file(words, "config check")};
  if (command == "schema") return parse_schema(values, words);
  if (!words.empty()) fail(fmt::format("unexpected \"{}\"; config list takes no file", words[0]));
  return ConfigList{format_of(values)};
}

int config_list(const ConfigList& options) {
  std::vector<Group> groups = {{"systems", "chip", {}}, {"chips", "", {}}, {"traces", "rank", {}}};
  for (const config::FoundFile& file : config::list_configurations()) {
    bool chip = false;
    Listed line = listed_configuration(file, chip);
    if (chip) line.size = 0;
    groups[chip ? 1 : 0].lines.push_back(std::move(line));
  }
  for (const config::FoundFile& file : config::list_traces())
    groups[2].lines.push_back(listed_trace(file));
  print(options.format == Format::Json ? list_json(groups) : list_text(groups));
  return kOk;
}

int config_show(const ConfigShow& options) {
  const config::RunSpec run = config::load_run(options.config, options.overrides);
  print(options.format == Format::Json ? run.resolved_json + "\n" : show_text(run));
  return kOk;
}

int config_check(const ConfigCheck& options) {
  const config::CheckedFile file = config::check_file(options.file);
  print(file.kind == "chip"
            ? fmt::format("{}: ok, chip \"{}\"\n", file.path.string(), file.name)
            : fmt::format("{}: ok, system \"{}\" of {} chip{}\n", file.path.string(), file.name,
                          file.chips, file.chips == 1 ? "" : "s"));
  return kOk;
}

int config_schema(const ConfigSchema& options) {
  print(options.markdown ? config::reference_markdown()
        : options.chip   ? config::chip_schema()
                         : config::system_schema());
  return kOk;
}

}  // namespace trn3sim::app
