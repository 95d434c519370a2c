// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "merge.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using trace::Collective;
using trace::CollectiveKind;
using trace::Op;

const Collective* gather(const Op& op) {
  const auto* c = std::get_if<Collective>(&op.body);
  return c != nullptr && c->kind == CollectiveKind::AllGather ? c : nullptr;
}

bool joins(const Op& first, const Op& next) {
  const Collective *a = gather(first), *b = gather(next);
  return a != nullptr && b != nullptr && a->group == b->group && a->dtype == b->dtype &&
         first.deps == next.deps && first.when == next.when && first.recompute == next.recompute &&
         a->out + b->out <= kMergedBytes;
}

void append(Op& first, const Op& next) {
  auto& c = std::get<Collective>(first.body);
  const auto& more = std::get<Collective>(next.body);
  c.in += more.in;
  c.out += more.out;
  first.alloc += next.alloc;
  first.free += next.free;
  first.id = fmt::format("{}+{}", first.id, next.id);
}

// Each index once, in the order of the first.
std::vector<std::int32_t> renumbered(const std::vector<std::int32_t>& indices,
                                     const std::vector<std::int32_t>& place) {
  std::vector<std::int32_t> out;
  std::set<std::int32_t> seen;
  for (const std::int32_t i : indices) {
    const std::int32_t to = i == trace::kEntry ? i : place[static_cast<std::size_t>(i)];
    if (seen.insert(to).second) out.push_back(to);
  }
  return out;
}

void merge(trace::Block& block) {
  std::vector<Op> ops;
  std::vector<std::int32_t> place;
  for (Op& op : block.ops) {
    op.deps = renumbered(op.deps, place);
    if (auto* v = std::get_if<trace::Vec>(&op.body); v != nullptr && v->fuse >= 0)
      v->fuse = place[static_cast<std::size_t>(v->fuse)];
    if (!ops.empty() && joins(ops.back(), op))
      append(ops.back(), op);
    else
      ops.push_back(std::move(op));
    place.push_back(static_cast<std::int32_t>(ops.size()) - 1);
  }
  block.out = renumbered(block.out, place);
  block.ops = std::move(ops);
}

}  // namespace

void merge_gathers(trace::Program& program) {
  for (trace::Block& block : program.blocks) merge(block);
}

}  // namespace trn3sim::compile
