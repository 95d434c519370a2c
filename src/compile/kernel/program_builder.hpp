// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the streams of one core: instructions, counted loops, transfers and semaphores. Kernels
// describe their work as lists of steps; runs of equal steps become loops.
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::compile {

// A semaphore of one core, or none (id < 0): waits and signals of none are dropped.
struct Semaphore {
  std::int32_t id = -1;
  [[nodiscard]] explicit operator bool() const { return id >= 0; }
};

// Adds a wait or a signal; a full slot list is a bug of ours.
void add_wait(models::Instruction& instruction, Semaphore semaphore, std::int64_t count = 1);
void add_signal(models::Instruction& instruction, Semaphore semaphore, std::int64_t count = 1);
void add_signal(models::DmaTransfer& transfer, Semaphore semaphore, std::int64_t count = 1);

// A wait for `count` tokens; one token is the usual case, so a Semaphore converts.
struct Wait {
  Wait(Semaphore s, std::int64_t n = 1) : semaphore(s), count(n) {}
  Semaphore semaphore;
  std::int64_t count;
};

class CoreBuilder {
 public:
  CoreBuilder(models::TileProgram& program, models::CoreProgram& core)
      : program_(&program), core_(&core) {}

  // A semaphore with `tokens` at start.
  Semaphore semaphore(std::int64_t tokens = 0);
  void emit(models::Engine engine, const models::Instruction& instruction);
  // Starts `transfer` from `engine` after `waits` (at most three).
  void start(models::Engine engine, const models::DmaTransfer& transfer,
             const std::vector<Wait>& waits = {});

  // `body()` `trips` times: nothing for 0, no loop nodes for 1.
  template <class Body>
  void loop(models::Engine engine, std::int64_t trips, Body&& body) {
    if (trips <= 0) return;
    const std::int32_t begin = trips > 1 ? open(engine, trips) : -1;
    body();
    if (begin >= 0) close(engine, begin);
  }

  // `body(step)` for each step; a run of equal steps is one loop.
  template <class Step, class Body>
  void runs(models::Engine engine, const std::vector<Step>& steps, Body&& body) {
    for (std::size_t i = 0; i < steps.size();) {
      std::size_t j = i + 1;
      while (j < steps.size() && steps[j] == steps[i]) ++j;
      loop(engine, static_cast<std::int64_t>(j - i), [&] { body(steps[i]); });
      i = j;
    }
  }

 private:
  std::int32_t open(models::Engine engine, std::int64_t trips);
  void close(models::Engine engine, std::int32_t begin);

  models::TileProgram* program_;
  models::CoreProgram* core_;
};

}  // namespace trn3sim::compile
