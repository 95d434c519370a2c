// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/semaphore_bank.hpp"

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include <fmt/format.h>

namespace trn3sim::models {
namespace {

constexpr auto kDma = static_cast<std::int32_t>(kEngines);

std::string poster_name(std::int32_t poster) {
  if (poster < 0) return "nobody";
  return poster == kDma ? "DMA" : fmt::format("the {} engine", name(static_cast<Engine>(poster)));
}

}  // namespace

void SemaphoreBank::load(const TileProgram& program, const CoreProgram& core) {
  states_.resize(core.semaphores.size());
  for (std::size_t id = 0; id < states_.size(); ++id) {
    State& s = states_[id];
    s = {};
    s.available = core.semaphores[id];
    if (s.available > 0) s.tokens.push_back({base::Time(0), s.available, true});
  }
  for (std::size_t e = 0; e < kEngines; ++e)
    for (const StreamNode& node : core.streams[e]) {
      if (node.kind != StreamNode::Kind::Instruction) continue;
      const Instruction& i = program.instructions.at(std::size_t(node.index));
      for (const SemaphoreWait& w : i.waits)
        if (w.count > 0) bind_waiter(w.id, static_cast<std::int32_t>(e));
      for (const SemaphoreSignal& s : i.signals)
        if (s.count > 0) bind_poster(s.id, static_cast<std::int32_t>(e));
      if (i.op != Opcode::DmaStart) continue;
      for (const SemaphoreSignal& s : program.transfers.at(std::size_t(i.dma)).signals)
        if (s.count > 0) bind_poster(s.id, kDma);
    }
}

void SemaphoreBank::bind_waiter(std::uint16_t id, std::int32_t engine) {
  TRN3SIM_CHECK(id < states_.size(), fmt::format("semaphore {} does not exist", id));
  State& s = states_[id];
  TRN3SIM_CHECK(
      s.waiter < 0 || s.waiter == engine,
      fmt::format("semaphore {}: both the {} and the {} engine wait for it", id,
                  name(static_cast<Engine>(s.waiter)), name(static_cast<Engine>(engine))));
  s.waiter = engine;
}

void SemaphoreBank::bind_poster(std::uint16_t id, std::int32_t poster) {
  TRN3SIM_CHECK(id < states_.size(), fmt::format("semaphore {} does not exist", id));
  State& s = states_[id];
  TRN3SIM_CHECK(s.poster < 0 || s.poster == poster,
                fmt::format("semaphore {}: both {} and {} signal it", id, poster_name(s.poster),
                            poster_name(poster)));
  s.poster = poster;
  s.source = poster == kDma ? TokenSource::Dma : TokenSource::Engine;
}

std::optional<Engine> SemaphoreBank::signalling_engine(std::uint16_t id) const {
  const std::int32_t poster = states_[id].poster;
  if (poster < 0 || poster == kDma) return std::nullopt;
  return static_cast<Engine>(poster);
}

std::string SemaphoreBank::signaller(std::uint16_t id) const {
  return poster_name(states_[id].poster);
}

}  // namespace trn3sim::models
