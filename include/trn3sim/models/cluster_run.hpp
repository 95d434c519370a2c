// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What one execution of a tile program on a stack measured.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/models/engine_stream.hpp"

namespace trn3sim::models {

// Time that an engine of a core lacked a token of a semaphore and could have worked.
struct EngineWait {
  std::size_t core = 0, engine = 0;
  std::size_t semaphore = 0;
  base::Time time;
};

// What one instruction or transfer took, for timelines.
struct Activity {
  std::size_t core = 0;
  std::int32_t engine = -1;  // Engine; -1: a transfer
  Opcode op = Opcode::Nop;
  std::int32_t transfer = -1;
  base::Time start, end;
};

// Times since the start of the program, or since it was released.
struct ClusterRun {
  base::Time duration;        // all streams done and all DMA complete
  base::Time first_compute;   // start of the first compute instruction
  base::Time last_compute;    // end of the last
  base::Time compute_active;  // union over cores and compute engines of busy intervals
  std::array<base::Time, kEngines> engine_busy{};  // summed over cores
  std::array<base::Time, kEngines> engine_active{};  // likewise, latencies included
  base::Time dma_busy;                             // summed over DMA engines
  base::Time dma_active;                           // some DMA engine has a packet under way
  // TensorE: start of the first instruction and end of the last, both 0 without one. The limiter of
  // its current at that end: age of the work and idle time in the window, of the core where they
  // say most against a hot successor; what it cost, summed over cores.
  base::Time first_tensor, last_tensor, limiter_age, limiter_idle, limited;
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, hbm_activates = 0;
  std::int64_t instructions = 0;

  // Before the engines are added.
  void begin() { first_compute = base::kTimeMax; }
  // Takes in what an engine of a core did; the program was released at `released` of its clock.
  void add(std::size_t engine, const EngineStream& stream, base::Time released);
  // All engines are in. Without compute, everything is lead-in.
  void end(base::Time took);

 private:
  void add_tensor(const EngineStream& stream, base::Time released);
};

}  // namespace trn3sim::models
