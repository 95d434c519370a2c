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
constexpr Pass kSet{Engine::Vector, Opcode::Memset, false};
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
      {"zero", 0, 1, {kSet}},
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
      // As adamw up to the update, which is stored; sums of squares of weight and update; then both
      // read again for the scaled update.
      {"lamb",
       6,
       5,
       {kScalarScale, kScalarScale, kActivate, kScalarScale, kSquareSum, kSquareSum, kCombine,
        kCombine, kCombine, kScale, kPoolCombine}},
      {"sum_squares", 1, 0, {kSquareSum}},
  };
  return functions;
}

// Copies of the weights, once per step. Of both orientations, or one: `_forward` for the
// contraction along k, `_backward` for that along n, which ScalarE moves transposed out of PSUM.
// The work of `free_` ones is left out, only their bytes move (an experiment).
const std::vector<VectorFunction>& copies() {
  static const std::vector<VectorFunction> functions = [] {
    const std::vector<std::pair<std::string, std::vector<Pass>>> work = {
        {"quantize_mxfp8", {kQuantize}},
        // quantize_mx cannot make MXFP4: ScalarE packs the values.
        {"quantize_mxfp4", {kScalarCopy, kQuantize}},
        {"cast_weights", {kCopy}},
        // Choice of the kept values of each block, packing
        {"compress", {kReduce, kSelect, kCopy}},
    };
    std::vector<VectorFunction> all;
    const auto add = [&](const std::string& name, int count, const std::vector<Pass>& passes) {
      all.push_back({name, 1, count, passes, false, count});
      all.push_back({"free_" + name, 1, count, {}, false, count});
    };
    for (const auto& [name, forward] : work) {
      std::vector<Pass> backward{kScalarCopy};
      backward.insert(backward.end(), forward.begin(), forward.end());
      add(name + "_forward", 1, forward);
      add(name + "_backward", 1, backward);
      // Passes of one engine follow one another.
      std::vector<Pass> both = backward;
      both.insert(both.end(), forward.begin(), forward.end());
      std::ranges::stable_partition(both, [](const Pass& p) { return p.engine == Engine::Scalar; });
      add(name, 2, both);
    }
    return all;
  }();
  return functions;
}

}  // namespace

int VectorFunction::count(models::Engine engine) const {
  return static_cast<int>(
      std::ranges::count_if(passes, [&](const Pass& p) { return p.engine == engine; }));
}

const VectorFunction& vector_function(std::string_view name, std::string_view where) {
  for (const VectorFunction& function : copies())
    if (function.name == name) return function;
  std::vector<std::string> names;
  for (const VectorFunction& function : table()) {
    if (function.name == name) return function;
    names.emplace_back(function.name);
  }
  throw base::UserError(std::string(where), "unknown vector function \"" + std::string(name) +
                                                "\"" + base::did_you_mean(name, names));
}

}  // namespace trn3sim::compile
