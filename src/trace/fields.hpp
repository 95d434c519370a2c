// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Strict access to the fields of one JSON object of a trace: every field is asked for by name and
// type; what was never asked for is an unknown field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/error.hpp"

#include <simdjson.h>

namespace trn3sim::trace {

// Every count and size of a trace lies below this, so sums of a few of them fit in 64 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 60;

// Collects the problems of a file with their lines; after kMaxProblems reading stops.
class Report {
 public:
  static constexpr std::size_t kMaxProblems = 20;
  explicit Report(std::string file) : file_(std::move(file)) {}
  void add(std::uint32_t line, std::string what);
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  [[nodiscard]] bool full() const { return problems_.size() >= kMaxProblems; }
  void throw_if_any() const { problems_.throw_if_any(); }

 private:
  std::string file_;
  base::Problems problems_;
};

class Fields {
 public:
  // Messages name the object once it is set: set_what("gemm", "qkv") gives `gemm "qkv": ...`.
  Fields(simdjson::dom::object object, Report& report, std::uint32_t line);

  void set_what(std::string_view what, std::string_view id = {}) {
    what_ = what;
    id_ = id;
  }
  void problem(std::string text) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  // Value of an optional field; the fallback if absent or wrong (then reported).
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::int64_t integer_or(std::string_view key, std::int64_t low, std::int64_t fallback);
  std::int64_t require_integer(std::string_view key, std::int64_t low = 1);
  std::optional<std::string> text(std::string_view key);
  std::string require_text(std::string_view key);
  bool flag(std::string_view key);
  std::optional<base::DType> dtype(std::string_view key);
  // Index of the text in `choices`; -1 if absent or wrong (then reported).
  int choice(std::string_view key, const std::vector<std::string>& choices, bool required);
  // An id: a non-empty string, or an integer taken as its decimal text.
  std::string require_id(std::string_view key);
  std::vector<std::string> ids(std::string_view key);
  std::optional<simdjson::dom::element> any(std::string_view key);
  std::optional<simdjson::dom::object> object(std::string_view key);
  std::optional<simdjson::dom::array> array(std::string_view key);

  // Reports every field that nothing asked for, unless it starts with "x_".
  void finish();

 private:
  struct Field {
    std::string_view key;
    simdjson::dom::element value;
    bool used = false;
  };
  [[nodiscard]] const Field* find(std::string_view key) const;
  Field* take(std::string_view key);
  void expected(std::string_view key, std::string_view what, simdjson::dom::element got) const;

  std::vector<Field> fields_;
  std::vector<std::string_view> known_;
  std::string what_, id_;
  Report* report_;
  std::uint32_t line_;
};

// JSON text of a value, shortened for messages.
std::string shown(simdjson::dom::element value);
// The id in `value`, or nothing.
std::optional<std::string> id_of(simdjson::dom::element value);

}  // namespace trn3sim::trace
