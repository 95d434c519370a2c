// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trace/fields.hpp"

#include <algorithm>

#include "trn3sim/base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trn3sim::trace {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

}  // namespace

void Report::add(std::uint32_t line, std::string what) {
  if (full()) return;
  problems_.add(line == 0 ? file_ : fmt::format("{}:{}", file_, line), std::move(what));
  if (full()) problems_.add(file_, "stopped here; more problems may follow");
}

std::string shown(element value) {
  constexpr std::size_t kShown = 48;
  std::string text = simdjson::minify(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::optional<std::string> id_of(element value) {
  if (value.type() == element_type::STRING) {
    const std::string_view text = value.get_string().value_unsafe();
    if (!text.empty() && text != "^") return std::string(text);
  } else if (value.type() == element_type::INT64) {
    return fmt::format("{}", value.get_int64().value_unsafe());
  }
  return std::nullopt;
}

Fields::Fields(simdjson::dom::object object, Report& report, std::uint32_t line)
    : report_(&report), line_(line) {
  constexpr std::size_t kUsualFields = 24;
  fields_.reserve(object.size());
  known_.reserve(kUsualFields);
  for (const auto& [key, value] : object) {
    if (find(key) != nullptr)
      problem(fmt::format("field \"{}\" is given twice", key));
    else
      fields_.push_back({key, value, false});
  }
}

void Fields::problem(std::string text) const {
  if (what_.empty()) return report_->add(line_, std::move(text));
  report_->add(line_, id_.empty() ? fmt::format("{}: {}", what_, text)
                                  : fmt::format("{} \"{}\": {}", what_, id_, text));
}

const Fields::Field* Fields::find(std::string_view key) const {
  const auto at =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key; });
  return at == fields_.end() ? nullptr : &*at;
}

Fields::Field* Fields::take(std::string_view key) {
  known_.push_back(key);
  for (Field& f : fields_) {
    if (f.key != key) continue;
    f.used = true;
    return &f;
  }
  return nullptr;
}

void Fields::expected(std::string_view key, std::string_view what, element got) const {
  problem(fmt::format("\"{}\": expected {}, got {}", key, what, shown(got)));
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low,
                                            std::int64_t high) {
  const Field* f = take(key);
  if (f == nullptr) return std::nullopt;
  std::int64_t value = 0;
  if (f->value.type() == element_type::INT64 && f->value.get(value) == simdjson::SUCCESS &&
      value >= low && value <= high)
    return value;
  if (high == kMaxSize - 1)
    expected(key, fmt::format("an integer from {} to below 2^60", low), f->value);
  else
    expected(key, fmt::format("an integer from {} to {}", low, high), f->value);
  return std::nullopt;
}

std::int64_t Fields::integer_or(std::string_view key, std::int64_t low, std::int64_t fallback) {
  return integer(key, low, kMaxSize - 1).value_or(fallback);
}

std::int64_t Fields::require_integer(std::string_view key, std::int64_t low) {
  if (!has(key)) problem(fmt::format("\"{}\" is required, but missing", key));
  return integer(key, low, kMaxSize - 1).value_or(low);
}

std::optional<std::string> Fields::text(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) return std::nullopt;
  if (f->value.type() == element_type::STRING)
    return std::string(f->value.get_string().value_unsafe());
  expected(key, "a string", f->value);
  return std::nullopt;
}

std::string Fields::require_text(std::string_view key) {
  if (!has(key)) problem(fmt::format("\"{}\" is required, but missing", key));
  return text(key).value_or("");
}

bool Fields::flag(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) return false;
  bool value = false;
  if (f->value.get(value) != simdjson::SUCCESS) expected(key, "true or false", f->value);
  return value;
}

int Fields::choice(std::string_view key, const std::vector<std::string>& choices, bool required) {
  const bool given = has(key);
  if (!given && required) problem(fmt::format("\"{}\" is required, but missing", key));
  const std::optional<std::string> value = text(key);
  if (!value) return -1;
  const auto at = std::find(choices.begin(), choices.end(), *value);
  if (at != choices.end()) return static_cast<int>(at - choices.begin());
  problem(fmt::format("\"{}\": unknown value \"{}\"; expected one of {}{}", key, *value,
                      fmt::join(choices, ", "), base::did_you_mean(*value, choices)));
  return -1;
}

std::optional<base::DType> Fields::dtype(std::string_view key) {
  const Field* f = find(key);
  if (f != nullptr && f->value.type() == element_type::STRING)
    if (const auto type = base::dtype_from(f->value.get_string().value_unsafe())) {
      take(key);
      return type;
    }
  choice(key, f == nullptr ? std::vector<std::string>() : base::dtype_names(), false);
  return std::nullopt;
}

std::string Fields::require_id(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) {
    problem(fmt::format("\"{}\" is required, but missing", key));
    return "";
  }
  if (std::optional<std::string> id = id_of(f->value)) return *id;
  expected(key, "a non-empty string other than \"^\", or an integer", f->value);
  return "";
}

std::optional<element> Fields::any(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) return std::nullopt;
  return f->value;
}

std::optional<simdjson::dom::object> Fields::object(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) return std::nullopt;
  simdjson::dom::object value;
  if (f->value.get(value) == simdjson::SUCCESS) return value;
  expected(key, "an object", f->value);
  return std::nullopt;
}

std::optional<simdjson::dom::array> Fields::array(std::string_view key) {
  const Field* f = take(key);
  if (f == nullptr) return std::nullopt;
  simdjson::dom::array value;
  if (f->value.get(value) == simdjson::SUCCESS) return value;
  expected(key, "an array", f->value);
  return std::nullopt;
}

std::vector<std::string> Fields::ids(std::string_view key) {
  std::vector<std::string> list;
  const auto values = array(key);
  if (!values) return list;
  for (element value : *values) {
    if (value.type() == element_type::STRING && value.get_string().value_unsafe() == "^")
      list.emplace_back("^");
    else if (std::optional<std::string> id = id_of(value))
      list.push_back(std::move(*id));
    else
      expected(key, "ids", value);
  }
  return list;
}

void Fields::finish() {
  for (const Field& f : fields_) {
    if (f.used || f.key.substr(0, 2) == "x_") continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    problem(fmt::format("unknown field \"{}\"{}", f.key, base::did_you_mean(f.key, names)));
  }
}

}  // namespace trn3sim::trace
