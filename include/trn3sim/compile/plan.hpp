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
  std::vector<std::int64_t> place;    // [position]: its index in order
};

// How the members of a group exchange data.
enum class Way : std::uint8_t {
  Ring,     // to the next of a ring; all-to-all in rounds, broadcast as a pipeline
  Mesh,     // to all others at once; an all-reduce in two such steps
  OneStep,  // all-reduce: the whole buffer to all others at once
};

// What bounds direct messages between the members of a group, by what they have in common.
struct PairBounds {
  std::vector<std::pair<base::Time, base::Rate>> hops;  // latency and bottleneck (0: no link)
  // Of each member: links by which messages reach it, and the bandwidth of the fastest (0: no
  // limit).
  std::vector<std::pair<std::int64_t, base::Rate>> entries;
  std::vector<base::Rate> carried;  // by position: what its routes carry together; 0: no limit
};

struct GroupPlan {
  std::string name;                          // "tp"
  std::vector<std::int64_t> members;         // ranks, ascending
  std::vector<Ring> rings;                   // link-disjoint; each carries its part of the data
  std::vector<topology::Route> pair_routes;  // [from position x n + to position]; only where needed
  PairBounds pairs;                          // of pair_routes
  std::string worst_link;                    // slowest link of the rings, after sharing
};

// What messages find when all members of all groups of a set send.
struct Exchange {
  std::int64_t exits = 1;  // links by which the messages of one member leave at once, at most
  base::Time latency;      // of the longest route; of rings the mean, as each part visits all hops
  base::Rate rate;         // least bandwidth of a link per message that crosses it; 0: no link
  std::string worst_link;  // the one with the least
};

// What one op of a block becomes.
struct OpPlan {
  std::int32_t kernel = -1;      // index into Plan::kernels; -1: no kernel (fused, collective, ...)
  std::int32_t pieces = 1;       // executions of the kernel, one after another
  std::int32_t last_piece = -1;  // another kernel for what is left after them, or -1
  bool fused = false;            // runs inside another op's kernel: completes with it
  std::int32_t collective = -1;  // index into Plan::group_sets
  std::int32_t label = -1;       // index into Plan::labels, for reports
  Way way = Way::Ring;           // of a collective
  const char* reason = "";       // why that way, for reports
};

// All groups along one set of mesh axes.
struct GroupSet {
  std::string name;
  std::vector<GroupPlan> groups;
  Exchange ring, mesh;                         // all rings; all pairs, if they have routes
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

// The workload as compiled: with `merge_gathers`, neighbouring all-gathers of a group are one; with
// `overlap_collectives`, all-gathers before and reduce-scatters
// after a GEMM run in chunks with a piece of the GEMM each; sums of FLOP, bytes and elements stay.
// Without `flash_attention`, the probabilities of the forward pass live until the backward pass.
trace::Program rewrite(trace::Program program, const config::CompileSpec& compile);

// Places ranks (neighbours on the innermost mesh axis share a chip), chooses kernels and embeds
// rings. Throws base::UserError: more ranks than the machine has cores for, a workload that does
// not fit in HBM (with bytes needed and there), formats the chip lacks, unreachable ranks.
Plan place(const trace::Program& program, const topology::Graph& graph, const config::RunSpec& run);

}  // namespace trn3sim::compile
