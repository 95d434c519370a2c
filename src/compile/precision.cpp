// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "precision.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "compile/kernel/gemm_operand.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using base::DType;

constexpr std::int64_t kOrientations = 2;  // contraction along k (forward) and along n (dX)

bool is_mx(DType t) {
  return t == DType::Mxfp8 || t == DType::Mxfp4;
}

std::int64_t share(std::int64_t n, std::int64_t parts) {
  return (n + parts - 1) / parts;
}

// Elements that the optimizer of rank 0 updates in a step.
Int128 updated_elements(const trace::Program& program) {
  std::vector<Int128> of(program.blocks.size(), -1);
  const auto visit = [&](const auto& self, std::size_t b) -> Int128 {
    if (of[b] >= 0) return of[b];
    Int128 total = 0;
    for (const trace::Op& op : program.blocks[b].ops) {
      if (!trace::runs_on(program, op, 0)) continue;
      if (const auto* v = std::get_if<trace::Vec>(&op.body); v != nullptr && v->fn == "adamw")
        total += v->elems;
      if (const auto* c = std::get_if<trace::Call>(&op.body))
        total += self(self, static_cast<std::size_t>(c->block));
      if (const auto* r = std::get_if<trace::Repeat>(&op.body))
        total += self(self, static_cast<std::size_t>(r->block)) * r->times;
    }
    return of[b] = total;
  };
  return program.blocks.empty() ? Int128(0) : visit(visit, 0);
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Precision::Precision(const trace::Program& program, const config::RunSpec& run,
                     base::Problems& problems)
    : trace_(program.header.dtype), array_(trace_), weight_(trace_) {
  if (const auto format = base::dtype_from(run.precision.matmul)) {
    policy_ = true;
    array_ = weight_ = *format;
    if (weight_ == DType::Mxfp4) array_ = DType::Mxfp8;
    // Runs in another 2-byte format keep everything in it.
    if (base::element_bits(trace_) == 16 && base::element_bits(weight_) == 16) trace_ = weight_;
  }
  const std::string& pattern = run.precision.sparsity;
  if (const std::size_t colon = pattern.find(':'); colon != std::string::npos) {
    sparse_kept_ = number(std::string_view(pattern).substr(0, colon));
    sparse_block_ = number(std::string_view(pattern).substr(colon + 1));
  }
  for (const trace::MemoryEntry& entry : program.header.memory) {
    if (entry.kind == "weights")
      weights_ += entry.bytes * 8 / base::element_bits(program.header.dtype);
  }
  updated_ = updated_elements(program);
  if (weights_ == 0) weights_ = static_cast<std::int64_t>(updated_);
  refused_ = !check(run, problems);
}

bool Precision::check(const config::RunSpec& run, base::Problems& problems) const {
  const config::ChipSpec& chip = run.system.chip;
  const auto rate = [&](DType t) {
    return chip.tensor.macs_per_pe_cycle[static_cast<std::size_t>(t)];
  };
  bool good = true;
  const auto refuse = [&](const char* key, const std::string& why) {
    problems.add(key, why);
    good = false;
  };
  if (policy_ && (rate(array_) <= 0 || rate(weight_) <= 0)) {
    refuse("precision.matmul",
           fmt::format("{} cannot multiply {}", chip.name, run.precision.matmul));
  } else if (policy_ && is_mx(array_) && chip.vector.quantize_speedup <= 0) {
    refuse("precision.matmul", fmt::format("{} has no quantize_mx, which {} needs for activations",
                                           chip.name, run.precision.matmul));
  }
  if (sparse_block_ == 0) return good;
  if (!chip.tensor.sparse_weights) {
    refuse("precision.sparsity", fmt::format("{} has no sparse weights", chip.name));
  } else if (array_ != DType::Bf16 && array_ != DType::Fp16 && array_ != DType::Tf32) {
    refuse("precision.sparsity",
           fmt::format("{} is for bf16, fp16 or tf32 products, but precision.matmul makes "
                       "them {}; use \"none\" or another format",
                       run.precision.sparsity, base::name(array_)));
  }
  return good;
}

void Precision::apply(const trace::Gemm& gemm, KernelSpec& spec) const {
  if (policy_) {
    spec.in = array_;
    if (!gemm.out) spec.out = trace_;
    if (array_ != trace_) {
      spec.a_format = spec.a_weight ? weight_ : trace_;
      spec.b_format = spec.b_weight ? weight_ : trace_;
    }
  }
  if (!spec.a_weight && !spec.b_weight) return;
  spec.sparse_kept = sparse_kept_;
  spec.sparse_block = sparse_block_;
  if (!copies()) return;
  // The copies of weights lie in both orientations.
  if (spec.a_weight) spec.a_transposed = false;
  if (spec.b_weight) spec.b_transposed = false;
}

std::int64_t Precision::weight_copy_bytes() const {
  if (!copies()) return 0;
  GemmOperand copy;
  copy.hbm = weight_;
  if (sparse_block_ > 0) {
    copy.kept = sparse_kept_;
    copy.block = sparse_block_;
  }
  return kOrientations * copy.hbm_bytes(weights_);
}

void Precision::add_weight_copies(const trace::Vec& v, std::int64_t stacks,
                                  KernelSpec& spec) const {
  if (!copies() || v.fn != "adamw" || updated_ == 0) return;
  const auto part = [&](std::int64_t total) {
    return share(static_cast<std::int64_t>(Int128(total) * v.elems / updated_), stacks);
  };
  const std::int64_t elems = part(weights_);
  if (elems == 0) return;
  const char* fn = sparse_block_ > 0         ? "compress"
                   : weight_ == DType::Mxfp4 ? "quantize_mxfp4"
                   : weight_ == DType::Mxfp8 ? "quantize_mxfp8"
                                             : "cast_weights";
  spec.epilogues.push_back({fn, elems});
  spec.rd += part(base::storage_bytes(trace_, weights_));
  spec.wr += part(weight_copy_bytes());
}

}  // namespace trn3sim::compile
