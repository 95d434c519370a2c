// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "overlap.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using trace::Collective;
using trace::CollectiveKind;
using trace::Gemm;
using trace::Op;

constexpr std::int64_t kChunks = 4;
constexpr std::int64_t kLeastRows = 512;  // of a piece: one moving tile

// Rows times a weight, not added to earlier results.
const Gemm* row_gemm(const Op& op) {
  const auto* g = std::get_if<Gemm>(&op.body);
  const bool rows = g != nullptr && g->b == trace::Role::Weight && g->a != trace::Role::Weight &&
                    !g->accumulate && g->batch == 1;
  return rows && g->m % kChunks == 0 && g->m / kChunks >= kLeastRows ? g : nullptr;
}

const Collective* collective(const Op& op, CollectiveKind kind) {
  const auto* c = std::get_if<Collective>(&op.body);
  return c != nullptr && c->kind == kind && c->in % kChunks == 0 && c->out % kChunks == 0 ? c
                                                                                          : nullptr;
}

class Overlap {
 public:
  explicit Overlap(trace::Program& program) : program_(program) {
    for (const trace::Block& block : program.blocks) find_groups(block);
  }

  void block(trace::Block& block) {
    block_ = &block;
    pieces_.assign(block.ops.size(), false);
    for (std::size_t i = 0; i < block.ops.size(); ++i) choose(i);
    for (std::size_t i = 0; i < block.ops.size(); ++i) {  // epilogues go with their GEMM
      const auto* v = std::get_if<trace::Vec>(&block.ops[i].body);
      if (v != nullptr && v->fuse >= 0) pieces_[i] = pieces_[static_cast<std::size_t>(v->fuse)];
    }
    if (std::find(pieces_.begin(), pieces_.end(), true) != pieces_.end()) rewrite(block);
  }

 private:
  [[nodiscard]] std::int64_t bytes(const Gemm& g, std::int64_t elements, bool out) const {
    const base::DType in = g.dtype.value_or(program_.header.dtype);
    return base::storage_bytes(out ? g.out.value_or(in) : in, elements);
  }
  [[nodiscard]] bool feeds(const Op& from, const Op& to) const {
    const Collective* c = collective(from, CollectiveKind::AllGather);
    const Gemm* g = row_gemm(to);
    return c != nullptr && g != nullptr && groups_.contains(c->group) &&
           c->out == bytes(*g, g->m * g->k, false) && from.when == to.when;
  }
  [[nodiscard]] bool takes(const Op& from, const Op& to) const {
    const Collective* c = collective(to, CollectiveKind::ReduceScatter);
    const Gemm* g = row_gemm(from);
    return c != nullptr && g != nullptr && to.deps.size() == 1 &&
           c->in == bytes(*g, g->m * g->n, true) && from.when == to.when;
  }

  // Tensor-parallel groups add up the results of such GEMMs; others may gather weights.
  void find_groups(const trace::Block& block) {
    for (const Op& op : block.ops)
      for (const std::int32_t d : op.deps)
        if (d >= 0 && takes(block.ops[static_cast<std::size_t>(d)], op))
          groups_.insert(std::get<Collective>(op.body).group);
  }

  // A GEMM whose epilogues do not divide stays whole.
  [[nodiscard]] bool divides(std::size_t gemm) const {
    return std::ranges::all_of(block_->ops, [&](const Op& op) {
      const auto* v = std::get_if<trace::Vec>(&op.body);
      return v == nullptr || v->fuse != static_cast<std::int32_t>(gemm) ||
             (v->elems % kChunks == 0 && !v->rd && !v->wr);
    });
  }

  void choose(std::size_t i) {
    const Op& op = block_->ops[i];
    for (const std::int32_t d : op.deps) {
      if (d < 0) continue;
      const auto from = static_cast<std::size_t>(d);
      const bool in = feeds(block_->ops[from], op), out = takes(block_->ops[from], op);
      if ((in && divides(i)) || (out && divides(from))) pieces_[from] = pieces_[i] = true;
    }
  }

  // New indices of an op: one, or one per chunk.
  using Places = std::vector<std::vector<std::int32_t>>;

  void rewrite(trace::Block& block) const {
    Places places(block.ops.size());
    std::vector<Op> ops;
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      const std::int64_t count = pieces_[i] ? kChunks : 1;
      for (std::int64_t c = 0; c < count; ++c) {
        places[i].push_back(static_cast<std::int32_t>(ops.size()));
        ops.push_back(piece(block.ops[i], pieces_[i] ? c : -1, places));
      }
    }
    std::vector<std::int32_t> out;
    for (const std::int32_t o : block.out) {
      const auto& all = places[static_cast<std::size_t>(o)];
      out.insert(out.end(), all.begin(), all.end());
    }
    block.ops = std::move(ops);
    block.out = std::move(out);
  }

  // `chunk` -1: the whole op, which waits for all pieces of others. A piece waits for the same
  // piece of others: all cuts are along the same rows.
  static Op piece(const Op& op, std::int64_t chunk, const Places& places) {
    Op out = op;
    out.deps.clear();
    for (const std::int32_t d : op.deps) {
      if (d == trace::kEntry) {
        out.deps.push_back(d);
        continue;
      }
      const auto& all = places[static_cast<std::size_t>(d)];
      if (chunk >= 0 && all.size() > 1)
        out.deps.push_back(all[static_cast<std::size_t>(chunk)]);
      else
        out.deps.insert(out.deps.end(), all.begin(), all.end());
    }
    if (chunk < 0) {
      if (auto* v = std::get_if<trace::Vec>(&out.body); v != nullptr && v->fuse >= 0)
        v->fuse = places[static_cast<std::size_t>(v->fuse)].back();
      return out;
    }
    out.id = fmt::format("{}.{}", op.id, chunk);
    out.whole = op.id;
    if (chunk > 0) out.alloc = 0;
    if (chunk + 1 < kChunks) out.free = 0;
    if (auto* g = std::get_if<Gemm>(&out.body)) g->m /= kChunks;
    if (auto* c = std::get_if<Collective>(&out.body)) {
      c->in /= kChunks;
      c->out /= kChunks;
    }
    if (auto* v = std::get_if<trace::Vec>(&out.body)) {
      v->elems /= kChunks;
      v->fuse = places[static_cast<std::size_t>(v->fuse)][static_cast<std::size_t>(chunk)];
    }
    return out;
  }

  trace::Program& program_;
  std::set<std::string> groups_;
  const trace::Block* block_ = nullptr;
  std::vector<bool> pieces_;  // ops that are cut
};

}  // namespace

void overlap_collectives(trace::Program& program) {
  Overlap overlap(program);
  for (trace::Block& block : program.blocks) overlap.block(block);
}

}  // namespace trn3sim::compile
