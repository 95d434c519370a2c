// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// From ops to kernels: what each op of a block becomes on the cores of one rank.
#pragma once

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"

namespace trn3sim::compile {

// Fills Plan::kernels, Plan::ops and Plan::labels (places and group sets must be there). A gemm's
// epilogue ops are fused when the run's fusion switch is on. A rank of several stacks gives each an
// equal share along M or N. Streaming vector work that moves more than 256 MiB per stack becomes
// several pieces of one kernel, so that no bench has to run it whole. Problems name the trace line.
void lower_ops(const trace::Program& program, const config::RunSpec& run, Plan& plan,
               base::Problems& problems);

}  // namespace trn3sim::compile
