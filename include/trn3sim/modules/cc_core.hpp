// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The CC-cores of one rank: they run collective programs step by step, one at a time per stream.
// Each step is a DMA transfer over a route; a message costs the HBM stacks of both ends and, where
// it is reduced, the local operand. While a collective runs it holds a flow on its stack's share;
// on a detailed chip each message's bytes are traffic of the stack instead. Not modelled:
// descriptor ring setup beyond start_overhead.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <systemc>
#include <vector>

#include "trn3sim/compile/collective.hpp"
#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/modules/hbm_share.hpp"
#include "trn3sim/modules/link.hpp"
#include "trn3sim/modules/transfer_join.hpp"

namespace trn3sim::modules {

class CcCore;

// Told when a rank's part of a collective or message is done.
class TransferEnd {
 public:
  virtual ~TransferEnd() = default;
  virtual void transfer_ended(std::int32_t queue) = 0;
};

// Where a rank's messages meet memory: at its port stack. One of the two is set.
struct StackPort {
  HbmShare* share = nullptr;        // profiled
  StackTraffic* traffic = nullptr;  // detailed
  std::int64_t first_core = 0;      // of the rank on that stack
};

// What the CC-cores of all ranks share.
struct CcNetwork {
  const config::ChipSpec* chip = nullptr;
  const compile::Plan* plan = nullptr;
  const topology::Graph* graph = nullptr;
  const Context* context = nullptr;
  Fabric* fabric = nullptr;
  std::vector<CcCore*> cores;                       // by rank
  std::vector<StackPort> ports;                     // by rank
  TransferJoin* join = nullptr;                     // of messages with a detailed end
  std::array<models::ByteWeights, 4> flow_weights;  // by touches of HBM per byte
  std::vector<topology::Route> local;               // by rank: copies inside its own stack
};

struct CollectiveJob {
  std::int32_t queue = 0;  // of the rank, returned at the end
  std::int32_t set = 0;
  compile::CollectiveProgram program;
};

// Bytes that a rank's transfers moved.
struct TransferCounts {
  std::int64_t sent_bytes = 0, received_bytes = 0;
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, dma_bytes = 0;
};

class CcCore : public sc_core::sc_module, public MessageSink, public MessageSource {
 public:
  using SC_CURRENT_USER_MODULE = CcCore;
  CcCore(const sc_core::sc_module_name& name, std::int64_t rank, const CcNetwork& network,
         TransferEnd& end);

  // Starts the rank's part of its next collective of the job's group set.
  void start(const CollectiveJob& job);
  // Sends `bytes` to `peer` over `route` (empty: the same stack).
  void send(std::int32_t queue, std::int64_t peer, const topology::Route& route, base::Bytes bytes,
            std::int64_t tag);
  // Waits for the next message of `peer` with `tag`.
  void receive(std::int32_t queue, std::int64_t peer, std::int64_t tag);
  void delivered(const Message& message) override;
  // What the stack grants the running collective for each byte of a message.
  [[nodiscard]] base::Rate rate(const Message& message) const override;

  // Sequence number that the next collective of a set gets.
  [[nodiscard]] std::int64_t next_sequence(std::int32_t set) const {
    return next_sequence_[static_cast<std::size_t>(set)];
  }
  // A host or HBM memory operation of the rank: bytes that its stack reads and writes.
  void count_memory(std::int64_t read, std::int64_t written) {
    counts_.hbm_read_bytes += read;
    counts_.hbm_write_bytes += written;
    counts_.dma_bytes += read + written;
  }
  [[nodiscard]] const TransferCounts& counts() const { return counts_; }
  // State relative to now. False if a collective of a set outside `sets` is running or messages
  // wait, so that the rank is not alone with its loop.
  bool fingerprint(base::StateHash& hash, const std::vector<bool>& sets) const;
  void shift(base::Time delta);
  // Sequence numbers of `sets` go on as if `periods` x (now - then) collectives had run.
  [[nodiscard]] const std::vector<std::int64_t>& sequences() const { return next_sequence_; }
  void advance_sequences(const std::vector<std::int64_t>& by);
  [[nodiscard]] std::int64_t relative_sequence(const Message& m) const;
  template <class F>
  void visit_counters(F&& f) {
    f(counts_.sent_bytes);
    f(counts_.received_bytes);
    f(counts_.hbm_read_bytes);
    f(counts_.hbm_write_bytes);
    f(counts_.dma_bytes);
  }

  // Text for deadlock reports: what is running and how far it is.
  [[nodiscard]] std::string waiting() const;

 private:
  struct Active {
    bool running = false, begun = false;
    CollectiveJob job;
    std::int64_t sequence = 0;
    compile::CollectiveProgress at;
    models::ShareModel::Handle flow = -1;
    compile::FlowDemand wanted;
    base::Time begin;
  };
  struct Early {
    std::int64_t sequence;
    std::int32_t part;
    std::int64_t count;
  };
  struct Inbox {
    std::int64_t peer, tag, count;
  };

  void step();
  void arm();
  void begin(std::int32_t set);
  void count_early(const Message& message);
  void count_arrival(Active& active, std::int32_t part);
  void arrived(Active& active, const Message& message);
  void send_ready(Active& active, std::int32_t set);
  void send_step(const Active& active, std::int32_t set, std::size_t part, std::int64_t index);
  void finish_if_done(std::int32_t set);
  // Sends a message to rank `to`, whose memory reads as much again if it `reduce`s.
  void launch(const Message& message, std::int64_t to, bool reduce);
  [[nodiscard]] EndTraffic end_traffic(const Message& message, std::int64_t rank,
                                       std::int32_t kind) const;
  [[nodiscard]] const StackPort& port() const {
    return network_.ports[static_cast<std::size_t>(rank_)];
  }

  std::int64_t rank_;
  const CcNetwork& network_;
  TransferEnd& end_;
  std::vector<Active> active_;               // by group set
  std::vector<std::int64_t> next_sequence_;  // by group set
  std::vector<std::vector<Early>> early_;    // by group set; ascending by sequence and part
  std::vector<Inbox> inbox_;
  struct Expected {
    std::int32_t queue = -1;
    std::int64_t peer = 0, tag = 0;
    bool waiting = false;
  } expected_;
  TransferCounts counts_;
  sc_core::sc_event wake_;
  base::Time armed_for_ = base::kTimeMax;
};

}  // namespace trn3sim::modules
