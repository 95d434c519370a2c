// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives and their shapes for tests.
#pragma once

#include "trn3sim/compile/collective.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::test {

inline trace::Collective collective(trace::CollectiveKind kind, std::int64_t in, std::int64_t out) {
  trace::Collective c;
  c.kind = kind;
  c.in = in;
  c.out = out;
  return c;
}

inline compile::CollectiveShape shape(std::int64_t members, compile::Way way = compile::Way::Ring,
                                      std::int64_t rings = 1, std::int64_t exits = 1) {
  compile::CollectiveShape s;
  s.members = members;
  s.way = way;
  s.rings = rings;
  s.exits = exits;
  return s;
}

}  // namespace trn3sim::test
