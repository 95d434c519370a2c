// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls and repeats seen alike.
#pragma once

#include "trn3sim/trace/program.hpp"

namespace trn3sim::trace {

// The block that an op runs and how often; block -1 for a leaf op.
struct Nested {
  std::int32_t block = -1;
  std::int64_t times = 1;
};

inline Nested nested_of(const Op& op) {
  if (const auto* repeat = std::get_if<Repeat>(&op.body)) return {repeat->block, repeat->times};
  if (const auto* call = std::get_if<Call>(&op.body)) return {call->block, 1};
  return {};
}

}  // namespace trn3sim::trace
