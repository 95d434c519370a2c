// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A workload placed on a machine: which cores each rank has, which kernel each op becomes, and how
// each group's collectives run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/topology/graph.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

// Work of one rank, one op after another, that a run accepts, in seconds. Simulated time ends at
// 9,223 s (int64 femtoseconds); the rest is room for waiting.
inline constexpr double kMostSeconds = 5000;

// Cores of one rank: `stacks` consecutive HBM stacks of a chip, `cores` cores on each.
struct RankPlace {
  std::int64_t chip = 0, first_stack = 0, stacks = 1, cores = 1;
  std::vector<topology::NodeId> nodes;  // its stacks; the first one is the rank's port for messages
};

// A directed ring through the members of one group.
struct Ring {
  std::vector<std::int64_t> order;    // positions in GroupPlan::members, in ring order
  std::vector<topology::Route> hops;  // from order[i] to order[i+1 mod n]
};

struct GroupPlan {
  std::string name;                          // "tp"
  std::vector<std::int64_t> members;         // ranks, ascending
  std::vector<Ring> rings;                   // one
  std::vector<topology::Route> pair_routes;  // [from position x n + to position]; only where needed
  std::string worst_link;                    // slowest link of the rings, after sharing
};

// What one op of a block becomes.
struct OpPlan {
  std::int32_t kernel = -1;      // index into Plan::kernels; -1: no kernel (fused, collective, ...)
  std::int32_t pieces = 1;       // executions of the kernel, one after another
  std::int32_t last_piece = -1;  // another kernel for what is left after them, or -1
  bool fused = false;            // runs inside another op's kernel: completes with it
  std::int32_t collective = -1;  // index into Plan::group_sets
  std::int32_t label = -1;       // index into Plan::labels, for reports
};

// All groups along one set of mesh axes.
struct GroupSet {
  std::string name;
  std::string worst_link;  // of all its groups' rings
  std::vector<GroupPlan> groups;
  std::vector<std::int32_t> group_of_rank;     // index into groups
  std::vector<std::int32_t> position_of_rank;  // index into members
};

struct Plan {
  std::vector<RankPlace> places;         // by rank
  std::int64_t memory_capacity = 0;      // HBM bytes that one rank may use
  std::vector<KernelSpec> kernels;       // distinct
  std::vector<std::vector<OpPlan>> ops;  // [block][op]
  std::vector<GroupSet> group_sets;
  std::vector<std::string> labels;
  std::map<std::pair<std::int64_t, std::int64_t>, topology::Route>
      message_routes;  // of send ops, by ranks
};

// The workload as compiled: with `overlap_collectives`, all-gathers before and reduce-scatters
// after a GEMM run in chunks with a piece of the GEMM each; sums of FLOP, bytes and elements stay.
// Without `flash_attention`, the probabilities of the forward pass live until the backward pass.
trace::Program rewrite(trace::Program program, const config::CompileSpec& compile);

// Places ranks (neighbours on the innermost mesh axis share a chip), chooses kernels and embeds
// rings. Throws base::UserError: more ranks than the machine has cores for, a workload that does
// not fit in HBM (with bytes needed and there), formats the chip lacks, unreachable ranks.
Plan place(const trace::Program& program, const topology::Graph& graph, const config::RunSpec& run);

}  // namespace trn3sim::compile
