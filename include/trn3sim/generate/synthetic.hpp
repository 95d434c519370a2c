// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Small traces with one purpose, for one chip of four logical cores.
#pragma once

#include <string>

namespace trn3sim::generate {

// HBM-bound: 16 additions of bf16 tensors of 2^28 elements per rank, 1.5 GiB of traffic each.
std::string generate_residual_add();

// The AdamW update of a quarter of 6.4 billion parameters per rank and nothing else: 16 slices of
// 10^8 elements, 30 bytes of traffic per element.
std::string generate_optimizer_only();

}  // namespace trn3sim::generate
