// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON documents: read strictly, changed by overrides.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/base/error.hpp"

#include <nlohmann/json.hpp>

namespace trn3sim::config {

using Json = nlohmann::json;  // objects keep their keys sorted

// Parses a file whose top is an object. Throws base::UserError: unreadable, too long, binary,
// nested too deep, not JSON (with line and column) or duplicate keys (all of them).
Json load_document(const std::filesystem::path& path);
Json parse_document(const std::string& text, const std::string& label);

// Where JSON text nests deeper than any configuration, counted from 1; 0 if nowhere. Deep values
// would exhaust the stack when copied.
std::size_t too_deep(std::string_view text);

// One `--set path=value`.
struct Override {
  std::string text;               // "chip.hbm.bandwidth=6.0TB/s"
  std::string path;               // "chip.hbm.bandwidth"
  std::vector<std::string> keys;  // "chip", "hbm", "bandwidth"
  std::string value;              // "6.0TB/s"
  [[nodiscard]] std::string place() const { return "--set " + text; }
};

// Splits the texts; malformed ones and unknown roots become problems.
std::vector<Override> parse_overrides(const std::vector<std::string>& texts,
                                      base::Problems& problems);

// Puts the override's value into `document`, starting at keys[from], as a JSON string; missing
// objects are made, the reader judges unknown keys. A path through a leaf becomes a problem.
void apply_override(Json& document, const Override& change, std::size_t from,
                    base::Problems& problems);

// JSON text of a value for messages, shortened.
std::string shown(const Json& value);

// Whether a value is the long form {"value": ..., "source": ..., "confidence": ...} of a leaf.
bool is_long_leaf(const Json& value);

}  // namespace trn3sim::config
