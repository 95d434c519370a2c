// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Loops are simulated until they repeat, then slept through. A cohort is the set of ranks that
// interact inside a loop, with the stacks and links that they alone use. When an iteration of the
// loop starts on the cohort's first rank, the state of the whole cohort relative to that instant is
// fingerprinted. Equal fingerprints of two iterations mean that everything in between will happen
// again exactly, so the cohort's state is moved on by whole periods at once: times are shifted,
// iterations, sequence numbers and counters are advanced by what one period changed. Nothing is
// rounded; the skipped run equals the full one. Ranks outside go on meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <systemc>
#include <vector>

#include "trn3sim/base/state_hash.hpp"

#include "machine_state.hpp"

namespace trn3sim::sim {

class Machine;

// Ranks, stacks and links that interact inside one repeat op.
struct Cohort {
  std::vector<std::int64_t> ranks;  // ascending; the first one leads
  std::vector<std::size_t> shares;  // stacks
  std::vector<std::size_t> links;   // used by the loop's collectives and messages
};

// What the loop of one repeat op uses.
struct LoopUse {
  std::vector<bool> sets;  // group sets of its collectives
  std::vector<Cohort> cohorts;
  std::vector<std::int32_t> cohort_of_rank;
};

// Finds the cohorts of every repeat op: ranks are joined by the groups and messages of the loop, by
// a stack they share, and by links that both use.
std::map<std::pair<std::int32_t, std::int32_t>, LoopUse> find_cohorts(const MachineState& state);

class LoopSkipper : public sc_core::sc_module {
 public:
  using SC_CURRENT_USER_MODULE = LoopSkipper;
  LoopSkipper(const sc_core::sc_module_name& name, Machine& machine);

  // An iteration starts on a rank now.
  void boundary(std::int64_t rank, const LoopBoundary& boundary);

 private:
  struct Snapshot {
    base::StateHash hash;
    base::Time at;
    LoopBoundary boundary;
    std::vector<std::int64_t> counters;
    std::vector<std::vector<std::int64_t>> sequences;  // by rank of the cohort, by group set
  };
  struct History {
    std::uint64_t loop = 0;
    std::deque<Snapshot> snapshots;  // the last few iterations
  };
  struct Request {
    const LoopUse* use;
    std::size_t cohort;
    LoopBoundary boundary;
  };

  void settle_down();
  void look(const Request& request);
  bool fingerprint(const Request& request, base::StateHash& hash);
  void skip(const Request& request, const Snapshot& then, const Snapshot& now,
            std::int64_t periods);
  template <class F>
  void visit_counters(const Cohort& cohort, F&& f);

  Machine& machine_;
  MachineState& state_;
  std::map<std::pair<std::int32_t, std::int32_t>, LoopUse> uses_;
  std::map<std::pair<const LoopUse*, std::size_t>, History> histories_;
  std::vector<Request> requests_;
  sc_core::sc_event wake_;
  int deltas_ = 0;
};

}  // namespace trn3sim::sim
