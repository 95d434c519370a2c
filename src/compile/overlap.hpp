// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensor-parallel collectives beside the GEMM that they feed or that feeds them.
//
// With sequence parallelism an all-gather makes the left operand of a GEMM and a reduce-scatter
// takes its results. Both, and the GEMM with its epilogue, are cut along the rows (tokens): chunk i
// of the all-gather holds 1/kChunks of the rows of every member, piece i of the GEMM multiplies
// them, and chunk i of the reduce-scatter adds them up. So piece i computes while chunk i + 1 is on
// the links. Each chunk pays the start of a collective and each piece the start of a kernel.
#pragma once

#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

void overlap_collectives(trace::Program& program);

}  // namespace trn3sim::compile
