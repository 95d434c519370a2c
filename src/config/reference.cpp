// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/config/schema.hpp"

#include "config/outline.hpp"

namespace trn3sim::config {
namespace {

// How a value is written, and its range.
std::string written(const KeyInfo& key) {
  switch (key.kind) {
    case KeyKind::Section:
      return "object";
    case KeyKind::List:
      return "list of objects";
    case KeyKind::Counts:
      return "list of whole numbers";
    case KeyKind::Count:
    case KeyKind::Seed:
      return "whole number";
    case KeyKind::Number:
    case KeyKind::Share:
      return "number";
    case KeyKind::Flag:
      return "true, false";
    case KeyKind::Text:
      return "text";
    case KeyKind::Choice:
      return fmt::format("`{}`", fmt::join(key.names, "`, `"));
    case KeyKind::Quantity:
      return key.quantity;
  }
  return "";
}

std::string range(const KeyInfo& key) {
  switch (key.kind) {
    case KeyKind::List:
      return fmt::format("{} to {} items", key.required ? 1 : 0, key.most);
    case KeyKind::Counts:
      return fmt::format("1 to {} items, {} to {}", key.most, key.low, key.high);
    case KeyKind::Count:
    case KeyKind::Number:
      return fmt::format("{} to {}", key.low, key.high);
    case KeyKind::Share:
      return "above 0, at most 1";
    case KeyKind::Quantity:
      return fmt::format("{}, at most {}", key.above_zero ? "above 0" : "0 or above", key.limit);
    default:
      return "";
  }
}

std::string table(const std::vector<KeyInfo>& keys) {
  std::string text = "| key | written as | range | meaning |\n|---|---|---|---|\n";
  for (const KeyInfo& key : keys) {
    std::string doc = key.doc;
    if (!key.standard.empty())
      doc += fmt::format(" (default `{}`)", key.standard);
    else if (!key.required)
      doc += " (may be missing)";
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.key, written(key), range(key), doc);
  }
  return text;
}

// The table of `keys` under a heading, then those of the objects in them. `note` follows the path
// in the headings.
void chapter(const std::string& path, const std::string& note, const std::vector<KeyInfo>& keys,
             std::string& text) {
  text += fmt::format("\n### `{}`{}\n\n{}", path, note, table(keys));
  for (const KeyInfo& key : keys)
    if (!key.keys.empty())
      chapter(fmt::format("{}.{}{}", path, key.key, key.kind == KeyKind::List ? ".N" : ""), note,
              key.keys, text);
}

// The units in use, by kind of quantity.
void collect_units(const std::vector<KeyInfo>& keys, std::vector<std::string>& lines) {
  for (const KeyInfo& key : keys) {
    if (key.kind == KeyKind::Quantity) {
      std::string line = fmt::format("| {} | {} |\n", key.quantity, fmt::join(key.names, ", "));
      if (std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    }
    collect_units(key.keys, lines);
    for (const Shape& shape : key.shapes) collect_units(shape.keys, lines);
  }
}

void system_chapters(const std::vector<KeyInfo>& system, std::string& text) {
  for (const KeyInfo& key : system) {
    if (key.kind != KeyKind::Section) continue;
    if (key.shapes.empty()) chapter(key.key, "", key.keys, text);
    for (const Shape& shape : key.shapes) {
      std::vector<KeyInfo> keys = shape.keys;
      for (KeyInfo& below : keys)
        if (below.key == "type") below.names = {shape.type};
      chapter(key.key, fmt::format(", type `{}`", shape.type), keys, text);
    }
  }
}

}  // namespace

std::string reference_markdown() {
  const std::vector<KeyInfo> system = system_outline(), chip = chip_outline();
  std::string text = R"(# Configuration reference

Every key of the configuration files. This page is written by `trn3sim config schema --format
markdown`, from the description that reads the files. How to write files and where values come from:
[configs/README.md](../configs/README.md). The values of one configuration with their sources:
`trn3sim config show ultraserver64.json`.

A path such as `chip.hbm.bandwidth` is what `--set` takes; `N` is the number of an item of a list, from
0. Each value may be written plain or as `{"value": ..., "source": "...", "confidence": "..."}`.

| quantity | units |
|---|---|
)";
  std::vector<std::string> units;
  collect_units(chip, units);
  collect_units(system, units);
  std::sort(units.begin(), units.end());
  for (const std::string& line : units) text += line;
  text +=
      "\n## System file\n\n`\"kind\": \"system\"`; `chip` is the name of a chip file or its "
      "object.\n\n";
  text += table(system);
  system_chapters(system, text);
  text += "\n## Chip file\n\n`\"kind\": \"chip\"`; every number needs a source and a confidence.\n";
  chapter("chip", "", chip, text);
  return text;
}

}  // namespace trn3sim::config
