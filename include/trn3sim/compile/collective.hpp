// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that CC-cores run: what one member of a group sends, in which order, and what it must
// have received before.
#pragma once

#include <cstdint>
#include <string>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

// One member's program: `sends` messages of `bytes`; send i starts when at least
// i + need_offset messages have arrived (sends beyond `receives` need them all). The first
// `reduce_receives` arrivals are combined with local data.
struct CollectiveProgram {
  std::string algorithm;  // "ring", "pairwise", "ring pipeline", "local"
  std::int64_t sends = 0, receives = 0, need_offset = 0, reduce_receives = 0;
  base::Bytes bytes;
  bool pipelined = false;  // chunks follow one another without waiting for a step
  bool pairwise = false;   // send i goes to position + i + 1, else to the ring's next member
};

// Ring all-reduce (reduce-scatter then all-gather, 2(n-1) steps of ceil(bytes/n)), all-gather and
// reduce-scatter (n-1 steps of one shard), pairwise all-to-all (n-1 rounds), pipelined ring
// broadcast from member 0, barrier as a 4-byte all-reduce. A group of one moves nothing.
CollectiveProgram collective_program(const trace::Collective& collective, std::int64_t members,
                                     std::int64_t ring_position);

// HBM bytes that a member touches for one message it sends (reads) and one it receives (writes, and
// the local operand of a reduction).
std::int64_t send_hbm_bytes(const CollectiveProgram& program);
std::int64_t receive_hbm_read_bytes(const CollectiveProgram& program, bool reduce);

// HBM bytes that a member's stack moves for each byte of its `index`-th message: one read to send,
// one write to receive, one read of the local operand to reduce.
std::int64_t hbm_touches(const CollectiveProgram& program, std::int64_t index);

// Whether the next message may go: `sent` are on their way, `received` have arrived.
bool may_send(const CollectiveProgram& program, std::int64_t sent, std::int64_t received);
bool is_done(const CollectiveProgram& program, std::int64_t sent, std::int64_t received);

// Where a member's `index`-th message goes, and how. `ring_index`: the rank's place in its ring.
struct Hop {
  std::int64_t to = 0;                     // rank
  const topology::Route* route = nullptr;  // empty: the same stack
};
Hop hop_of(const CollectiveProgram& program, const GroupSet& set, std::int64_t rank,
           std::int64_t ring_index, std::int64_t index);

// From the trigger until the first message can go; 0 if nothing moves.
base::Time start_delay(const CollectiveProgram& program, const config::ChipSpec& chip);
// From the last byte of message `index` until its receiver can go on: completion, and the start of
// the next step if there is one.
base::Time arrival_delay(const CollectiveProgram& program, std::int64_t index,
                         const config::ChipSpec& chip);

// Bandwidth of its stack that a member wants while its collective runs: what the route of its first
// message and its DMA engines carry, times the touches of HBM.
base::Rate flow_demand(const CollectiveProgram& program, const Hop& first,
                       const topology::Graph& graph, const config::ChipSpec& chip,
                       const RankPlace& place);

// Rate that the DMA engines of a rank can source and sink: engines x plateau, times the inline
// compute (or SBUF read-add-write) share while reducing.
base::Rate dma_rate(const config::ChipSpec& chip, const RankPlace& place, bool reduce);

// A time that no execution on an idle machine can beat: start, then the dependent steps over the
// fastest hop.
base::Time least_time(const CollectiveProgram& program, const GroupPlan& group,
                      const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap);

}  // namespace trn3sim::compile
