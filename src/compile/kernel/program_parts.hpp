// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Tile programs that run one after another as one kernel: the loads of a part start when everything
// of the part before is done, stores included, so the parts share SBUF and PSUM.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trn3sim/models/instruction.hpp"

namespace trn3sim::compile {

class ProgramParts {
 public:
  // `names`: of the part's operands, in its order; equal names of parts are one operand.
  void append(models::TileProgram part, const std::vector<std::string>& names);
  [[nodiscard]] models::TileProgram take() { return std::move(program_); }

 private:
  models::TileProgram program_;
};

}  // namespace trn3sim::compile
