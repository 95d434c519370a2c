// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Semaphores of one core. Tokens carry the time at which they were signalled, so a stream may run
// ahead of the simulator's time: it stops only where a token is not there yet.
//
// A semaphore has one waiting stream and one signaller (a stream, or the DMA engines), so the order
// in which streams are visited cannot change what a wait sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

enum class TokenSource : std::uint8_t { Initial, Engine, Dma };

class SemaphoreBank {
 public:
  // Throws InternalError if a semaphore has several waiting streams or several signallers.
  void load(const TileProgram& program, const CoreProgram& core);

  // Adds `count` tokens at `at`. Returns the bit of the stream (1 << Engine) that can go on now.
  std::uint32_t post(std::uint16_t id, std::uint16_t count, base::Time at) {
    State& s = states_[id];
    if (at < s.last) at = s.last;  // one signaller signals in order
    s.last = at;
    if (s.head != s.tokens.size() && s.tokens.back().at == at && !s.tokens.back().initial)
      s.tokens.back().count += count;
    else
      s.tokens.push_back({at, count, false});
    s.available += count;
    if (s.needed == 0 || s.available < s.needed) return 0;
    s.needed = 0;
    return std::uint32_t{1} << static_cast<unsigned>(s.waiter);
  }
  // True if `count` tokens are there; otherwise remembers that the waiting stream needs them.
  bool ready(std::uint16_t id, std::uint16_t count) {
    State& s = states_[id];
    if (s.available >= count) return true;
    s.needed = count;
    return false;
  }
  struct Taken {
    base::Time at;
    TokenSource source;
  };  // of the last token taken
  // Takes `count` tokens, which must be there.
  Taken take(std::uint16_t id, std::uint16_t count) {
    State& s = states_[id];
    s.available -= count;
    std::int64_t left = count;
    for (;;) {
      Token& t = s.tokens[s.head];
      if (t.count > left) {
        t.count -= left;
        return {t.at, t.initial ? TokenSource::Initial : s.source};
      }
      left -= t.count;
      const Taken taken{t.at, t.initial ? TokenSource::Initial : s.source};
      if (++s.head == s.tokens.size() || s.head == kCompactAt) compact(s);
      if (left == 0) return taken;
    }
  }
  [[nodiscard]] std::int64_t available(std::uint16_t id) const { return states_[id].available; }
  [[nodiscard]] std::size_t size() const { return states_.size(); }
  // None: DMA, or nobody.
  [[nodiscard]] std::optional<Engine> signalling_engine(std::uint16_t id) const;
  // "the vector engine", "DMA", "nobody": who signals `id`.
  [[nodiscard]] std::string signaller(std::uint16_t id) const;

 private:
  static constexpr std::size_t kCompactAt = 4096;
  struct Token {
    base::Time at;
    std::int64_t count;
    bool initial;
  };
  struct State {
    std::vector<Token> tokens;
    std::size_t head = 0;
    std::int64_t available = 0;
    std::int64_t needed = 0;  // tokens that the blocked waiter needs, 0 if it does not wait
    base::Time last;
    std::int32_t waiter = -1;  // Engine
    std::int32_t poster = -1;  // Engine, kDma or -1
    TokenSource source = TokenSource::Engine;
  };
  static void compact(State& s) {
    s.tokens.erase(s.tokens.begin(), s.tokens.begin() + static_cast<std::ptrdiff_t>(s.head));
    s.head = 0;
  }
  void bind_waiter(std::uint16_t id, std::int32_t engine);
  void bind_poster(std::uint16_t id, std::int32_t poster);

  std::vector<State> states_;
};

}  // namespace trn3sim::models
