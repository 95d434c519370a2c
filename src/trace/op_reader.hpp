// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One op line of a trace becomes an Op; everything that can be judged from the line, the header and
// the earlier ops of its block is checked here.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "trn3sim/trace/program.hpp"

#include "trace/fields.hpp"

namespace trn3sim::trace {

// Index of each op of a block by id. Only looked up, never iterated.
using OpIds = std::unordered_map<std::string, std::int32_t>;

// What an op line may refer to.
struct OpScope {
  const Header* header = nullptr;
  const Block* block = nullptr;                                 // ops so far
  const OpIds* ids = nullptr;                                   // of the block
  const std::map<std::string, std::int32_t>* blocks = nullptr;  // closed blocks
  std::string open_block;                                       // id of the block being read, or ""
};

// Reads the op line `fields` whose "op" is `kind`. Problems go to the fields' report.
Op read_op(const std::string& kind, Fields& fields, const OpScope& scope);

// Names of the ops that read_op knows.
const std::vector<std::string>& op_names();

}  // namespace trn3sim::trace
