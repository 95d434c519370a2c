// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/chip_describe.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/config/system_describe.hpp"

#include "config/document.hpp"
#include "config/dumper.hpp"
#include "config/files.hpp"
#include "config/reader.hpp"
#include "config/validate.hpp"
#include <fmt/format.h>

namespace trn3sim::config {
namespace {

namespace fs = std::filesystem;

// A wrong "kind" would drown in problems of every key, so it is checked first and alone.
void check_kind(const Json& document, const std::string& place, std::string_view kind) {
  const auto it = document.find("kind");
  if (it == document.end()) throw base::UserError(place + "/kind", "required, but missing");
  if (*it == kind) return;
  std::string hint;
  if (kind == "system" && *it == "chip")
    hint = "; a system file names its chip by \"chip\": \"chips/trn3.json\"";
  throw base::UserError(place + "/kind",
                        fmt::format("expected \"{}\", got {}{}", kind, shown(*it), hint));
}

// The chip object of a run and where it stands.
struct ChipDocument {
  Json object;
  std::string file;
  std::string pointer;
  bool ok = false;
};

// Takes the chip out of the system document: inline, or from the file it names.
ChipDocument chip_document(Json& system, const fs::path& system_file, ReadState& state) {
  ChipDocument chip;
  const auto it = system.find("chip");
  std::string place = fmt::format("{}: /chip", system_file.string());
  std::vector<fs::path> first{system_file.parent_path().empty() ? fs::path(".")
                                                                : system_file.parent_path()};
  for (const Override& change : state.overrides) {
    if (change.path != "chip") continue;
    place = change.place();
    first = {fs::path("."), first.back()};  // the user's directory comes first
  }
  if (it == system.end()) {
    state.problems.add(place, "required, but missing");
  } else if (it->is_object()) {
    chip = {std::move(*it), system_file.string(), "/chip", true};
  } else if (it->is_string()) {
    const fs::path file = find_file(it->get<std::string>(), "chip", place, first, {""});
    chip = {load_document(file), file.string(), "", true};
  } else {
    state.problems.add(
        place, fmt::format("expected the name of a chip file or an object, got {}", shown(*it)));
  }
  system.erase("chip");
  if (chip.ok) check_kind(chip.object, fmt::format("{}: {}", chip.file, chip.pointer), "chip");
  return chip;
}

void apply_overrides(Json& system, Json& chip, ReadState& state) {
  for (const Override& change : state.overrides) {
    if (change.path == "chip") continue;  // already applied: it names the file
    if (change.keys[0] == "chip")
      apply_override(chip, change, 1, state.problems);
    else
      apply_override(system, change, 0, state.problems);
  }
}

void read_system(const Json& document, const fs::path& file, RunSpec& run, ReadState& state) {
  Reader reader(document, {file.string(), "", "", false}, state);
  reader.known("kind");
  reader.known("chip");
  reader.text("name", run.system.name, "name in reports");
  reader.section("fabric", run.system.fabric, "links between the chips");
  reader.optional_section("compile", run.compile, true, "compilation switches");
  reader.optional_section("precision", run.precision, true, "formats of matrix products");
  RunOptions options;
  reader.optional_section("run", options, true, "run options");
  run.seed = options.seed;
  run.shuffle = options.shuffle;
  reader.finish();
}

std::string dump(RunSpec& run, const std::map<std::string, Provenance>& provenance) {
  Json out;
  Dumper dumper(out, "", provenance);
  out["kind"] = "system";
  dumper.text("name", run.system.name, "");
  dumper.section("chip", run.system.chip, "");
  out["chip"]["kind"] = "chip";
  dumper.section("fabric", run.system.fabric, "");
  dumper.section("compile", run.compile, "");
  dumper.section("precision", run.precision, "");
  RunOptions options{run.seed, run.shuffle};
  dumper.section("run", options, "");
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

RunSpec load_run(const std::string& config, const std::vector<std::string>& overrides) {
  RunSpec run;
  run.config_file = find_file(config, "configuration", config, {}, {""});
  Json system = load_document(run.config_file);
  check_kind(system, fmt::format("{}: ", run.config_file.string()), "system");

  ReadState state;
  state.overrides = parse_overrides(overrides, state.problems);
  for (const Override& change : state.overrides)
    if (change.path == "chip") system["chip"] = change.value;
  ChipDocument chip = chip_document(system, run.config_file, state);
  apply_overrides(system, chip.object, state);

  read_system(system, run.config_file, run, state);
  if (chip.ok) {
    Reader reader(chip.object, {chip.file, chip.pointer, "chip", true}, state);
    reader.known("kind");
    describe(reader, run.system.chip);
    reader.finish();
  }
  state.problems.throw_if_any();
  const auto place_of = [&](const std::vector<std::string>& keys) {
    for (const Override& change : state.overrides)
      if (change.keys == keys) return change.place();
    const bool in_chip = keys[0] == "chip";
    return fmt::format("{}: {}/{}", in_chip ? chip.file : run.config_file.string(),
                       in_chip ? chip.pointer : "/" + keys[0],
                       fmt::join(keys.begin() + 1, keys.end(), "/"));
  };
  validate(run.system, place_of, state.problems);
  state.problems.throw_if_any();

  for (const auto& [path, from] : state.provenance)
    if (from.confidence == "assumed") run.assumed.push_back({path, from.value, from.source});
  run.resolved_json = dump(run, state.provenance);
  return run;
}

}  // namespace trn3sim::config
