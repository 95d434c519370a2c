// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/catalog.hpp"
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
  if (it == document.end())
    throw base::UserError(place + "/kind",
                          fmt::format("required, but missing; expected \"{}\"", kind));
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
    state.problems.add(place,
                       "required, but missing; expected the name of a chip file or an object");
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
  SystemFile read;
  describe(reader, read);
  run.system.name = read.name;
  run.system.fabric = read.fabric;
  run.compile = read.compile;
  run.precision = read.precision;
  run.collectives = read.collectives;
  run.seed = read.run.seed;
  run.shuffle = read.run.shuffle;
  run.fast_forward = read.run.fast_forward;
  reader.finish();
}

std::string dump(RunSpec& run, const std::map<std::string, Provenance>& provenance) {
  Json out;
  Dumper dumper(out, "", provenance);
  out["kind"] = "system";
  SystemFile file = system_file(run);
  describe(dumper, file);
  dumper.section("chip", run.system.chip, "");
  out["chip"]["kind"] = "chip";
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

// The place of a value for messages: the override that set it, or its file and pointer.
PlaceOf places(const ReadState& state, const std::string& system_file, const ChipDocument& chip) {
  return [&state, system_file, &chip](const std::vector<std::string>& keys) {
    std::string place;  // the last one wins
    for (const Override& change : state.overrides)
      if (change.keys == keys) place = change.place();
    if (!place.empty()) return place;
    const bool in_chip = keys[0] == "chip";
    return fmt::format("{}: {}/{}", in_chip ? chip.file : system_file,
                       in_chip ? chip.pointer : "/" + keys[0],
                       fmt::join(keys.begin() + 1, keys.end(), "/"));
  };
}

void read_chip(const ChipDocument& document, ChipSpec& chip, ReadState& state) {
  Reader reader(document.object, {document.file, document.pointer, "chip", true}, state);
  reader.known("kind");
  describe(reader, chip);
  reader.finish();
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
  if (chip.ok) read_chip(chip, run.system.chip, state);
  state.problems.throw_if_any();
  const PlaceOf place = places(state, run.config_file.string(), chip);
  validate(run.system, place, state.problems);
  if (const std::uint64_t rings = run.collectives.rings; rings != 1 && rings != 2 && rings != 4)
    state.problems.add(place({"collectives", "rings"}),
                       fmt::format("expected 1, 2 or 4 rings, got {}", rings));
  run.precision.formats =
      parse_op_formats(run.precision.ops, place({"precision", "ops"}), state.problems);
  state.problems.throw_if_any();

  for (const auto& [path, from] : state.provenance)
    if (from.confidence == "assumed") run.assumed.push_back({path, from.value, from.source});
  run.resolved_json = dump(run, state.provenance);
  return run;
}

CheckedFile check_file(const std::string& name) {
  const fs::path path = find_file(name, "configuration", name, {}, {""});
  Json document = load_document(path);
  const auto kind = document.find("kind");
  if (kind == document.end() || (*kind != "system" && *kind != "chip"))
    throw base::UserError(
        path.string() + ": /kind",
        kind == document.end()
            ? "required, but missing; expected \"system\" or \"chip\""
            : fmt::format("expected \"system\" or \"chip\", got {}", shown(*kind)));
  if (*kind == "system") {
    const RunSpec run = load_run(name, {});
    return {path, "system", run.system.name, run.system.chips()};
  }
  ReadState state;
  const ChipDocument chip{std::move(document), path.string(), "", true};
  SystemSpec system;
  system.fabric.type = "none";
  read_chip(chip, system.chip, state);
  state.problems.throw_if_any();
  validate(system, places(state, path.string(), chip), state.problems);
  state.problems.throw_if_any();
  return {path, "chip", system.chip.name, 1};
}

}  // namespace trn3sim::config
