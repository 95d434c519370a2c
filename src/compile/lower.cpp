// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "lower.hpp"

#include <algorithm>
#include <map>

#include "trn3sim/base/text.hpp"

#include "collective_choice.hpp"
#include "handover.hpp"
#include "precision.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using base::DType;
using trace::Op;

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;  // HBM traffic of one piece

std::int64_t share(std::int64_t n, std::int64_t parts) {
  return (n + parts - 1) / parts;
}

std::string_view kind_name(trace::CollectiveKind kind) {
  switch (kind) {
    case trace::CollectiveKind::AllReduce:
      return "all_reduce";
    case trace::CollectiveKind::AllGather:
      return "all_gather";
    case trace::CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case trace::CollectiveKind::AllToAll:
      return "all_to_all";
    case trace::CollectiveKind::Broadcast:
      return "broadcast";
    case trace::CollectiveKind::Barrier:
      return "barrier";
  }
  return "?";
}

class Lowering {
 public:
  Lowering(const trace::Program& program, const config::RunSpec& run, Plan& plan,
           base::Problems& problems)
      : program_(program),
        run_(run),
        plan_(plan),
        problems_(problems),
        precision_(program, run, problems) {}

  void block(std::size_t b) {
    const trace::Block& block = program_.blocks[b];
    std::vector<OpPlan>& out = plan_.ops[b];
    out.resize(block.ops.size());
    block_ = b;
    joins_.assign(block.ops.size(), -1);
    if (run_.compile.memory_reuse) joins_ = handovers(block, program_.header.dtype);
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      const Op& op = block.ops[i];
      if (const auto* vec = std::get_if<trace::Vec>(&op.body);
          joins_[i] >= 0 || (vec != nullptr && vec->fuse >= 0 && run_.compile.fusion)) {
        out[i].fused = true;
        continue;
      }
      if (const auto* c = std::get_if<trace::Collective>(&op.body)) {
        collective(op, *c, out[i]);
        continue;
      }
      KernelSpec spec;
      if (!kernel_of(block, i, spec)) continue;
      if (!supported({b, i}, spec.in)) continue;
      if (spec.kind == KernelKind::Vector) split(spec, out[i]);
      out[i].kernel = kernel_index(spec);
      out[i].label = label_index(spec.label());
    }
  }

 private:
  bool supported(OpPlace at, DType t) {
    const Op& op = program_.blocks[at.block].ops[at.op];
    const auto& rates = run_.system.chip.tensor.macs_per_pe_cycle;
    const bool matmul = std::holds_alternative<trace::Gemm>(op.body) ||
                        std::holds_alternative<trace::Attention>(op.body) ||
                        std::holds_alternative<trace::Scan>(op.body);
    if (!matmul || rates[static_cast<std::size_t>(t)] > 0) return true;
    if (const auto* g = std::get_if<trace::Gemm>(&op.body);
        g != nullptr && !precision_.keeps_dtype(at, *g) && precision_.refused())
      return false;
    std::string known;
    for (std::size_t i = 0; i < base::kDTypes; ++i)
      if (rates[i] > 0)
        known +=
            std::string(known.empty() ? "" : ", ") + std::string(base::name(static_cast<DType>(i)));
    problems_.add(place(op), fmt::format("{} cannot multiply {}; it has {}", run_.system.chip.name,
                                         base::name(t), known));
    return false;
  }

  [[nodiscard]] std::string place(const Op& op) const {
    return fmt::format("{}:{}", program_.file.string(), op.line);
  }

  DType dtype(const std::optional<DType>& t) const { return t.value_or(program_.header.dtype); }

  // False if the op needs no kernel.
  bool kernel_of(const trace::Block& block, std::size_t index, KernelSpec& spec) {
    const Op& op = block.ops[index];
    const RankPlace& where = plan_.places.front();
    spec.cores = where.cores;
    spec.flash = run_.compile.flash_attention;
    spec.fast_exponential = run_.compile.fast_exponential;
    spec.fusion = run_.compile.fusion;
    spec.memory_reuse = run_.compile.memory_reuse;
    spec.double_accumulators = run_.compile.double_accumulators;
    spec.streaming_loads = run_.compile.streaming_loads;
    if (const auto* g = std::get_if<trace::Gemm>(&op.body)) {
      gemm({block_, index}, *g, where.stacks, spec);
      add_epilogues(block, index, where.stacks, spec);
      return true;
    }
    if (const auto* a = std::get_if<trace::Attention>(&op.body)) {
      attention(*a, where.stacks, spec);
      return true;
    }
    if (const auto* v = std::get_if<trace::Vec>(&op.body)) {
      vector(*v, where.stacks, spec);
      add_joined(block, index, where.stacks, spec);
      return true;
    }
    if (const auto* s = std::get_if<trace::Scan>(&op.body)) {
      spec.kind = KernelKind::Scan;
      spec.batch = s->b;
      spec.m = share(s->channels, where.stacks);
      spec.n = s->state;
      spec.k = s->seq;
      spec.in = spec.out = dtype(s->dtype);
      return true;
    }
    return false;
  }

  void gemm(OpPlace at, const trace::Gemm& g, std::int64_t stacks, KernelSpec& spec) const {
    const bool keeps = precision_.keeps_dtype(at, g);
    spec.kind = KernelKind::Gemm;
    spec.m = g.m;
    spec.n = g.n;
    spec.k = g.k;
    spec.batch = g.batch;
    if (g.batch % stacks == 0)
      spec.batch = g.batch / stacks;
    else if (g.n >= g.m)
      spec.n = share(g.n, stacks);
    else
      spec.m = share(g.m, stacks);
    spec.in = keeps ? *g.dtype : program_.header.dtype;
    spec.out = g.out.value_or(spec.in);
    spec.accumulate = g.accumulate;
    spec.a_weight = g.a == trace::Role::Weight;
    spec.b_weight = g.b == trace::Role::Weight;
    lay_out(g, spec);
    if (!keeps) precision_.apply(at, g, spec);
  }

  // HBM keeps tensors by rows ([tokens, features], weights [in, out]). The contraction axis must be
  // on the partitions: it is not for activations and gradients on the left (X W, dY W^T), nor for
  // W^T. Products of two activations or gradients contract over the rows (dY^T X).
  static void lay_out(const trace::Gemm& g, KernelSpec& spec) {
    if (spec.in == DType::Mxfp8 || spec.in == DType::Mxfp4) return;  // quantised along it
    const bool over_rows = !spec.a_weight && !spec.b_weight;
    spec.a_transposed = !over_rows && !spec.a_weight;
    spec.b_transposed = spec.b_weight && g.a == trace::Role::Gradient;
  }

  void add_epilogues(const trace::Block& block, std::size_t index, std::int64_t stacks,
                     KernelSpec& spec) const {
    if (!run_.compile.fusion) return;
    for (const Op& op : block.ops) {
      const auto* v = std::get_if<trace::Vec>(&op.body);
      if (v != nullptr && v->fuse == static_cast<std::int32_t>(index))
        spec.epilogues.push_back({v->fn, share(v->elems, stacks)});
    }
  }

  // Vector ops that go on with the results in SBUF. Every result is stored for later readers, only
  // the loads of handed over tensors are saved.
  void add_joined(const trace::Block& block, std::size_t index, std::int64_t stacks,
                  KernelSpec& spec) const {
    for (std::size_t j = index + 1; j < block.ops.size(); ++j) {
      if (joins_[j] != static_cast<std::int32_t>(index)) continue;
      const auto& v = std::get<trace::Vec>(block.ops[j].body);
      const trace::VecFunction* f = trace::vec_function(v.fn);
      const std::int64_t tensor = base::storage_bytes(spec.in, v.elems);
      spec.epilogues.push_back({v.fn, share(v.elems, stacks)});
      spec.rd += share((f->inputs - 1) * tensor, stacks);
      spec.wr += share(f->outputs * tensor, stacks);
    }
  }

  void attention(const trace::Attention& a, std::int64_t stacks, KernelSpec& spec) const {
    spec.kind = a.backward ? KernelKind::AttentionBackward : KernelKind::AttentionForward;
    spec.batch = a.b;
    spec.heads = a.heads;
    spec.kv_heads = a.kv_heads;
    if (a.kv_heads % stacks == 0) {
      spec.heads = a.heads / stacks;
      spec.kv_heads = a.kv_heads / stacks;
    } else {
      spec.sq = share(a.sq, stacks);
    }
    spec.sq = spec.sq > 0 ? spec.sq : a.sq;
    spec.skv = a.skv;
    spec.d = a.d;
    spec.causal = a.causal;
    spec.in = spec.out = dtype(a.dtype);
  }

  void vector(const trace::Vec& v, std::int64_t stacks, KernelSpec& spec) const {
    spec.kind = KernelKind::Vector;
    spec.fn = v.fn;
    spec.elems = share(v.elems, stacks);
    spec.in = spec.out = dtype(v.dtype);
    const trace::VecFunction* f = trace::vec_function(v.fn);
    const std::int64_t tensor = base::storage_bytes(spec.in, v.elems);
    spec.rd = share(v.rd.value_or(f->inputs * tensor), stacks);
    spec.wr = share(v.wr.value_or(f->outputs * tensor), stacks);
    precision_.add_weight_copies(v, stacks, spec);
  }

  // Equal pieces, and one with the rest; bytes and elements add up exactly.
  void split(KernelSpec& spec, OpPlan& out) {
    const std::int64_t pieces = share(spec.rd + spec.wr, kMostBytes);
    if (pieces <= 1) return;
    KernelSpec rest = spec;
    spec.elems /= pieces;
    spec.rd = rest.rd / pieces;
    spec.wr = rest.wr / pieces;
    for (std::size_t i = 0; i < spec.epilogues.size(); ++i) {
      spec.epilogues[i].elems /= pieces;
      rest.epilogues[i].elems -= spec.epilogues[i].elems * (pieces - 1);
    }
    rest.elems -= spec.elems * (pieces - 1);
    rest.rd -= spec.rd * (pieces - 1);
    rest.wr -= spec.wr * (pieces - 1);
    if (rest == spec) {
      out.pieces = static_cast<std::int32_t>(pieces);
      return;
    }
    out.pieces = static_cast<std::int32_t>(pieces - 1);
    out.last_piece = kernel_index(rest);
  }

  void collective(const Op& op, const trace::Collective& c, OpPlan& out) {
    for (std::size_t s = 0; s < plan_.group_sets.size(); ++s)
      if (plan_.group_sets[s].name == c.group) out.collective = static_cast<std::int32_t>(s);
    TRN3SIM_CHECK(out.collective >= 0, "group set missing for " + op.id);
    const Choice choice = choose_way(c, plan_.group_sets[static_cast<std::size_t>(out.collective)],
                                     run_, plan_.places.front());
    out.way = choice.way;
    out.reason = choice.reason;
    const std::int64_t size = std::max(c.in, c.out);
    out.label = label_index(c.kind == trace::CollectiveKind::Barrier
                                ? fmt::format("barrier {}", c.group)
                                : fmt::format("{} {} {}", kind_name(c.kind), c.group,
                                              base::format_bytes(base::Bytes(size))));
  }

  std::int32_t kernel_index(const KernelSpec& spec) {
    const auto [it, added] =
        kernels_.try_emplace(spec, static_cast<std::int32_t>(plan_.kernels.size()));
    if (added) plan_.kernels.push_back(spec);
    return it->second;
  }

  std::int32_t label_index(const std::string& text) {
    const auto [it, added] =
        labels_.try_emplace(text, static_cast<std::int32_t>(plan_.labels.size()));
    if (added) plan_.labels.push_back(text);
    return it->second;
  }

  const trace::Program& program_;
  const config::RunSpec& run_;
  Plan& plan_;
  base::Problems& problems_;
  Precision precision_;
  std::size_t block_ = 0;            // at hand
  std::vector<std::int32_t> joins_;  // of the block at hand
  std::map<KernelSpec, std::int32_t> kernels_;
  std::map<std::string, std::int32_t> labels_;
};

}  // namespace

void lower_ops(const trace::Program& program, const config::RunSpec& run, Plan& plan,
               base::Problems& problems) {
  plan.ops.resize(program.blocks.size());
  Lowering lowering(program, run, plan, problems);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) lowering.block(b);
}

}  // namespace trn3sim::compile
