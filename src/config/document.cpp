// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "config/document.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>

#include "trn3sim/base/text.hpp"

#include <fmt/format.h>

namespace trn3sim::config {
namespace {

constexpr std::size_t kFileMax = std::size_t{256} << 20U;
constexpr std::size_t kDepthMax = 64;  // a system needs 6

const std::vector<std::string>& roots() {
  static const std::vector<std::string> kRoots = {"chip",      "fabric",      "name", "compile",
                                                  "precision", "collectives", "run"};
  return kRoots;
}

// Follows the parser and notes keys that stand twice in one object; the library keeps the last.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string label) : label_(std::move(label)) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        open_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        open_.pop_back();
        break;
      case Json::parse_event_t::key:
        open_.back().last = parsed.get<std::string>();
        if (!open_.back().keys.insert(open_.back().last).second)
          problems.add(fmt::format("{}: {}", label_, pointer()),
                       "duplicate key; an object holds each key once");
        break;
      default:
        break;
    }
    return true;
  }

  base::Problems problems;

 private:
  struct Object {
    std::set<std::string> keys;
    std::string last;
  };
  [[nodiscard]] std::string pointer() const {
    std::string text;
    for (const Object& object : open_) text += "/" + object.last;
    return text;
  }
  std::string label_;
  std::vector<Object> open_;
};

// "[json.exception...] parse error at line 3, column 5: syntax error ..." without its head.
std::string parse_message(const std::string& what) {
  const std::size_t column = what.find("column ");
  const std::size_t colon = column == std::string::npos ? column : what.find(": ", column);
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

// Line and column, both from 1, of the last byte the parser read.
std::string line_and_column(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto begin = text.begin();
  const auto here = begin + static_cast<std::ptrdiff_t>(end);
  const auto line = std::count(begin, here, '\n') + 1;
  const std::size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = newline == std::string::npos ? end + 1 : end - newline;
  return fmt::format("{}:{}", line, column);
}

// JSON holds UTF-8 only; the command line may hold anything.
bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

// The item of `list` that keys[at] of an override names; nothing, and a problem, if there is none.
Json* item(Json& list, const Override& change, std::size_t at, const std::string& walked,
           base::Problems& problems) {
  std::size_t index = 0;
  const std::string& key = change.keys[at];
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error == std::errc() && end == key.data() + key.size() && index < list.size())
    return &list[index];
  problems.add(change.place(),
               list.empty() ? fmt::format("{} is empty, it has no item \"{}\"", walked, key)
                            : fmt::format("{} is a list: expected an item from 0 to {}, got \"{}\"",
                                          walked, list.size() - 1, key));
  return nullptr;
}

}  // namespace

std::string shown(const Json& value) {
  constexpr std::size_t kShown = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

bool is_long_leaf(const Json& value) {
  return value.is_object() && value.contains("value");
}

std::size_t too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthMax) return i + 1;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return 0;
}

Json parse_document(const std::string& text, const std::string& label) {
  if (text.find('\0') != std::string::npos)
    throw base::UserError(label, "holds NUL bytes: binary data or UTF-16; expected JSON in UTF-8");
  if (const std::size_t byte = too_deep(text); byte > 0)
    throw base::UserError(fmt::format("{}:{}", label, line_and_column(text, byte)),
                          fmt::format("objects and lists nest more than {} deep", kDepthMax));
  DuplicateKeys duplicates(label);
  Json document;
  try {
    document = Json::parse(text, std::ref(duplicates));
  } catch (const Json::parse_error& error) {
    throw base::UserError(fmt::format("{}:{}", label, line_and_column(text, error.byte)),
                          "not valid JSON: " + parse_message(error.what()));
  } catch (const Json::exception& error) {
    throw base::UserError(
        label, "not valid JSON: " +
                   std::string(error.what()).substr(std::string(error.what()).find("] ") + 2));
  }
  duplicates.problems.throw_if_any();
  if (!document.is_object())
    throw base::UserError(label, fmt::format("expected an object, got {}", shown(document)));
  return document;
}

Json load_document(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw base::UserError(path.string(),
                          fmt::format("cannot be opened for reading: {}", std::strerror(errno)));
  std::string text;
  std::vector<char> piece(1U << 16U);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileMax)
      throw base::UserError(path.string(),
                            fmt::format("longer than {} MiB, which no configuration needs; is this "
                                        "the right file?",
                                        kFileMax >> 20U));
  }
  if (file.bad()) throw base::UserError(path.string(), "cannot be read");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw base::UserError(path.string(), "the file is empty; expected a JSON object");
  return parse_document(text, path.string());
}

std::vector<Override> parse_overrides(const std::vector<std::string>& texts,
                                      base::Problems& problems) {
  std::vector<Override> changes;
  for (const std::string& text : texts) {
    Override change{.text = text, .path = {}, .keys = {}, .value = {}};
    if (!is_utf8(text)) {
      problems.add("--set", "the text is not UTF-8");
      continue;
    }
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.add(change.place(), "expected path=value, such as chip.hbm.bandwidth=6.0TB/s");
      continue;
    }
    change.path = text.substr(0, equals);
    change.value = text.substr(equals + 1);
    for (std::size_t begin = 0; begin <= change.path.size();) {
      const std::size_t dot = std::min(change.path.find('.', begin), change.path.size());
      change.keys.push_back(change.path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    if (std::find(change.keys.begin(), change.keys.end(), "") != change.keys.end()) {
      problems.add(change.place(),
                   "a name of the path is empty; expected names with single dots "
                   "between them, such as chip.hbm.bandwidth");
      continue;
    }
    if (std::find(roots().begin(), roots().end(), change.keys[0]) == roots().end()) {
      problems.add(change.place(), fmt::format("unknown path \"{}\"; it starts with one of {}{}",
                                               change.path, fmt::join(roots(), ", "),
                                               base::did_you_mean(change.keys[0], roots())));
      continue;
    }
    if (const std::string& last = change.keys.back();
        last == "kind" || last == "source" || last == "confidence") {
      problems.add(change.place(),
                   fmt::format("\"{}\" is no value that can be set; set the value itself", last));
      continue;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

void apply_override(Json& document, const Override& change, std::size_t from,
                    base::Problems& problems) {
  Json* node = &document;
  std::string walked;
  for (std::size_t i = 0; i < from; ++i) walked += (i == 0 ? "" : ".") + change.keys[i];
  for (std::size_t i = from; i < change.keys.size(); ++i) {
    if (node->is_null()) *node = Json::object();
    if (node->is_array()) {
      node = item(*node, change, i, walked, problems);
      if (node == nullptr) return;
      walked += "." + change.keys[i];
      continue;
    }
    if (!node->is_object() || is_long_leaf(*node)) {
      problems.add(change.place(),
                   fmt::format("{} is a single value, it has no \"{}\"", walked, change.keys[i]));
      return;
    }
    node = &(*node)[change.keys[i]];
    walked += (walked.empty() ? "" : ".") + change.keys[i];
  }
  *node = change.value;
}

}  // namespace trn3sim::config
