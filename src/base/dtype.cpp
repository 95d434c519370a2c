// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/dtype.hpp"

namespace trn3sim::base {
namespace {

struct Format {
  std::string_view name;
  int bits;
  bool microscaled;
};
constexpr std::array<Format, kDTypes> kFormats = {{{"fp32", 32, false},
                                                   {"tf32", 32, false},
                                                   {"bf16", 16, false},
                                                   {"fp16", 16, false},
                                                   {"fp8", 8, false},
                                                   {"mxfp8", 8, true},
                                                   {"mxfp4", 4, true}}};
constexpr std::int64_t kScaleBlock = 32;

const Format& format_of(DType t) {
  return kFormats[static_cast<std::size_t>(t)];
}

}  // namespace

std::string_view name(DType t) {
  return format_of(t).name;
}

std::optional<DType> dtype_from(std::string_view text) {
  for (std::size_t i = 0; i < kDTypes; ++i)
    if (kFormats[i].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const Format& f : kFormats) names.emplace_back(f.name);
  return names;
}

int element_bits(DType t) {
  return format_of(t).bits;
}

std::int64_t storage_bytes(DType t, std::int64_t elements) {
  const Format& f = format_of(t);
  const std::int64_t data = (elements * f.bits + 7) / 8;
  return f.microscaled ? data + (elements + kScaleBlock - 1) / kScaleBlock : data;
}

}  // namespace trn3sim::base
