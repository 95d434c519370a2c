// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/compile/plan.hpp"

#include "collective_choice.hpp"
#include "length.hpp"
#include "lower.hpp"
#include "messages.hpp"
#include "precision.hpp"
#include "rings.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

std::int64_t ranks_per_chip(const config::ChipSpec& chip, base::RankUnit unit) {
  switch (unit) {
    case base::RankUnit::Chip:
      return 1;
    case base::RankUnit::LogicalCore:
      return chip.stacks;
    case base::RankUnit::Core:
      return chip.cores;
  }
  return 0;
}

RankPlace place_of(std::int64_t rank, base::RankUnit unit, const config::ChipSpec& chip,
                   const topology::Graph& graph) {
  const std::int64_t per_chip = ranks_per_chip(chip, unit);
  RankPlace p;
  p.chip = rank / per_chip;
  const std::int64_t slot = rank % per_chip;
  p.stacks = unit == base::RankUnit::Chip ? chip.stacks : 1;
  p.cores = unit == base::RankUnit::Core ? 1 : chip.cores_per_stack();
  p.first_stack = unit == base::RankUnit::Chip ? 0 : slot * chip.stacks / per_chip;
  for (std::int64_t s = 0; s < p.stacks; ++s)
    p.nodes.push_back(graph.stack(p.chip, p.first_stack + s));
  return p;
}

// HBM bytes that a rank may use.
std::int64_t rank_capacity(const RankPlace& p, base::RankUnit unit, const config::ChipSpec& chip) {
  const std::int64_t stack = chip.hbm.capacity.count();
  const std::int64_t sharers = unit == base::RankUnit::Core ? chip.cores_per_stack() : 1;
  return p.stacks * (stack / sharers - chip.hbm.reserved.count() * p.cores);
}

void check_memory(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
                  base::Problems& problems) {
  const base::RankUnit unit = program.header.rank_unit;
  base::Problems found;  // lower_ops reports them
  const std::int64_t copies = Precision(program, run, found).weight_copy_bytes();
  for (std::size_t r = 0; r < plan.places.size(); ++r) {
    const std::int64_t need =
        trace::peak_memory_bytes(program, static_cast<std::int64_t>(r)) + copies;
    const std::int64_t have = rank_capacity(plan.places[r], unit, run.system.chip);
    if (need <= have) continue;
    problems.add(
        program.file.string(),
        fmt::format(
            "does not fit in HBM: rank {} needs {} ({} bytes) but a {} of {} has {} "
            "({} bytes); use more ranks per model (larger tp, pp or dp) or a smaller micro-batch",
            r, base::format_bytes(base::Bytes(need)), need, base::name(unit), run.system.chip.name,
            base::format_bytes(base::Bytes(have)), have));
    return;  // one rank tells it all
  }
}

bool uses_pairs(const trace::Program& program, const GroupSet& set, const config::RunSpec& run) {
  const auto members = static_cast<std::int64_t>(set.groups.front().members.size());
  for (const trace::Block& block : program.blocks)
    for (const trace::Op& op : block.ops) {
      const auto* c = std::get_if<trace::Collective>(&op.body);
      if (c == nullptr || c->group != set.name) continue;
      if (c->kind == trace::CollectiveKind::AllToAll ||
          allowed_way(*c, members, run).way != Way::Ring)
        return true;
    }
  return false;
}

// Bytes that the largest step of the group's collectives sends around one ring.
base::Bytes largest_step(const trace::Program& program, const GroupSet& set) {
  CollectiveShape shape;
  shape.members = static_cast<std::int64_t>(set.groups.front().members.size());
  base::Bytes largest(1);
  for (const trace::Block& block : program.blocks)
    for (const trace::Op& op : block.ops)
      if (const auto* c = std::get_if<trace::Collective>(&op.body); c && c->group == set.name)
        largest = std::max(largest, collective_program(*c, shape).parts[0].bytes);
  return largest;
}

GroupSet make_groups(const trace::Program& program, const trace::Collective& c) {
  GroupSet set;
  set.name = c.group;
  const auto ranks = static_cast<std::size_t>(program.header.mesh.ranks());
  set.group_of_rank.resize(ranks);
  set.position_of_rank.resize(ranks);
  for (std::vector<std::int64_t>& members : program.header.mesh.groups(c.axes)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      set.group_of_rank[static_cast<std::size_t>(members[i])] =
          static_cast<std::int32_t>(set.groups.size());
      set.position_of_rank[static_cast<std::size_t>(members[i])] = static_cast<std::int32_t>(i);
    }
    GroupPlan plan;
    plan.name = c.group;
    plan.members = std::move(members);
    set.groups.push_back(std::move(plan));
  }
  return set;
}

void make_group_sets(const trace::Program& program, const config::RunSpec& run, RouteCache& routes,
                     Plan& plan) {
  const Embedding embedding{plan.places, routes, run.system.chip};
  const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(run.collectives.rings, 4));
  for (const trace::Block& block : program.blocks)
    for (const trace::Op& op : block.ops) {
      const auto* c = std::get_if<trace::Collective>(&op.body);
      if (c == nullptr) continue;
      const bool known = std::any_of(plan.group_sets.begin(), plan.group_sets.end(),
                                     [&](const GroupSet& s) { return s.name == c->group; });
      if (known) continue;
      GroupSet set = make_groups(program, *c);
      embed_rings(set, embedding, most, largest_step(program, set));
      if (uses_pairs(program, set, run)) embed_pairs(set, embedding);
      plan.group_sets.push_back(std::move(set));
    }
}

}  // namespace

Plan place(const trace::Program& program, const topology::Graph& graph,
           const config::RunSpec& run) {
  const config::ChipSpec& chip = run.system.chip;
  const base::RankUnit unit = program.header.rank_unit;
  const std::int64_t ranks = program.header.mesh.ranks();
  const std::int64_t room = graph.chips() * ranks_per_chip(chip, unit);
  if (ranks > room)
    throw base::UserError(
        program.file.string() + ":1",
        fmt::format(
            "the trace has {} ranks, each a {}, but {} has {} chip{} with {} each = {}; use a "
            "larger system or a trace for {} ranks",
            ranks, base::name(unit), run.config_file.filename().string(), graph.chips(),
            graph.chips() == 1 ? "" : "s", ranks_per_chip(chip, unit), room, room));
  Plan plan;
  for (std::int64_t r = 0; r < ranks; ++r) plan.places.push_back(place_of(r, unit, chip, graph));
  plan.memory_capacity = rank_capacity(plan.places.front(), unit, chip);
  base::Problems problems;
  check_memory(program, run, plan, problems);
  RouteCache routes(graph);
  make_group_sets(program, run, routes, plan);
  route_messages(program, routes, plan, problems);
  check_members(program, plan, problems);
  check_length(program, run, plan, problems);
  lower_ops(program, run, plan, problems);
  problems.throw_if_any();
  return plan;
}

}  // namespace trn3sim::compile
