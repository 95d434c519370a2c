// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "trn3sim/trace/program.hpp"

namespace trn3sim::trace {
namespace {

// name, tensors read, tensors written, FLOP per element. `elems` counts output elements (input
// elements where nothing is written); silu_mul reads two tensors of `elems`: gate and up.
constexpr std::array<VecFunction, 25> kFunctions = {
    {{"rmsnorm", 1, 1, 4},       {"rmsnorm_bwd", 3, 1, 10},
     {"layernorm", 1, 1, 6},     {"layernorm_bwd", 3, 1, 14},
     {"rope", 1, 1, 3},          {"rope_bwd", 1, 1, 3},
     {"softmax", 1, 1, 5},       {"softmax_bwd", 2, 1, 4},
     {"silu_mul", 2, 1, 6},      {"silu_mul_bwd", 3, 2, 14},
     {"gelu", 1, 1, 8},          {"gelu_bwd", 2, 1, 12},
     {"add", 2, 1, 1},           {"mul", 2, 1, 1},
     {"scale", 1, 1, 1},         {"cast", 1, 1, 1},
     {"copy", 1, 1, 0},          {"zero", 0, 1, 0},
     {"cross_entropy", 1, 1, 6}, {"cross_entropy_bwd", 1, 1, 3},
     {"embedding", 1, 1, 0},     {"embedding_bwd", 2, 1, 1},
     {"adamw", 4, 4, 12},        {"lamb", 6, 5, 18},
     {"sum_squares", 1, 0, 2}}};

}  // namespace

const VecFunction* vec_function(std::string_view name) {
  for (const VecFunction& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<std::string> vec_function_names() {
  std::vector<std::string> names;
  for (const VecFunction& f : kFunctions) names.emplace_back(f.name);
  return names;
}

}  // namespace trn3sim::trace
