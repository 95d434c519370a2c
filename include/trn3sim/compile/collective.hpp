// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that CC-cores run: what one member of a group sends, in which order, and what it must
// have received before.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

inline constexpr std::size_t kProgramParts = 4;

// `sends` messages of `bytes`; send i starts when at least i + need_offset messages of the part
// have arrived (sends beyond `receives` need them all). The first `reduce_receives` arrivals are
// combined with local data.
struct ProgramPart {
  std::int64_t sends = 0, receives = 0, need_offset = 0, reduce_receives = 0;
  base::Bytes bytes;
  std::int32_t ring = 0;    // messages go to the next member of this ring; -1: send i goes to
                            // position + i + 1
  std::int32_t after = -1;  // part whose messages must all have arrived before the first send
  bool at_once = false;     // no send waits for an arrival of this part
  bool pipelined = false;   // chunks follow one another without waiting for a step ...
  bool to_last = false;     // ... and go to a member that sends nothing on
};

// One member's program. Its parts run side by side.
struct CollectiveProgram {
  std::string algorithm;  // "ring", "2 rings", "pairwise", "ring pipeline", "mesh", "local", ...
  std::array<ProgramPart, kProgramParts> parts;
  std::size_t used = 1;    // parts
  std::int64_t exits = 1;  // messages of a member that move at once; they share its DMA engines
  Way way = Way::Ring;
  [[nodiscard]] bool moves() const { return parts[0].sends + parts[0].receives > 0; }
};

// How far a member is, by part.
struct CollectiveProgress {
  std::array<std::int64_t, kProgramParts> sent{}, received{};
};

// What a program depends on besides the collective.
struct CollectiveShape {
  std::int64_t members = 1;
  std::int64_t ring_place = 0;  // of the member in the first ring
  std::int64_t rings = 1, exits = 1;
  Way way = Way::Ring;
};
CollectiveShape shape_of(const GroupSet& set, std::int64_t rank, Way way);

// Rings: all-reduce (reduce-scatter then all-gather, 2(n-1) steps of ceil(bytes/n)), all-gather and
// reduce-scatter (n-1 steps of one shard), each split evenly over the rings; pairwise all-to-all
// (n-1 rounds), pipelined broadcast from the head of the first ring, barrier as a 4-byte
// all-reduce. Mesh: n-1 messages at once, twice for an all-reduce. A group of one moves nothing.
CollectiveProgram collective_program(const trace::Collective& collective,
                                     const CollectiveShape& shape);

// HBM bytes that a member touches for one message it sends (reads) and one it receives (writes, and
// the local operand of a reduction).
std::int64_t send_hbm_bytes(const ProgramPart& part);
std::int64_t receive_hbm_read_bytes(const ProgramPart& part, bool reduce);

// HBM bytes that a member's stack moves for each byte of its `index`-th message: one read to send,
// one write to receive, one read of the local operand to reduce.
std::int64_t hbm_touches(const ProgramPart& part, std::int64_t index);

// Whether the next message of a part may go.
bool may_send(const CollectiveProgram& program, const CollectiveProgress& progress,
              std::size_t part);
bool is_done(const CollectiveProgram& program, const CollectiveProgress& progress);

// Where the `index`-th message of a member's part goes, and how.
struct Hop {
  std::int64_t to = 0;                     // rank
  const topology::Route* route = nullptr;  // empty: the same stack
};
Hop hop_of(const ProgramPart& part, const GroupSet& set, std::int64_t rank, std::int64_t index);

// From the trigger until the first message can go; 0 if nothing moves.
base::Time start_delay(const CollectiveProgram& program, const config::ChipSpec& chip);
// From the last byte of message `index` of a part until its receiver can go on: completion, and the
// start of the next step if there is one.
base::Time arrival_delay(const CollectiveProgram& program, std::size_t part, std::int64_t index,
                         const config::ChipSpec& chip);
// Between two dependent steps: completion and start of the next.
base::Time step_delay(const config::ChipSpec& chip);

// What routes from one node carry together: over each of their first links no more than it carries,
// and no more than the slowest links of the routes that begin with it. 0, no limit, if a route
// crosses no link.
base::Rate carried(const std::vector<const topology::Route*>& routes, const topology::Graph& graph);

// Bandwidth of its stack that a member wants on average while its collective runs: what the routes
// of its first messages, its DMA engines and the slowest link of the rings carry, times the touches
// of HBM.
struct FlowDemand {
  base::Rate rate;
  bool paced = false;  // by the slowest link of the rings, where its own are faster
};
FlowDemand flow_demand(const CollectiveProgram& program, const GroupSet& set, std::int64_t rank,
                       const topology::Graph& graph, const config::ChipSpec& chip,
                       const RankPlace& place);

// Rate of one message, `cap` on an idle stack, while the flow gets `granted` of what it wants. A flow
// that is paced by others and gets all of it leaves single messages as fast as they are.
base::Rate granted_rate(const FlowDemand& wanted, base::Rate granted, std::int64_t touches,
                        base::Rate cap);

// Rate that the DMA engines of a rank can source and sink: engines x plateau, times the inline
// compute (or SBUF read-add-write) share while reducing.
base::Rate dma_rate(const config::ChipSpec& chip, const RankPlace& place, bool reduce);
// Of one message: its share of the engines.
base::Rate message_rate(const CollectiveProgram& program, const ProgramPart& part,
                        std::int64_t index, const config::ChipSpec& chip, const RankPlace& place);

// A time that no execution on an idle machine can beat: start, then the dependent steps over the
// fastest hop; in a mesh no less than the messages to one member need on the links that reach it.
// `cap`: dma_rate of a member, not reducing.
base::Time least_time(const CollectiveProgram& program, const GroupPlan& group,
                      const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap);

// A time that no member can be done before, if member i (position) starts at starts[i]. A late
// member delays the others by the steps that depend on it alone: what it forwards may have waited
// for it. kNotStarted: it has not started when `position` is done, so nothing depends on it.
inline constexpr base::Time kNotStarted{-1};
base::Time least_end(const CollectiveProgram& program, const GroupPlan& group,
                     const topology::Graph& graph, const config::ChipSpec& chip, base::Rate cap,
                     const std::vector<base::Time>& starts, std::int64_t position);

// The time when all groups of a set run the program at once and nothing else does: each step with
// the latency and at the least share of a link that `exchange` names. For choices between programs.
base::Time expected_time(const CollectiveProgram& program, const Exchange& exchange,
                         const config::ChipSpec& chip, base::Rate cap);

}  // namespace trn3sim::compile
