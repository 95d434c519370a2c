// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/quantity.hpp"
#include "trn3sim/trace/program.hpp"

#include "trace/activation.hpp"
#include "trace/nested.hpp"
#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

constexpr std::size_t kLeafKinds = 10;
constexpr std::array<std::string_view, kLeafKinds> kKindNames = {
    "gemm", "attn", "vec", "scan", "coll", "send", "recv", "mem", "delay", "opaque"};

std::size_t kind_index(const Body& body) {
  // The alternatives of Body in order, with PointToPoint split into send and recv.
  const std::size_t at = body.index();
  constexpr std::size_t kSend = 5;
  if (const auto* p = std::get_if<PointToPoint>(&body)) return p->send ? kSend : kSend + 1;
  return at < kSend ? at : at + 1;
}

// One matrix product of an attention: scores, or probabilities times values.
double attention_product(const Attention& a) {
  return 2.0 * static_cast<double>(a.b) * static_cast<double>(a.heads) * static_cast<double>(a.sq) *
         static_cast<double>(a.skv) * static_cast<double>(a.d);
}

double work(const Op& op, bool causal_as_half) {
  if (const auto* g = std::get_if<Gemm>(&op.body))
    return 2.0 * static_cast<double>(g->m) * static_cast<double>(g->n) * static_cast<double>(g->k) *
           static_cast<double>(g->batch);
  if (const auto* a = std::get_if<Attention>(&op.body)) {
    const double full = attention_product(*a) * (a->backward ? 4 : 2);
    return a->causal && causal_as_half ? full / 2 : full;
  }
  if (const auto* o = std::get_if<Opaque>(&op.body)) return static_cast<double>(o->flop);
  return 0;
}

// Sums that may pass 64 bits while loops are multiplied out.
struct GroupSum {
  CollectiveKind kind;
  std::string group, phase;
  Int128 count = 0, in = 0, out = 0;
};
struct PhaseSum {
  std::string phase;
  std::int64_t ops = 0;
  double full = 0, causal = 0, recompute = 0;
};
struct Sum {
  bool done = false;
  std::vector<PhaseSum> phases;
  std::vector<GroupSum> groups;
  std::array<std::int64_t, kLeafKinds> kinds{};
};

PhaseSum& phase_of(Sum& sum, const std::string& phase) {
  for (PhaseSum& p : sum.phases)
    if (p.phase == phase) return p;
  sum.phases.push_back({.phase = phase});
  return sum.phases.back();
}

GroupSum& group_of(Sum& sum, CollectiveKind kind, const std::string& group,
                   const std::string& phase) {
  for (GroupSum& g : sum.groups)
    if (g.kind == kind && g.group == group && g.phase == phase) return g;
  sum.groups.push_back({.kind = kind, .group = group, .phase = phase});
  return sum.groups.back();
}

// Totals per block, computed once each. Within a block's sum the phase "" stands for the caller's.
class Summer {
 public:
  Summer(const Program& program, std::int64_t rank)
      : program_(program), rank_(rank), sums_(program.blocks.size()) {}

  const Sum& of(std::int32_t block) {
    Sum& sum = sums_[static_cast<std::size_t>(block)];
    if (sum.done) return sum;
    const Block& b = program_.blocks[static_cast<std::size_t>(block)];
    for (const Op& op : b.ops) {
      if (!runs_on(program_, op, rank_)) continue;
      const Nested nested = nested_of(op);
      if (nested.block >= 0)
        merge(sum, of(nested.block), nested.times, b.phase);
      else
        leaf(sum, op, b.phase);
    }
    sum.done = true;
    return sum;
  }

 private:
  static void leaf(Sum& sum, const Op& op, const std::string& phase) {
    PhaseSum& p = phase_of(sum, phase);
    ++p.ops;
    p.full += flop_full(op);
    p.causal += flop_causal(op);
    p.recompute += flop_recompute(op);
    ++sum.kinds[kind_index(op.body)];
    if (const auto* c = std::get_if<Collective>(&op.body)) {
      GroupSum& g = group_of(sum, c->kind, c->group, phase);
      ++g.count;
      g.in += c->in;
      g.out += c->out;
    }
  }

  static void merge(Sum& sum, const Sum& inner, std::int64_t times, const std::string& phase) {
    const double factor = static_cast<double>(times);
    for (const PhaseSum& from : inner.phases) {
      PhaseSum& to = phase_of(sum, from.phase.empty() ? phase : from.phase);
      to.ops += from.ops * times;
      to.full += from.full * factor;
      to.causal += from.causal * factor;
      to.recompute += from.recompute * factor;
    }
    for (const GroupSum& from : inner.groups) {
      GroupSum& to = group_of(sum, from.kind, from.group, from.phase.empty() ? phase : from.phase);
      to.count += from.count * times;
      to.in += from.in * times;
      to.out += from.out * times;
    }
    for (std::size_t k = 0; k < sum.kinds.size(); ++k) sum.kinds[k] += inner.kinds[k] * times;
  }

  const Program& program_;
  std::int64_t rank_;
  std::vector<Sum> sums_;
};

std::int64_t narrow(Int128 value, const Program& program, std::string_view what) {
  if (value > std::numeric_limits<std::int64_t>::max())
    throw base::UserError(program.file.string(),
                          fmt::format("the {} of one rank do not fit in 64 bits", what));
  return static_cast<std::int64_t>(value);
}

struct Live {
  bool done = false;
  Int128 net = 0, peak = 0, lowest = 0;
};

class LiveRange {
 public:
  LiveRange(const Program& program, std::int64_t rank)
      : program_(program), rank_(rank), blocks_(program.blocks.size()) {}

  const Live& of(std::int32_t block) {
    Live& live = blocks_[static_cast<std::size_t>(block)];
    if (live.done) return live;
    for (const Op& op : program_.blocks[static_cast<std::size_t>(block)].ops) {
      if (!runs_on(program_, op, rank_)) continue;
      live.net += op.alloc;
      live.peak = std::max(live.peak, live.net);
      const Nested nested = nested_of(op);
      if (nested.block >= 0) {
        const Live& inner = of(nested.block);
        // Of the iterations, the last one climbs highest if each leaves bytes behind, else the
        // first.
        const Int128 before_last = inner.net * (nested.times - 1);
        live.peak = std::max(live.peak, live.net + std::max(inner.peak, before_last + inner.peak));
        live.lowest =
            std::min(live.lowest, live.net + std::min(inner.lowest, before_last + inner.lowest));
        live.net += inner.net * nested.times;
      }
      live.net -= op.free;
      live.lowest = std::min(live.lowest, live.net);
    }
    live.done = true;
    return live;
  }

 private:
  const Program& program_;
  std::int64_t rank_;
  std::vector<Live> blocks_;
};

}  // namespace

double flop_full(const Op& op) {
  return op.recompute ? 0 : work(op, false);
}
double flop_causal(const Op& op) {
  return op.recompute ? 0 : work(op, true);
}

double flop_recompute(const Op& op) {
  const auto* a = std::get_if<Attention>(&op.body);
  const double scores = a != nullptr && a->backward ? attention_product(*a) : 0;
  return (op.recompute ? work(op, false) : 0) + scores;
}

ActivationRange activation_range(const Program& program, std::int64_t rank) {
  const Live live = LiveRange(program, rank).of(0);
  constexpr Int128 kMax = std::numeric_limits<std::int64_t>::max();
  if (live.peak > kMax || live.lowest < -kMax || live.net > kMax) return {.fits = false};
  return {static_cast<std::int64_t>(live.net), static_cast<std::int64_t>(live.peak),
          static_cast<std::int64_t>(live.lowest), true};
}

std::vector<std::int64_t> representative_ranks(const Program& program) {
  const base::Mesh& mesh = program.header.mesh;
  std::vector<std::set<std::int64_t>> named(mesh.axes().size());
  for (const Block& block : program.blocks)
    for (const Op& op : block.ops)
      for (const auto& [axis, coordinate] : op.when)
        named[static_cast<std::size_t>(axis)].insert(coordinate);
  std::vector<std::int64_t> ranks{0};
  for (std::size_t axis = 0; axis < named.size(); ++axis) {
    std::set<std::int64_t> coordinates = named[axis];
    std::int64_t other = 0;
    while (coordinates.contains(other)) ++other;
    if (other < mesh.axes()[axis].size) coordinates.insert(other);
    std::vector<std::int64_t> next;
    for (std::int64_t rank : ranks)
      for (std::int64_t c : coordinates)
        next.push_back(mesh.with_coordinate(rank, static_cast<int>(axis), c));
    ranks = std::move(next);
  }
  return ranks;
}

Totals scan(const Program& program, std::int64_t rank) {
  Summer summer(program, rank);
  const Sum& sum = summer.of(0);
  Totals totals;
  for (const PhaseSum& p : sum.phases) {
    totals.phases.push_back({p.phase, p.ops, p.full, p.causal, p.recompute});
    totals.ops += p.ops;
    totals.model_flop += p.full;
    totals.model_flop_causal += p.causal;
    totals.recompute_flop += p.recompute;
  }
  for (const GroupSum& g : sum.groups)
    totals.collectives.push_back({std::string(collective_name(g.kind)), g.group,
                                  narrow(g.count, program, "collectives"),
                                  narrow(g.in, program, "input bytes of collectives"),
                                  narrow(g.out, program, "output bytes of collectives"), g.phase});
  for (std::size_t k = 0; k < sum.kinds.size(); ++k)
    if (sum.kinds[k] > 0) totals.ops_by_kind.emplace_back(kKindNames[k], sum.kinds[k]);
  totals.activation_peak_bytes = activation_range(program, rank).peak;
  return totals;
}

std::int64_t peak_memory_bytes(const Program& program, std::int64_t rank) {
  Int128 bytes = activation_range(program, rank).peak;
  for (const MemoryEntry& entry : program.header.memory) bytes += entry.bytes;
  return narrow(bytes, program, "bytes of memory");
}

double sum_over_ops(const Program& program, std::int64_t rank,
                    const std::function<double(std::int32_t block, std::int32_t op)>& cost) {
  // Blocks are defined before they are called, so a block's sum is there when it is needed; the top
  // level, block 0, comes last.
  std::vector<double> sums(program.blocks.size(), 0);
  const auto sum_up = [&](std::size_t b) {
    const Block& block = program.blocks[b];
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      if (rank >= 0 && !runs_on(program, block.ops[i], rank)) continue;
      const Nested nested = nested_of(block.ops[i]);
      sums[b] += nested.block < 0 ? cost(static_cast<std::int32_t>(b), static_cast<std::int32_t>(i))
                                  : static_cast<double>(nested.times) *
                                        sums[static_cast<std::size_t>(nested.block)];
    }
  };
  for (std::size_t b = 1; b < program.blocks.size(); ++b) sum_up(b);
  sum_up(0);
  return sums[0];
}

}  // namespace trn3sim::trace
