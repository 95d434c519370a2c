// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// DMA engines. An engine owns a ring of transfer parts per queue and moves one packet at a time.
//
// A packet holds whole rows (descriptors) up to DmaSpec::packet and half of `outstanding`, or a
// piece of a longer row. It occupies the engine for bytes / bus_rate plus an overhead per
// descriptor, chosen so that full packets reach plateau_rate. Rings are in order: a part starts
// `issue_interval` after the start of the part before it at the earliest, and after that part's
// semaphore write (`completion`). Rings are served round robin, switched at packet boundaries;
// deferred rings only when no other can start a packet. At
// most `outstanding` descriptors wait for the memory. Sources: Neuron documentation, "NKI DMA
// overview" and "NKI DMA bandwidth guide".
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

// The rows of one transfer that one engine moves.
struct DmaPart {
  std::int32_t live = 0;     // the caller's handle of the transfer
  std::int64_t address = 0;  // of the first row in the stack
  std::int64_t rows = 0, row_bytes = 0;
  bool write = false;  // to HBM
  bool accumulate = false;
  base::Time eligible;  // trigger + start_latency
  base::Time pace;      // packet i starts at eligible + i * pace at the earliest
};

struct DmaPacket {
  std::int64_t address = 0, bytes = 0, descriptors = 0;
  bool write = false, read_modify_write = false;
  bool last = false;  // of its part
  std::int32_t live = 0, queue = 0;
  base::Time moved;  // earliest end by the engine itself
};

class DmaEngine {
 public:
  // `extra_queues` rings beyond those of the spec, for traffic that no program of a core starts.
  explicit DmaEngine(const config::DmaSpec& spec, std::int32_t extra_queues = 0);
  void reset();

  // Which rings (1 << queue) are deferred.
  void defer(std::uint64_t rings) { deferred_ = rings; }
  // Appends to ring `queue`; parts of one ring come in ascending `eligible`.
  void enqueue(std::int32_t queue, const DmaPart& part);
  // Earliest time at which a packet can start; kTimeMax if all rings are empty.
  [[nodiscard]] base::Time next() const { return next_; }
  // Starts the packet that is due; requires now >= next(). Every start() is followed by finish().
  DmaPacket start(base::Time now);
  // The memory is done with the packet at `memory_done`. Returns the time of the part's semaphore
  // write if it was the last packet of its part, else the end of the packet.
  base::Time finish(const DmaPacket& packet, base::Time memory_done);

  [[nodiscard]] base::Time busy() const { return busy_; }
  [[nodiscard]] base::Time descriptor_overhead() const { return overhead_; }

 private:
  struct Ring {
    std::vector<DmaPart> parts;
    std::size_t head = 0;
    std::int64_t rows_done = 0, row_offset = 0;  // progress of the head part
    std::int64_t packets = 0;                    // of the head part
    base::Time may_start;  // of the head's next part: interval and semaphore write
    base::Time gate;       // earliest next packet of this ring
    base::Time all_moved;  // latest completion of the packets so far: rings complete in order
  };
  struct InFlight {
    base::Time done;
    std::int64_t descriptors;
  };

  [[nodiscard]] base::Time packet_time(std::int64_t bytes, std::int64_t descriptors, bool write,
                                       bool accumulate);
  [[nodiscard]] std::uint32_t next_ring(base::Time now) const;
  [[nodiscard]] std::uint64_t due_of(std::uint64_t rings, base::Time now) const;
  void update_gate(Ring& ring) const;
  void update_next();

  config::DmaSpec spec_;
  base::Time overhead_;
  std::vector<Ring> rings_;
  std::uint64_t occupied_ = 0;  // rings with parts
  std::uint64_t deferred_ = 0;
  std::uint32_t turn_ = 0;      // next ring to look at
  std::vector<InFlight> in_flight_;
  std::size_t in_flight_head_ = 0;
  std::int64_t descriptors_ = 0;  // in flight
  base::Time bus_free_, next_ = base::kTimeMax, busy_;
  struct {
    std::int64_t bytes = -1, descriptors = 0;
    int mode = 0;
    base::Time time;
  } memo_;
};

}  // namespace trn3sim::models
