// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// All DMA engines of the cores of one stack: spreads transfers over the engines, keeps operand
// addresses and finds the transfers that are complete. Driven in ascending time by its owner.
//
// A job is one program on some of the cores; several jobs may run at once. Foreign transfers belong
// to no program: they are the traffic of messages and collectives, on rings of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/models/dma_engine.hpp"

namespace trn3sim::models {

// An engine stream started `transfer` at `at`.
struct DmaTrigger {
  base::Time at;
  std::int32_t core = 0;      // of the program
  std::int32_t engine = 0;    // Engine that started it
  std::int32_t transfer = 0;  // index into TileProgram::transfers
  std::int32_t job = 0;
};

inline constexpr std::int32_t kForeignJob = -1;

struct DmaCompletion {
  base::Time at;
  std::int32_t core = 0, transfer = 0;
  std::int64_t order = 0;  // ties at one instant: order of the last packet
  std::int32_t job = 0;    // kForeignJob: `transfer` is ForeignTransfer::id
};

// `bytes` read or written, in packets of DmaSpec::packet, spread over the engines of `cores`.
struct ForeignTransfer {
  std::int32_t id = 0;
  std::int32_t first_core = 0, cores = 1;
  std::int32_t queue = 0;    // which of the rings for foreign transfers, taken modulo their number
  std::int64_t address = 0;  // in the stack
  base::Bytes bytes;
  bool write = false;
  base::Rate rate;   // packets start no faster than this, all engines together
  base::Time after;  // from the last byte to the completion
};

// A transfer as it ran, for timelines: from its first packet to the semaphore write.
struct TransferRecord {
  std::int32_t core = 0, transfer = 0;
  base::Time begin, end;
};

// What serves the packets: an HBM stack, behind whatever shares it. Calls come in ascending `now`.
class Memory {
 public:
  virtual ~Memory() = default;
  // Time of the last byte.
  virtual base::Time access(base::Time now, std::int64_t address, std::int64_t bytes,
                            bool write) = 0;
};

class DmaGroup {
 public:
  DmaGroup(const config::ChipSpec& chip);

  // Canonical state: no job, nothing in flight.
  void reset();
  // Canonical state and a program, as job 0 on the first cores.
  void load(const TileProgram& program) {
    reset();
    load(0, program, 0, 0);
  }
  // Gives `job`, which has nothing in flight, a program; other work goes on. Its operands lie one
  // after another from `address` (4 KiB aligned); each core starts its walk through an operand at
  // its share of it.
  void load(std::int32_t job, const TileProgram& program, std::int32_t first_core,
            std::int64_t address);
  // Serves the transfers of `job` after those of others, where DMA has priority classes. They are on
  // rings of their own: jobs of one core alternate between two sets.
  void defer(std::int32_t job, bool deferred);
  // `trigger.at` must not lie before what advance() and run_ahead() have done.
  void post(const DmaTrigger& trigger);
  // Starts at `now`, which must not lie before the last advance().
  void inject(base::Time now, const ForeignTransfer& transfer);
  // Does everything due at `now`; completions due are appended to `done` in order.
  void advance(base::Time now, Memory& memory, std::vector<DmaCompletion>& done);
  // Does what lies before the next completion and before `bound`. Cores start transfers after
  // completions and from `bound` on, so call it when all that the last ones set off has been posted.
  void run_ahead(Memory& memory, base::Time bound = base::kTimeMax);
  // Next time at which advance() has work; kTimeMax if idle.
  [[nodiscard]] base::Time next() const;
  [[nodiscard]] bool idle() const { return next() == base::kTimeMax; }

  [[nodiscard]] base::Time busy() const;  // summed over the engines
  // Union over the engines of the times from the start of a packet until it has arrived.
  [[nodiscard]] base::Time active() const { return active_; }
  // Keeps the first `limit` transfers; what comes later is counted. 0: none.
  void record(std::size_t limit) { record_limit_ = limit; }
  [[nodiscard]] const std::vector<TransferRecord>& records() const { return records_; }
  [[nodiscard]] std::int64_t unrecorded() const { return unrecorded_; }

 private:
  struct Job {
    const TileProgram* program = nullptr;
    std::int32_t first_core = 0;
    std::vector<std::int64_t> base;    // address of each operand
    std::vector<std::int64_t> cursor;  // core x operands + operand: offset in the operand
  };
  struct Live {
    std::int32_t job, core, transfer, parts;
    base::Time done;
    base::Time shift;  // from `done` to the completion
    base::Time begin = base::kTimeMax;
  };
  struct Activation {
    DmaTrigger trigger;
    std::int64_t order;
    bool operator>(const Activation& o) const;
  };

  struct Due {
    base::Time at;
    std::size_t engine;
  };
  // The engine that can start a packet first, of several the one with the lowest index.
  [[nodiscard]] Due next_packet() const;
  void activate_until(base::Time now);
  void activate(const DmaTrigger& trigger);
  [[nodiscard]] std::int32_t take_live(const Live& live);
  void move_packet(std::size_t engine, base::Time now, Memory& memory);
  void finish_part(std::int32_t live, base::Time at);

  const config::ChipSpec* chip_;
  std::int32_t per_core_;
  std::int32_t queues_;          // of a set; jobs with odd numbers use the second
  std::int32_t sets_;            // 1 or 2
  std::int32_t foreign_queues_;  // after the sets
  std::vector<Job> jobs_;
  std::vector<DmaEngine> engines_;          // core x engines per core + engine
  std::vector<base::Time> next_;            // by engine: DmaEngine::next(); padded with kTimeMax
  std::vector<Activation> activations_;     // heap, earliest first
  std::vector<DmaCompletion> completions_;  // heap, earliest first
  std::vector<Live> live_;
  std::vector<std::int32_t> free_live_;
  std::int64_t order_ = 0;
  base::Time reached_;  // of the latest activation or packet
  base::Time active_, active_until_;
  std::size_t record_limit_ = 0;
  std::vector<TransferRecord> records_;
  std::int64_t unrecorded_ = 0;
};

}  // namespace trn3sim::models
