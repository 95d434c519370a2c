// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/core.hpp"

#include <bit>
#include <utility>

#include "trn3sim/models/engine_cost.hpp"

#include <fmt/format.h>

namespace trn3sim::modules {
namespace {

constexpr std::size_t kManyIntervals = 8192;
constexpr std::uint32_t kAllEngines = (1u << models::kEngines) - 1;

}  // namespace

EngineModule::EngineModule(const sc_core::sc_module_name& name, models::EngineStream stream,
                           std::function<void()> resume)
    : sc_module(name), stream_(std::move(stream)), resume_(std::move(resume)) {
  SC_HAS_PROCESS(EngineModule);
  SC_METHOD(run);
  sensitive << wake_;
  dont_initialize();
}

Core::Core(const sc_core::sc_module_name& name, const config::ChipSpec& chip, std::int32_t index,
           CoreHooks hooks, bool reverse)
    : sc_module(name), index_(index), hooks_(std::move(hooks)) {
  for (std::size_t i = 0; i < models::kEngines; ++i) {
    const std::size_t e = reverse ? models::kEngines - 1 - i : i;
    const auto engine = static_cast<models::Engine>(e);
    engines_[e] = std::make_unique<EngineModule>(std::string(models::name(engine)).c_str(),
                                                 models::EngineStream(chip, engine, index),
                                                 [this, e] { drain(std::uint32_t{1} << e); });
    streams_[e] = &engines_[e]->stream();
  }
  SC_HAS_PROCESS(Core);
  SC_METHOD(ask_again);
  sensitive << ask_again_;
  dont_initialize();
}

void Core::load(const models::TileProgram& program, std::size_t of_program, models::Ahead ahead) {
  static const models::CoreProgram kIdle;
  const models::CoreProgram& core =
      of_program < program.cores.size() ? program.cores[of_program] : kIdle;
  semaphores_.load(program, core);
  for (auto& e : engines_) e->stream().load(program, core, ahead);
  ports_.load(streams_);
  ask_again_.cancel();
  asks_again_ = base::kTimeMax;
}

void Core::release(base::Time at) {
  for (auto& e : engines_) e->stream().release(at);
  start();
}

void Core::start() {
  wake(kAllEngines);
}

void Core::wake(std::uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) engines_[std::size_t(std::countr_zero(mask))]->wake();
}

void Core::ask_again() {
  drain(kAllEngines);
}

void Core::drain(std::uint32_t mask) {
  triggers_.clear();
  // Who goes first on a port depends on all streams: a token may be there that wakes one later.
  bool ended = run(ports_.contested() ? kAllEngines : mask);
  if (ports_.contested()) ended |= share_ports();
  if (!triggers_.empty()) hooks_.dma(triggers_);
  if (ended) hooks_.ended();
}

bool Core::run(std::uint32_t mask) {
  bool ended = false;
  while (mask != 0) {
    const auto e = static_cast<std::size_t>(std::countr_zero(mask));
    mask &= mask - 1;
    models::EngineStream& stream = *streams_[e];
    if (stream.done()) continue;
    mask |= stream.run(semaphores_, triggers_);
    if (stream.intervals().size() > kManyIntervals) hooks_.many_intervals();
    ended = ended || stream.done();
  }
  return ended;
}

bool Core::share_ports() {
  bool ended = false;
  for (;;) {
    const models::PortArbiter::Choice choice = ports_.next(streams_, semaphores_, hooks_.now());
    if (!choice.engine) {
      asks_again_ = choice.retry;
      if (asks_again_ < base::kTimeMax) hooks_.notify(ask_again_, asks_again_);
      return ended;
    }
    models::EngineStream& stream = *streams_[*choice.engine];
    const std::uint8_t ports = stream.asking();
    std::uint32_t woken = 0;
    ports_.give_back(ports, stream.grant(choice.at, semaphores_, triggers_, woken));
    if (stream.intervals().size() > kManyIntervals) hooks_.many_intervals();
    ended = ended || stream.done();
    ended = run(woken) || ended;
  }
}

void Core::complete(const models::DmaTransfer& transfer, base::Time at) {
  for (const models::SemaphoreSignal& s : transfer.signals)
    if (s.count > 0) wake(semaphores_.post(s.id, s.count, at));
}

bool Core::done() const {
  for (const auto& e : engines_)
    if (!e->stream().done()) return false;
  return true;
}

std::string Core::waiting() const {
  std::string text;
  for (std::size_t e = 0; e < models::kEngines; ++e)
    if (!stream(e).done())
      text += fmt::format("core {} {}: {}\n", index_, models::name(static_cast<models::Engine>(e)),
                          stream(e).waiting(semaphores_));
  return text;
}

}  // namespace trn3sim::modules
