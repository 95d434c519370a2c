// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/error.hpp"

#include "compile/kernel/kernels.hpp"
namespace trn3sim::compile {
models::TileProgram compile_attention_forward(const KernelSpec& spec, const config::ChipSpec&) {
  throw base::UserError(spec.label(), "attention is not available");
}
models::TileProgram compile_attention_backward(const KernelSpec& spec, const config::ChipSpec&) {
  throw base::UserError(spec.label(), "attention is not available");
}
std::string describe_attention(const KernelSpec& spec, const config::ChipSpec&) {
  return spec.label();
}
}  // namespace trn3sim::compile
