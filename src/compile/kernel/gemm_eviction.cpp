// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compile/kernel/gemm_mapping.hpp"

namespace trn3sim::compile {
namespace {

using base::DType;

struct Ratio {
  std::int64_t num = 1, den = 1;
};

Ratio ratio(std::int64_t num, std::int64_t den) {
  const std::int64_t g = std::gcd(num, den);
  return g == 0 ? Ratio{0, 1} : Ratio{num / g, den / g};
}

}  // namespace

std::int64_t Eviction::stored_bytes(DType out, std::int64_t results) const {
  std::int64_t bytes = 0;
  for (const Store& s : stores) bytes += base::storage_bytes(out, scaled(results, s.num, s.den));
  return bytes;
}

Eviction eviction_of(const KernelSpec& spec) {
  Eviction e;
  const std::int64_t results = spec.m * spec.n * spec.batch;
  if (spec.accumulate) {
    e.extras.push_back({spec.out});
    e.vector.push_back({models::Engine::Vector, models::Opcode::TensorTensor});
  }
  std::vector<Ratio> scalar_width(e.scalar.size()), vector_width(e.vector.size());
  bool save = false;
  for (const Epilogue& epilogue : spec.epilogues) {
    const VectorFunction& f = vector_function(epilogue.fn, spec.label());
    save = save || f.saves_input;
    const Ratio r = ratio(epilogue.elems, results);
    for (const Pass& pass : f.passes) {
      const bool scalar = pass.engine == models::Engine::Scalar;
      Pass moved = pass;
      if (!scalar) moved.engine = models::Engine::Vector;
      (scalar ? e.scalar : e.vector).push_back(moved);
      (scalar ? scalar_width : vector_width).push_back(r);
    }
    // The gate and up halves of a silu_mul may both be results of this GEMM.
    const bool halves = epilogue.fn == "silu_mul" && epilogue.elems * 2 <= results;
    for (int i = 1; i < f.inputs && !halves; ++i)
      e.extras.push_back({activation_format(spec), r.num, r.den});
    if (f.outputs > 0) e.stores.assign(static_cast<std::size_t>(f.outputs), {r.num, r.den});
  }
  if (save) {  // the raw result leaves PSUM first
    e.vector.insert(e.vector.begin(), {models::Engine::Vector, models::Opcode::TensorCopy});
    vector_width.insert(vector_width.begin(), Ratio{});
    e.stores.insert(e.stores.begin(), Eviction::Store{});
  }
  const bool mx = spec.out == DType::Mxfp8 || spec.out == DType::Mxfp4;
  if (mx) {
    e.vector.push_back({models::Engine::Vector, models::Opcode::QuantizeMx});
    vector_width.push_back({e.stores.back().num, e.stores.back().den});
  }
  if (!e.scalar.empty() && e.vector.empty()) {  // the last step is VectorE's
    e.vector.push_back({models::Engine::Vector, models::Opcode::TensorCopy});
    vector_width.push_back({e.stores.back().num, e.stores.back().den});
  }
  if (mx && e.scalar.empty() && e.vector.size() == 1) {  // quantize_mx reads SBUF
    e.scalar.push_back({models::Engine::Scalar, models::Opcode::TensorCopy});
    scalar_width.push_back({});
  }
  for (const auto* widths : {&scalar_width, &vector_width}) {
    for (const Ratio& r : *widths) {
      e.pass_width_num.push_back(r.num);
      e.pass_width_den.push_back(r.den);
    }
  }
  return e;
}

}  // namespace trn3sim::compile
