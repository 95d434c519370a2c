// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention op by op: the scores of all pairs (masked ones too) go through HBM between a batched
// GEMM, a softmax and the next GEMM; without fusion, scale and mask are passes of their own. The
// parts run one after the other: the loads of a part start when all stores of the part before are
// complete. Keys and values are read for every query head. The backward pass reads the
// probabilities that the forward pass wrote.
#include <algorithm>

#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_parts.hpp"

namespace trn3sim::compile {
namespace {

KernelSpec gemm_part(const KernelSpec& spec, std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelSpec part;
  part.m = m;
  part.n = n;
  part.k = k;
  part.batch = spec.batch * spec.heads;
  part.in = spec.in;
  part.out = spec.out;
  part.b_weight = false;
  part.cores = spec.cores;
  part.double_accumulators = spec.double_accumulators;
  part.streaming_loads = spec.streaming_loads;
  part.memory_reuse = spec.memory_reuse;
  return part;
}

KernelSpec scores_part(const KernelSpec& spec, const char* fn, std::int64_t inputs) {
  KernelSpec part;
  part.kind = KernelKind::Vector;
  part.fn = fn;
  part.elems = spec.batch * spec.heads * spec.sq * spec.skv;
  part.in = spec.in;
  part.out = spec.out;
  part.rd = inputs * base::storage_bytes(spec.in, part.elems);
  part.wr = base::storage_bytes(spec.in, part.elems);
  part.cores = spec.cores;
  part.double_accumulators = spec.double_accumulators;
  part.streaming_loads = spec.streaming_loads;
  part.memory_reuse = spec.memory_reuse;
  return part;
}

struct Part {
  KernelSpec spec;
  std::vector<std::string> operands;
};

std::vector<Part> parts_of(const KernelSpec& spec) {
  const std::int64_t q = spec.sq, k = spec.skv, d = spec.d;
  std::vector<Part> parts;
  if (spec.kind == KernelKind::AttentionForward) {
    parts.push_back({gemm_part(spec, q, k, d), {"q", "k", "scores"}});
    if (!spec.fusion) {
      parts.push_back({scores_part(spec, "scale", 1), {"scores", "scores"}});
      // The mask of a tile is the same for all heads and stays in SBUF.
      if (spec.causal)
        parts.push_back({scores_part(spec, "add", 1), {"scores", "scores", "scores"}});
    }
    parts.push_back({scores_part(spec, "softmax", 1), {"scores", "probabilities"}});
    parts.push_back({gemm_part(spec, q, d, k), {"probabilities", "v", "o"}});
    return parts;
  }
  parts.push_back({gemm_part(spec, k, d, q), {"probabilities", "do", "dv"}});
  parts.push_back({gemm_part(spec, q, k, d), {"do", "v", "dp"}});
  parts.push_back({scores_part(spec, "softmax_bwd", 2), {"dp", "probabilities", "ds"}});
  if (!spec.fusion) parts.push_back({scores_part(spec, "scale", 1), {"ds", "ds"}});
  parts.push_back({gemm_part(spec, q, d, k), {"ds", "k", "dq"}});
  parts.push_back({gemm_part(spec, k, d, q), {"ds", "q", "dk"}});
  return parts;
}

// Scores, probabilities and their gradients: with enough SBUF they would not leave the core.
bool is_intermediate(const std::string& operand) {
  return operand == "scores" || operand == "probabilities" || operand == "dp" || operand == "ds";
}

// Names of a part's operands. Vector functions have inputs, an output and perhaps intermediates.
std::vector<std::string> names_of(const Part& part, const models::TileProgram& program) {
  if (part.spec.kind == KernelKind::Gemm) return part.operands;
  std::vector<std::string> names;
  std::size_t input = 0;
  for (const models::Operand& o : program.operands) {
    const bool in = o.name.starts_with("in");
    names.push_back(in ? part.operands[std::min(input++, part.operands.size() - 2)]
                    : o.name.starts_with("out") ? part.operands.back()
                                                : o.name);
  }
  return names;
}

}  // namespace

models::TileProgram compile_unfused_attention(const KernelSpec& spec,
                                              const config::ChipSpec& chip) {
  ProgramParts parts;
  for (const Part& part : parts_of(spec)) {
    models::TileProgram program = compile_kernel(part.spec, chip);
    const std::vector<std::string> names = names_of(part, program);
    for (models::DmaTransfer& t : program.transfers)
      t.spill |= is_intermediate(names[static_cast<std::size_t>(t.operand)]);
    parts.append(std::move(program), names);
  }
  return parts.take();
}

std::string describe_unfused_attention(const KernelSpec& spec, const config::ChipSpec& chip) {
  std::string text = spec.label() + ": scores through HBM";
  for (const Part& part : parts_of(spec)) text += "; " + describe_mapping(part.spec, chip);
  return text;
}

}  // namespace trn3sim::compile
