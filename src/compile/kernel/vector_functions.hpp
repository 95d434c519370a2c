// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The instructions that each vector function costs per tile, by engine.
#pragma once

#include <string_view>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::compile {

// One instruction over the whole tile.
struct Pass {
  models::Engine engine = models::Engine::Vector;
  models::Opcode op = models::Opcode::TensorCopy;
  bool transcendental = false;
};

// A vector function: how many tensors of `elems` it reads and writes when it runs alone, and its
// passes. A tile goes through ScalarE, then VectorE, then GpSimdE; where the true data flow returns
// to an earlier engine, pipelining over tiles gives the same throughput.
struct VectorFunction {
  std::string name;
  int inputs = 1;
  int outputs = 1;
  std::vector<Pass> passes;
  // The backward pass needs its input: fused into a GEMM, the raw result is stored as well as the
  // function's output. Functions without this (rope, silu_mul_bwd, ...) replace the result.
  bool saves_input = false;
  int copies = 0;  // of weights, that it makes for the GEMMs
  [[nodiscard]] int count(models::Engine engine) const;
};

// Throws base::UserError (place `where`) naming the nearest function if `name` is unknown.
const VectorFunction& vector_function(std::string_view name, std::string_view where);

}  // namespace trn3sim::compile
