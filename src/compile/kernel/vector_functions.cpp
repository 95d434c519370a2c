// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/vector_functions.hpp"

#include <algorithm>
#include <string>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

namespace trn3sim::compile {
namespace {

using models::Engine;
using models::Opcode;

constexpr Pass kActivate{Engine::Scalar, Opcode::Activation, true};
constexpr Pass kActivateReduce{Engine::Scalar, Opcode::ActivationReduce, true};
constexpr Pass kSquareSum{Engine::Scalar, Opcode::ActivationReduce, false};
constexpr Pass kScalarScale{Engine::Scalar, Opcode::Activation, false};
constexpr Pass kScale{Engine::Vector, Opcode::TensorScalar, false};
constexpr Pass kCombine{Engine::Vector, Opcode::TensorTensor, false};
constexpr Pass kReduce{Engine::Vector, Opcode::TensorReduce, false};
constexpr Pass kCopy{Engine::Vector, Opcode::TensorCopy, false};
constexpr Pass kScalarCopy{Engine::Scalar, Opcode::TensorCopy, false};
constexpr Pass kQuantize{Engine::Vector, Opcode::QuantizeMx, false};
constexpr Pass kSelect{Engine::Vector, Opcode::Select, false};
constexpr Pass kStats{Engine::Vector, Opcode::BnStats, false};
constexpr Pass kPoolCombine{Engine::Gpsimd, Opcode::TensorTensor, false};

const std::vector<VectorFunction>& table() {
  static const std::vector<VectorFunction> functions = {
      // sum of squares, then x * rstd and * weight, which varies along the row
      {"rmsnorm", 1, 1, {kSquareSum, kScale, kCombine}},
      // dy*w, its product with x and row sum, then dx = (dyw - x * mean) * rstd
      {"rmsnorm_bwd", 3, 1, {kSquareSum, kScalarScale, kCombine, kCombine, kScale, kCombine}},
      // statistics, (x - mean) * rstd, then * weight + bias
      {"layernorm", 1, 1, {kStats, kScalarScale, kCombine, kCombine}},
      {"layernorm_bwd", 3, 1, {kSquareSum, kSquareSum, kCombine, kCombine, kCombine, kScale}},
      // x * cos, rotated x * sin, sum
      {"rope", 1, 1, {kCombine, kCombine, kCombine}},
      {"rope_bwd", 1, 1, {kCombine, kCombine, kCombine}},
      {"softmax", 1, 1, {kActivateReduce, kReduce, kScale}},
      {"softmax_bwd", 2, 1, {kScalarScale, kCombine, kCombine}},
      // sigmoid, gate * sigmoid, * up
      {"silu_mul", 2, 1, {kActivate, kCombine, kCombine}, true},
      {"silu_mul_bwd",
       3,
       2,
       {kActivate, kScalarScale, kCombine, kCombine, kCombine, kCombine, kCombine}},
      {"gelu", 1, 1, {kActivate}, true},
      {"gelu_bwd", 2, 1, {kActivate, kCombine}},
      {"add", 2, 1, {kCombine}},
      {"mul", 2, 1, {kCombine}},
      {"scale", 1, 1, {kScale}},
      {"cast", 1, 1, {kCopy}},
      {"copy", 1, 1, {kCopy}},
      {"zero", 0, 1, {kCopy}},
      // exp with row sum, row max, pick of the label's logit
      {"cross_entropy", 1, 1, {kActivateReduce, kReduce, kSelect}},
      {"cross_entropy_bwd", 1, 1, {kActivate, kScale}},
      {"embedding", 1, 1, {kCopy}},
      {"embedding_bwd", 2, 1, {kCombine}},
      // Scalar: scaled gradient, its square, rsqrt of the second moment, decay of the weight.
      // Vector: first moment, second moment, update. GpSimd: new weight.
      {"adamw",
       4,
       4,
       {kScalarScale, kScalarScale, kActivate, kScalarScale, kCombine, kCombine, kCombine,
        kPoolCombine}},
      {"sum_squares", 1, 0, {kSquareSum}},
      // Copies of the weights in both orientations, once per step; ScalarE moves the transposed
      // ones out of PSUM, and packs the values of MXFP4, which quantize_mx cannot make.
      {"quantize_mxfp8", 1, 2, {kScalarCopy, kQuantize, kQuantize}},
      {"quantize_mxfp4", 1, 2, {kScalarCopy, kScalarCopy, kScalarCopy, kQuantize, kQuantize}},
      {"cast_weights", 1, 2, {kScalarCopy, kCopy, kCopy}},
      // Choice of the kept values of each block, packing
      {"compress", 1, 2, {kScalarCopy, kReduce, kSelect, kCopy, kReduce, kSelect, kCopy}},
  };
  return functions;
}

}  // namespace

int VectorFunction::count(models::Engine engine) const {
  return static_cast<int>(
      std::ranges::count_if(passes, [&](const Pass& p) { return p.engine == engine; }));
}

const VectorFunction& vector_function(std::string_view name, std::string_view where) {
  std::vector<std::string> names;
  for (const VectorFunction& function : table()) {
    if (function.name == name) return function;
    names.emplace_back(function.name);
  }
  throw base::UserError(std::string(where), "unknown vector function \"" + std::string(name) +
                                                "\"" + base::did_you_mean(name, names));
}

}  // namespace trn3sim::compile
