// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What a vector kernel moves and computes: one loop over all tiles, or one per pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trn3sim/compile/kernel.hpp"

#include "compile/kernel/vector_functions.hpp"

namespace trn3sim::compile {

// The passes of the function and of what follows it, with the elements of each.
struct Work {
  struct Item {
    Pass pass;
    std::int64_t elems;
    bool follows;
  };
  std::vector<Item> passes;
  [[nodiscard]] std::int64_t count(models::Engine engine) const {
    return std::ranges::count_if(passes, [&](const Item& i) { return i.pass.engine == engine; });
  }
};

// Data of one operand between HBM and SBUF, of all cores or of one.
struct Stream {
  std::int64_t bytes = 0;
  bool spill = false;  // of an intermediate
  bool operator==(const Stream&) const = default;
};
using Streams = std::vector<Stream>;

std::int64_t total(const Streams& streams);

// A loop over all tiles.
struct Loop {
  Work work;
  Streams loads, stores;
};

// With memory reuse one loop; without it each pass reads its operands from HBM and writes its
// result there. The inputs of the function are then the first tensors read, its outputs the last
// ones written; everything else is an intermediate of `elems` in the function's format.
std::vector<Loop> loops_of(const KernelSpec& spec);

}  // namespace trn3sim::compile
