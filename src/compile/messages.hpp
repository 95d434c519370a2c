// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of who talks to whom, before anything runs.
#pragma once

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/plan.hpp"

#include "rings.hpp"

namespace trn3sim::compile {

// Fills Plan::message_routes for every send and recv. A peer outside the mesh, or itself, is a
// problem.
void route_messages(const trace::Program& program, RouteCache& routes, Plan& plan,
                    base::Problems& problems);

// All members of a group must run the same collectives in the same order; the first difference is
// reported with both lines.
void check_members(const trace::Program& program, const Plan& plan, base::Problems& problems);

}  // namespace trn3sim::compile
