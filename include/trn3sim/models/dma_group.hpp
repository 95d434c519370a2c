// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// All DMA engines of the cores of one stack: spreads transfers over the engines, keeps operand
// addresses and finds the transfers that are complete. Driven in ascending time by its owner.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/models/dma_engine.hpp"

namespace trn3sim::models {

// An engine stream started `transfer` at `at`.
struct DmaTrigger {
  base::Time at;
  std::int32_t core = 0;
  std::int32_t engine = 0;    // Engine that started it
  std::int32_t transfer = 0;  // index into TileProgram::transfers
};

struct DmaCompletion {
  base::Time at;
  std::int32_t core = 0, transfer = 0;
  std::int64_t order = 0;  // ties at one instant: order of the last packet
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

  // Canonical state and a program. The operands lie one after another in the stack, 4 KiB aligned;
  // each core starts its walk through an operand at its share of it.
  void load(const TileProgram& program);
  // `trigger.at` must not lie before what advance() and run_ahead() have done.
  void post(const DmaTrigger& trigger);
  // Does everything due at `now`; completions due are appended to `done` in order.
  void advance(base::Time now, Memory& memory, std::vector<DmaCompletion>& done);
  // Does what lies before the next completion. Only completions make cores start transfers, so
  // call it when all that the last ones set off has been posted.
  void run_ahead(Memory& memory);
  // Next time at which advance() has work; kTimeMax if idle.
  [[nodiscard]] base::Time next() const;
  [[nodiscard]] bool idle() const { return next() == base::kTimeMax; }

  [[nodiscard]] base::Time busy() const;  // summed over the engines
  // Time of the first byte of each operand, kTimeMax if never touched.
  [[nodiscard]] const std::vector<base::Time>& first_touch() const { return first_touch_; }

 private:
  struct Live {
    std::int32_t core, transfer, parts;
    base::Time done;
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
  void move_packet(std::size_t engine, base::Time now, Memory& memory);
  void finish_part(std::int32_t live, base::Time at);

  const config::ChipSpec* chip_;
  const TileProgram* program_ = nullptr;
  std::int32_t per_core_;
  std::vector<DmaEngine> engines_;          // core x engines per core + engine
  std::vector<base::Time> next_;            // by engine: DmaEngine::next(); padded with kTimeMax
  std::vector<Activation> activations_;     // heap, earliest first
  std::vector<DmaCompletion> completions_;  // heap, earliest first
  std::vector<Live> live_;
  std::vector<std::int32_t> free_live_;
  std::vector<std::int64_t> base_;    // address of each operand
  std::vector<std::int64_t> cursor_;  // core x operands + operand: offset in the operand
  std::vector<base::Time> first_touch_;
  std::int64_t order_ = 0;
  base::Time reached_;  // of the latest activation or packet
};

}  // namespace trn3sim::models
