// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring all-gathers as one, so that they share the start of a collective and its steps.
//
// All-gathers that follow each other in a block, over the same group, of the same format and with
// the same dependencies become one with their bytes together, up to kMergedBytes of result: what
// waited for one of them waits for all. More than that in one collective would only keep the ops
// after the first from starting.
#pragma once

#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

inline constexpr std::int64_t kMergedBytes = 32 << 20;

void merge_gathers(trace::Program& program);

}  // namespace trn3sim::compile
