// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Issue logic of one rank, without SystemC. Ops are fetched in program order into a bounded window,
// go to the queue of their resource, and start in order per queue once their dependencies are done.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/state_hash.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::sim {

// What every rank needs to know of a block, computed once.
struct BlockInfo {
  std::vector<std::vector<std::int32_t>> successors;  // by op
  std::vector<std::int32_t> entry_successors;
  std::vector<std::int32_t> dependencies;  // count by op, entry included
  std::vector<bool> is_out;
  std::int32_t outs = 0;
  std::vector<std::int32_t> queue;  // resource queue by op; -1: no resource
  std::vector<std::int32_t> phase;  // index into phase names, by block: same for all
};

// Resource queues of a rank.
enum : std::int32_t {
  kQueueNone = -1,
  kQueueCompute = 0,
  kQueueHost = 1,
  kQueueSend = 2,
  kQueueReceive = 3,
  kQueueStream0 = 4
};

// The shared, read-only part.
struct SequencerTables {
  const trace::Program* program = nullptr;
  const compile::Plan* plan = nullptr;
  std::vector<BlockInfo> blocks;
  std::vector<std::string> phases;        // names; 0 is ""
  std::vector<std::int32_t> block_phase;  // by block, 0 if none of its own
  std::int32_t queues = 0;                // kQueueStream0 + streams
};
SequencerTables make_tables(const trace::Program& program, const compile::Plan& plan,
                            std::int64_t streams);

// An op instance of a rank.
struct Ticket {
  std::int32_t frame = -1;
  std::int32_t op = -1;
  std::int32_t block = -1;
  std::int32_t phase = 0;
};

// The start of an iteration of a repeat op.
struct LoopBoundary {
  std::uint64_t loop = 0;            // identity of the repeat instance, the same on all ranks
  std::int32_t block = -1, op = -1;  // of the repeat op
  std::int64_t iteration = 0, iterations = 1;
  base::Time chain;  // longest dependency chain into the iteration
};

// Receives ops that may start now. The resource is busy until Sequencer::complete().
class IssueSink {
 public:
  virtual ~IssueSink() = default;
  virtual void issue(std::int32_t queue, const Ticket& ticket) = 0;
  virtual void loop_boundary(const LoopBoundary&) {}
};

class Sequencer {
 public:
  Sequencer(const SequencerTables& tables, std::int64_t rank, IssueSink& sink);

  // Fetches and issues what can start at once.
  void start();
  // The op is done: frees its queue, releases its successors and issues what can start.
  void complete(std::int32_t queue, const Ticket& ticket);
  // All is done, also what no `out` waits for.
  [[nodiscard]] bool finished() const { return live_frames_ == 0; }
  // The op that will start next on `queue`, if it has been fetched.
  [[nodiscard]] const Ticket* next(std::int32_t queue) const {
    const Queue& q = queues_[static_cast<std::size_t>(queue)];
    return q.waiting.empty() ? nullptr : &q.waiting.front();
  }
  [[nodiscard]] std::int64_t completed_ops() const { return completed_ops_; }

  // Longest dependency chain: the earliest end of the inputs of `ticket`, and to set its end.
  [[nodiscard]] base::Time chain_start(const Ticket& ticket) const;
  void set_chain_end(const Ticket& ticket, base::Time end);
  [[nodiscard]] base::Time longest_chain() const { return longest_chain_; }

  // State for the detection of repetition. Iterations of `loop` count from `iteration`, chains
  // inside it from `chain`.
  void fingerprint(base::StateHash& hash, std::uint64_t loop, std::int64_t iteration,
                   base::Time chain) const;
  // Highest iteration of `loop` that has been entered or fetched; -1 if the rank is not in it.
  [[nodiscard]] std::int64_t frontier(std::uint64_t loop) const;
  // Goes on as if `iterations` more of `loop` had run, with chains longer by `chain`.
  void jump(std::uint64_t loop, std::int64_t iterations, base::Time chain);
  // Whether a ticket's op lies inside the loop.
  [[nodiscard]] bool inside(const Ticket& ticket, std::uint64_t loop) const;
  // Number of a ticket's frame that does not depend on storage, for fingerprints.
  [[nodiscard]] std::int64_t stable_frame(const Ticket& ticket) const;
  // The longest chain is none: chains of the iterations after a skip are longer than those in it.
  template <class F>
  void visit_counters(F&& f) {
    f(completed_ops_);
  }
  // Iterations of the loops around an op that is not done, outermost first: "3/12"; "" outside loops.
  [[nodiscard]] std::string iterations(const Ticket& ticket) const;

  // The oldest op of each queue that has not finished, for deadlock reports.
  [[nodiscard]] std::vector<Ticket> outstanding() const;
  [[nodiscard]] std::vector<std::string> unmet_dependencies(const Ticket& ticket) const;

 private:
  struct Frame {
    std::int32_t block = -1;
    std::int32_t parent = -1;  // frame of the call or repeat op
    std::int32_t parent_op = -1;
    std::int64_t iteration = 0, iterations = 1;
    std::int32_t next_iteration = -1;  // frame waiting for our outs
    std::uint64_t serial = 0;          // order of creation
    std::uint64_t loop = 0;  // identity of the instance: path of calls and iterations above
    std::int32_t outs_left = 0;
    std::int32_t ops_left = 0;
    std::int32_t position = 0;  // fetch position
    std::int32_t phase = 0;
    bool entry_done = false, outs_done = false, fetched = false, used = false;
    base::Time entry_chain, out_chain;  // longest chain into the block, and through its outs
    std::vector<std::int32_t> waits;    // unmet dependencies by op
    std::vector<base::Time> chain;      // longest chain into the op; once done, through it
    std::vector<bool> done;
  };
  struct Queue {
    std::deque<Ticket> waiting;
    bool busy = false;
  };

  std::int32_t make_frame(std::int32_t block, std::int32_t parent, std::int32_t parent_op,
                          std::int64_t iteration, std::int64_t iterations);
  void release_if_over(std::int32_t frame);
  [[nodiscard]] std::uint64_t path_of(std::int32_t parent, std::int32_t parent_op) const;
  [[nodiscard]] bool frame_inside(std::int32_t frame, std::uint64_t loop) const;
  [[nodiscard]] std::vector<std::int32_t> frames_by_age() const;
  void fingerprint_frame(base::StateHash& hash, const Frame& frame, bool inside,
                         base::Time chain) const;
  void fetch();
  bool fetch_op(std::int32_t frame);
  void enter_entry(std::int32_t frame, base::Time chain);
  void satisfy(std::int32_t frame, std::int32_t op, base::Time chain);
  void ready(std::int32_t frame, std::int32_t op);
  void finish(std::int32_t frame, std::int32_t op);
  void outs_complete(std::int32_t frame);
  void drain();
  void issue_ready(std::int32_t queue);

  const SequencerTables& tables_;
  std::int64_t rank_;
  IssueSink& sink_;
  std::vector<Frame> frames_;
  std::vector<std::int32_t> free_frames_;
  std::vector<std::int32_t> fetch_stack_;
  std::vector<Queue> queues_;
  std::vector<std::pair<std::int32_t, std::int32_t>> finished_ops_;  // worklist
  std::int64_t in_window_ = 0;
  std::uint64_t next_serial_ = 1;
  std::int64_t completed_ops_ = 0;
  base::Time longest_chain_;
  std::int64_t live_frames_ = 0;
  bool draining_ = false;
};

}  // namespace trn3sim::sim
