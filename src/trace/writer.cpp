// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/trace/writer.hpp"

#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      text += c;
  }
  return text + '"';
}

}  // namespace

LineWriter::LineWriter(std::string_view op) {
  if (!op.empty()) text("op", op);
}

void LineWriter::key(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  text_ += quoted(name) + ':';
}

LineWriter& LineWriter::text(std::string_view name, std::string_view value) {
  return json(name, quoted(value));
}

LineWriter& LineWriter::number(std::string_view name, std::int64_t value) {
  return json(name, fmt::format("{}", value));
}

LineWriter& LineWriter::flag(std::string_view name, bool value) {
  return json(name, value ? "true" : "false");
}

LineWriter& LineWriter::texts(std::string_view name, const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& v : values) {
    if (!list.empty()) list += ',';
    list += quoted(v);
  }
  return json(name, fmt::format("[{}]", list));
}

LineWriter& LineWriter::json(std::string_view name, std::string_view value) {
  key(name);
  text_ += value;
  return *this;
}

}  // namespace trn3sim::trace
