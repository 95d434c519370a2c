// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm a collective runs, and why.
#pragma once

#include "trn3sim/compile/collective.hpp"
#include "trn3sim/config/run_spec.hpp"

namespace trn3sim::compile {

struct Choice {
  Way way = Way::Ring;
  const char* reason = "";
};

// Whether the collective may run as a mesh in a group of `members`: asked for, or not larger than
// chip.collectives.mesh_limit, and not more members than mesh_ranks.
Choice allowed_way(const trace::Collective& collective, std::int64_t members,
                   const config::RunSpec& run);

// The way of a collective. Where a mesh is allowed and not asked for, it must be expected to be no
// slower than rings. An all-reduce takes the faster of its two kinds of mesh.
Choice choose_way(const trace::Collective& collective, const GroupSet& set,
                  const config::RunSpec& run, const RankPlace& place);

}  // namespace trn3sim::compile
