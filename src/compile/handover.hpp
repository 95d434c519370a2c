// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Vector ops that take the result of the op before them from SBUF instead of HBM.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

// For each op of the block the op whose kernel it joins, or -1. A vector op joins the vector op
// whose only output it reads if nothing computes between them, both work on as many elements of the
// same 16-bit format, and all its other inputs are complete when the first one runs. Tiles are
// handed over one by one, so any size fits.
std::vector<std::int32_t> handovers(const trace::Block& block, base::DType dtype);

}  // namespace trn3sim::compile
