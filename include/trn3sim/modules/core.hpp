// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A NeuronCore: five engines, each a process of its own, and the semaphores that order them. All
// times are since the start of the program that it runs.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "trn3sim/models/port_arbiter.hpp"
#include "trn3sim/models/semaphore_bank.hpp"

namespace trn3sim::modules {

// What happens around a core.
struct CoreHooks {
  std::function<void(std::vector<models::DmaTrigger>&)> dma;  // transfers started; may be changed
  std::function<void()> ended;           // a stream has ended (its times may lie ahead)
  std::function<void()> many_intervals;  // busy intervals should be collected
  std::function<base::Time()> now;       // time of the program
  std::function<void(sc_core::sc_event&, base::Time)> notify;  // at a time of the program
};

// One engine: a process that lets its stream go on when DMA delivers a token that it lacked. Tokens
// between engines are handed over inside the core without an event: they carry their time.
class EngineModule : public sc_core::sc_module {
 public:
  // `resume`: lets the stream of this engine go on, and the streams that it enables.
  EngineModule(const sc_core::sc_module_name& name, models::EngineStream stream,
               std::function<void()> resume);
  void wake() { wake_.notify(sc_core::SC_ZERO_TIME); }
  [[nodiscard]] models::EngineStream& stream() { return stream_; }
  [[nodiscard]] const models::EngineStream& stream() const { return stream_; }

 private:
  void run() { resume_(); }

  models::EngineStream stream_;
  std::function<void()> resume_;
  sc_core::sc_event wake_;
};

class Core : public sc_core::sc_module {
 public:
  // `reverse`: construct the engines in reverse order (results must not depend on it).
  Core(const sc_core::sc_module_name& name, const config::ChipSpec& chip, std::int32_t index,
       CoreHooks hooks, bool reverse);

  // `program.cores[of_program]`, or nothing if the program has fewer cores.
  void load(const models::TileProgram& program, std::size_t of_program,
            models::Ahead ahead = models::Ahead::Everything);
  // Lets every stream begin.
  void start();
  // Lets everything go on at program time `at`, which is now.
  void release(base::Time at);
  // Posts the signals of a completed transfer.
  void complete(const models::DmaTransfer& transfer, base::Time at);

  // When streams ask for ports again; kTimeMax if none has to.
  [[nodiscard]] base::Time asks_again() const { return asks_again_; }
  [[nodiscard]] bool done() const;
  [[nodiscard]] const models::EngineStream& stream(std::size_t engine) const {
    return engines_[engine]->stream();
  }
  [[nodiscard]] models::EngineStream& stream(std::size_t engine) {
    return engines_[engine]->stream();
  }
  // One line per blocked stream.
  [[nodiscard]] std::string waiting() const;

 private:
  void ask_again();
  void wake(std::uint32_t mask);
  // Runs the streams in `mask` (bits 1 << Engine) and those that they enable until all are blocked.
  void drain(std::uint32_t mask);
  bool run(std::uint32_t mask);  // whether a stream has ended
  // Gives shared ports to the streams that ask for them as far as the order is known; whether a
  // stream has ended.
  bool share_ports();

  std::int32_t index_;
  CoreHooks hooks_;
  models::SemaphoreBank semaphores_;
  std::vector<models::DmaTrigger> triggers_;
  std::array<std::unique_ptr<EngineModule>, models::kEngines> engines_;
  models::PortArbiter ports_;
  models::PortArbiter::Streams streams_{};
  sc_core::sc_event ask_again_;
  base::Time asks_again_ = base::kTimeMax;
};

}  // namespace trn3sim::modules
