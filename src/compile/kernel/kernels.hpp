// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The generators behind compile_kernel(), one per kind. Shapes are checked before.
#pragma once

#include <string>

#include "trn3sim/compile/kernel.hpp"

namespace trn3sim::compile {

models::TileProgram compile_gemm(const KernelSpec& spec, const config::ChipSpec& chip,
                                 const config::MappingSpec* mapping);
models::TileProgram compile_vector(const KernelSpec& spec, const config::ChipSpec& chip);
models::TileProgram compile_attention_forward(const KernelSpec& spec, const config::ChipSpec& chip);
models::TileProgram compile_unfused_attention(const KernelSpec& spec, const config::ChipSpec& chip);
models::TileProgram compile_attention_backward(const KernelSpec& spec,
                                               const config::ChipSpec& chip);
models::TileProgram compile_copy(const KernelSpec& spec, const config::ChipSpec& chip);
models::TileProgram compile_scan(const KernelSpec& spec, const config::ChipSpec& chip);

std::string describe_gemm(const KernelSpec& spec, const config::ChipSpec& chip,
                          const config::MappingSpec* mapping);
std::string describe_vector(const KernelSpec& spec, const config::ChipSpec& chip);
std::string describe_copy(const KernelSpec& spec, const config::ChipSpec& chip);
std::string describe_scan(const KernelSpec& spec, const config::ChipSpec& chip);
std::string describe_unfused_attention(const KernelSpec& spec, const config::ChipSpec& chip);
std::string describe_attention_forward(const KernelSpec& spec, const config::ChipSpec& chip);
std::string describe_attention_backward(const KernelSpec& spec, const config::ChipSpec& chip);

}  // namespace trn3sim::compile
