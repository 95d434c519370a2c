// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The GEMMs that a run names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

// A GEMM of a program and the name that stands for it.
struct NamedGemm {
  std::size_t block = 0, op = 0;
  std::size_t name = 0;  // index
};

// The GEMMs that `names` stand for, in the order of the program. A name is "block.op", or "op" for
// the ops of that id in all blocks; "block.op" beats "op". Pieces of an op go by the name of the
// whole. Adds a problem (place "precision.ops") for a name that no op has, with names close to it,
// and for a name that only other ops than GEMMs have.
std::vector<NamedGemm> find_gemms(const trace::Program& program,
                                  const std::vector<std::string>& names, base::Problems& problems);

}  // namespace trn3sim::compile
