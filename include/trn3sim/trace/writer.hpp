// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes lines of the native trace format. Fields appear in the order of the calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trn3sim::trace {

class LineWriter {
 public:
  // Starts a line {"op":"<op>"}; an empty `op` starts an empty object (the header).
  explicit LineWriter(std::string_view op);
  LineWriter& text(std::string_view key, std::string_view value);
  LineWriter& number(std::string_view key, std::int64_t value);
  LineWriter& flag(std::string_view key, bool value);
  LineWriter& texts(std::string_view key, const std::vector<std::string>& values);
  // `json` is put in as it is.
  LineWriter& json(std::string_view key, std::string_view json);
  // The line with its newline.
  [[nodiscard]] std::string line() const { return text_ + "}\n"; }
  // The object without newline, to be nested with json().
  [[nodiscard]] std::string object() const { return text_ + "}"; }

 private:
  void key(std::string_view name);
  std::string text_ = "{";
};

}  // namespace trn3sim::trace
