// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/base/text.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/config/system_describe.hpp"

#include <fmt/ranges.h>

namespace trn3sim::config {
namespace {

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  text.erase(text.begin(), std::ranges::find_if_not(text, blank));
  while (!text.empty() && blank(text.back())) text.pop_back();
  return text;
}

}  // namespace

std::vector<OpFormat> parse_op_formats(const std::string& text, const std::string& place,
                                       base::Problems& problems) {
  static const std::vector<std::string> kFormats(kMatmulFormats.begin(), kMatmulFormats.end());
  std::vector<OpFormat> formats;
  if (trimmed(text).empty()) return formats;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string item = trimmed(text.substr(begin, comma - begin));
    begin = comma + 1;
    const std::size_t equals = item.rfind('=');  // no format has one
    OpFormat format;
    if (equals != std::string::npos)
      format = {trimmed(item.substr(0, equals)), trimmed(item.substr(equals + 1))};
    if (format.op.empty() || format.matmul.empty()) {
      problems.add(place, fmt::format("expected NAME=FORMAT with commas between, such as "
                                      "\"head=bf16,layer_fwd.qkv=mxfp8\", got \"{}\"",
                                      item));
    } else if (std::ranges::find(kFormats, format.matmul) == kFormats.end()) {
      problems.add(place, fmt::format("\"{}\": unknown format \"{}\"; expected one of {}{}",
                                      format.op, format.matmul, fmt::join(kFormats, ", "),
                                      base::did_you_mean(format.matmul, kFormats)));
    } else if (std::ranges::find(formats, format.op, &OpFormat::op) != formats.end()) {
      problems.add(place, fmt::format("\"{}\" stands twice; give each name one format", format.op));
    } else {
      formats.push_back(std::move(format));
    }
  }
  return formats;
}

}  // namespace trn3sim::config
