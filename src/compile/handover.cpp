// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "handover.hpp"

#include <algorithm>

namespace trn3sim::compile {
namespace {

using trace::Op;

// A vector op of its own, with the operands of its function and nothing else.
const trace::Vec* plain_vector(const Op& op) {
  const auto* v = std::get_if<trace::Vec>(&op.body);
  return v != nullptr && v->fuse < 0 && !v->rd && !v->wr && op.when.empty() ? v : nullptr;
}

// Runs on the engines of the cores, or may hold ops that do.
bool computes(const Op& op) {
  if (const auto* v = std::get_if<trace::Vec>(&op.body)) return v->fuse < 0;
  return std::holds_alternative<trace::Gemm>(op.body) ||
         std::holds_alternative<trace::Attention>(op.body) ||
         std::holds_alternative<trace::Scan>(op.body) ||
         std::holds_alternative<trace::Opaque>(op.body) ||
         std::holds_alternative<trace::Call>(op.body) ||
         std::holds_alternative<trace::Repeat>(op.body);
}

class Block {
 public:
  Block(const trace::Block& block, base::DType dtype) : ops_(block.ops), dtype_(dtype) {}

  std::vector<std::int32_t> handovers() {
    std::vector<std::int32_t> joins(ops_.size(), -1);
    for (std::size_t j = 0; j < ops_.size(); ++j) {
      for (const std::int32_t d : ops_[j].deps) {
        if (joins[j] >= 0 || d < 0) continue;
        const auto i = static_cast<std::size_t>(d);
        if (!fits(i, j) || computes_between(i, j)) continue;
        const std::int32_t first = joins[i] >= 0 ? joins[i] : d;
        if (inputs_are_complete(static_cast<std::size_t>(first), i, j)) joins[j] = first;
      }
    }
    return joins;
  }

 private:
  [[nodiscard]] bool fits(std::size_t i, std::size_t j) const {
    const trace::Vec *from = plain_vector(ops_[i]), *to = plain_vector(ops_[j]);
    if (from == nullptr || to == nullptr || from->elems != to->elems) return false;
    const base::DType format = from->dtype.value_or(dtype_);
    return format == to->dtype.value_or(dtype_) && base::element_bits(format) == 16 &&
           trace::vec_function(from->fn)->outputs == 1 && trace::vec_function(to->fn)->inputs > 0 &&
           ops_[i].recompute == ops_[j].recompute;
  }
  [[nodiscard]] bool computes_between(std::size_t i, std::size_t j) const {
    return std::any_of(ops_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       ops_.begin() + static_cast<std::ptrdiff_t>(j), computes);
  }
  // Compute ops run in the order of the program; others must come before the first op of the chain
  // by dependencies.
  [[nodiscard]] bool inputs_are_complete(std::size_t first, std::size_t i, std::size_t j) const {
    const std::vector<bool> before = ancestors(first);
    return std::ranges::all_of(ops_[j].deps, [&](std::int32_t d) {
      if (d == trace::kEntry) return static_cast<bool>(before.back());
      const auto other = static_cast<std::size_t>(d);
      return other == i || before[other] || (other < first && computes(ops_[other])) ||
             other == first;
    });
  }
  // Ops that are done when `op` starts; the last entry is the block's own entry.
  [[nodiscard]] std::vector<bool> ancestors(std::size_t op) const {
    std::vector<bool> before(ops_.size() + 1, false);
    std::vector<bool> seen(ops_.size(), false);
    seen[op] = true;
    for (std::size_t i = op + 1; i-- > 0;) {
      if (!seen[i]) continue;
      before[i] = i != op;
      for (const std::int32_t d : ops_[i].deps)
        if (d == trace::kEntry)
          before.back() = true;
        else
          seen[static_cast<std::size_t>(d)] = true;
    }
    return before;
  }

  const std::vector<Op>& ops_;
  base::DType dtype_;
};

}  // namespace

std::vector<std::int32_t> handovers(const trace::Block& block, base::DType dtype) {
  return Block(block, dtype).handovers();
}

}  // namespace trn3sim::compile
