// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "collective_choice.hpp"

#include <algorithm>

namespace trn3sim::compile {
namespace {

using trace::CollectiveKind;

base::Time time_of(const trace::Collective& c, const GroupSet& set, const config::RunSpec& run,
                   const RankPlace& place, Way way) {
  const CollectiveProgram p =
      collective_program(c, shape_of(set, set.groups.front().members.front(), way));
  const config::ChipSpec& chip = run.system.chip;
  return expected_time(
      p, way == Way::Ring ? set.ring : set.mesh, chip,
      dma_rate(chip, place,
               c.kind == CollectiveKind::AllReduce || c.kind == CollectiveKind::ReduceScatter));
}

}  // namespace

Choice allowed_way(const trace::Collective& c, std::int64_t members, const config::RunSpec& run) {
  const config::CollectiveSpec& limits = run.system.chip.collectives;
  const std::string& algorithm = run.collectives.algorithm;
  if (members == 1 || c.kind == CollectiveKind::Broadcast) return {};
  if (algorithm == "ring") return {Way::Ring, "asked for"};
  if (members > limits.mesh_ranks) return {Way::Ring, "group above mesh_ranks"};
  if (algorithm == "mesh") return {Way::Mesh, "asked for"};
  if (std::max(c.in, c.out) > limits.mesh_limit.count()) return {Way::Ring, "above mesh_limit"};
  return {Way::Mesh, "up to mesh_limit"};
}

Choice choose_way(const trace::Collective& c, const GroupSet& set, const config::RunSpec& run,
                  const RankPlace& place) {
  const auto members = static_cast<std::int64_t>(set.groups.front().members.size());
  Choice choice = allowed_way(c, members, run);
  if (choice.way == Way::Ring) return choice;
  base::Time mesh = time_of(c, set, run, place, Way::Mesh);
  if (c.kind == CollectiveKind::AllReduce) {
    const base::Time one_step = time_of(c, set, run, place, Way::OneStep);
    if (one_step < mesh) {
      choice.way = Way::OneStep;
      mesh = one_step;
    }
  }
  const bool asked = run.collectives.algorithm == "mesh";
  if (asked || c.kind == CollectiveKind::AllToAll)
    return choice;  // the rounds of the same messages
  if (time_of(c, set, run, place, Way::Ring) < mesh) return {Way::Ring, "faster than mesh"};
  return choice;
}

}  // namespace trn3sim::compile
