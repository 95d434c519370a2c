// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/compile/plan.hpp"

#include "merge.hpp"
#include "overlap.hpp"

namespace trn3sim::compile {
namespace {

using trace::Attention;
using trace::Op;

class Probabilities {
 public:
  explicit Probabilities(trace::Program& program) : program_(program) {
    for (const trace::Block& block : program.blocks)
      for (const Op& op : block.ops) {
        const auto* a = std::get_if<Attention>(&op.body);
        again_ |= a != nullptr && !a->backward && op.recompute;
      }
  }

  // Attention through HBM keeps the probabilities of the forward pass for the backward pass. If
  // the forward pass is done again, it keeps those of the second time.
  void keep() {
    const auto sum = [&](bool backward) {
      return trace::sum_over_ops(program_, -1, [&](std::int32_t block, std::int32_t op) {
        return static_cast<double>(
            kept(program_.blocks[static_cast<std::size_t>(block)].ops[static_cast<std::size_t>(op)],
                 backward));
      });
    };
    if (sum(false) != sum(true)) return;  // no backward pass, or not of all: they are scratch
    for (trace::Block& block : program_.blocks)
      for (Op& op : block.ops) {
        op.alloc += kept(op, false);
        op.free += kept(op, true);
      }
  }

 private:
  // Bytes that an attention op keeps, or of a backward op drops.
  [[nodiscard]] std::int64_t kept(const Op& op, bool backward) const {
    const auto* a = std::get_if<Attention>(&op.body);
    if (a == nullptr || a->backward != backward || (!backward && op.recompute != again_)) return 0;
    return base::storage_bytes(a->dtype.value_or(program_.header.dtype),
                               a->b * a->heads * a->sq * a->skv);
  }

  trace::Program& program_;
  bool again_ = false;  // the forward pass is recomputed
};

}  // namespace

trace::Program rewrite(trace::Program program, const config::CompileSpec& compile) {
  if (!compile.flash_attention) Probabilities(program).keep();
  if (compile.merge_gathers) merge_gathers(program);
  if (compile.overlap_collectives) overlap_collectives(program);
  return program;
}

}  // namespace trn3sim::compile
