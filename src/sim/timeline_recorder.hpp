// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Records what the ranks of the sampled chips run. Attached to a machine only if asked for.
#pragma once

#include <vector>

#include "trn3sim/sim/sequencer.hpp"
#include "trn3sim/stats/timeline.hpp"

namespace trn3sim::sim {

struct MachineState;

class TimelineRecorder {
 public:
  // Adds the tracks of all ranks on the chips of the timeline's spec. All must outlive the recorder.
  TimelineRecorder(const MachineState& machine, stats::Timeline& timeline);

  // What ended now on `queue` of the rank of `sequencer`. For kernels, `kernel` is the index that
  // profiles have; else -1.
  void ended(std::int64_t rank, std::int32_t queue, const Ticket& ticket,
             const Sequencer& sequencer, base::Time start, std::int64_t kernel = -1);

 private:
  [[nodiscard]] std::string name_of(const Ticket& ticket, std::int64_t kernel) const;
  [[nodiscard]] std::int64_t bytes_of(std::int64_t rank, const Ticket& ticket,
                                      std::int64_t kernel) const;

  const MachineState& machine_;
  stats::Timeline& timeline_;
  std::vector<std::int32_t> first_track_;  // by rank; -1: not sampled. Tracks are in queue order
};

}  // namespace trn3sim::sim
