// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trn3sim/generate/llama.hpp"

namespace trn3sim::generate {

// Throws base::UserError listing all that is wrong with a plan.
void check_plan(const LlamaPlan& plan);

// Parameters of one decoder layer on a tensor-parallel rank, its two norms included.
std::int64_t layer_parameters(const LlamaDims& dims, std::int64_t tp);

}  // namespace trn3sim::generate
