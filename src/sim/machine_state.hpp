// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a running machine share.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"
#include "trn3sim/modules/cc_core.hpp"
#include "trn3sim/modules/context.hpp"
#include "trn3sim/sim/sequencer.hpp"
#include "trn3sim/sim/simulation.hpp"
#include "trn3sim/stats/results.hpp"

namespace trn3sim::sim {

// Longest dependency chain into the collectives of one group, by sequence number.
struct GroupChain {
  struct Entry {
    base::Time longest;
    std::int64_t done = 0;
  };
  std::map<std::int64_t, Entry> open;
};

class TimelineRecorder;

// What a collective label stands for; counts are kept by rank.
struct LabelStats {
  bool used = false;
  std::int64_t in_bytes = 0, out_bytes = 0, ranks = 0;
  double bus_bytes = 0;  // of one instance and member: bytes that count for bus bandwidth
  std::string algorithm, worst_link;
};

class LoopSkipper;

struct MachineState {
  const config::RunSpec* run = nullptr;
  const topology::Graph* graph = nullptr;
  const trace::Program* program = nullptr;
  const compile::Plan* plan = nullptr;
  SequencerTables tables;
  modules::Context context;
  modules::CcNetwork network;
  std::vector<models::KernelProfile> profiles;  // by Plan::kernels
  std::map<std::pair<std::int32_t, std::int32_t>, models::KernelProfile> opaque;  // by block, op
  std::vector<std::vector<GroupChain>> chains;  // [group set][group]
  std::vector<LabelStats> labels;               // by Plan::labels
  std::vector<std::vector<topology::Route>>
      host_routes;              // [rank]{load host, store host, load storage, store storage, HBM}
  std::int64_t unfinished = 0;  // ranks: the foreground work
  base::Time end;               // when the last rank finished
  std::int64_t ops_done = 0, ops_total = 0;
  ProgressFunction progress;
  LoopSkipper* skipper = nullptr;  // nullptr: everything is simulated
  std::int64_t skipped_ops = 0;
  base::Time longest_lead_in;  // of any kernel
  TimelineRecorder* timeline = nullptr;                     // if one was asked for
};

}  // namespace trn3sim::sim
