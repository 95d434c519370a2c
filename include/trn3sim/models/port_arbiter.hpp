// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Who goes next on the ports that two engines of a core share: first asked, first served, an
// instruction at a time, ties by the number of the engine.
//
// Streams run ahead of the simulator's time, so a stream that asks may have to wait until no other
// user of the port can still ask for an earlier time. What a blocked stream can ask for at the
// earliest follows from who has to signal it: another stream, not before that one's own next
// instruction, or DMA, not before the simulator's time plus the latency of the token. Grants are
// therefore in the order of the times asked for, whatever order the streams are visited in.
#pragma once

#include <array>
#include <optional>

#include "trn3sim/models/engine_stream.hpp"

namespace trn3sim::models {

class PortArbiter {
 public:
  using Streams = std::array<EngineStream*, kEngines>;

  // Of a program that was loaded into the streams: they ask for the ports that several use.
  void load(const Streams& streams);
  // Whether any port is shared by several streams of the program.
  [[nodiscard]] bool contested() const { return contested_ != 0; }

  struct Choice {
    std::optional<std::size_t> engine;  // the stream that goes next,
    base::Time at;                      // from here on
    base::Time retry = base::kTimeMax;  // or the time to ask again
  };
  // `now`: program time; all streams are done, blocked or asking.
  [[nodiscard]] Choice next(const Streams& streams, const SemaphoreBank& semaphores,
                            base::Time now) const;
  // The ports were held for an instruction until `back`.
  void give_back(std::uint8_t ports, base::Time back);

 private:
  [[nodiscard]] bool safe(std::size_t engine, const Streams& streams,
                          const SemaphoreBank& semaphores, base::Time now) const;

  std::uint8_t contested_ = 0;
  std::array<base::Time, kPorts> free_{};
};

}  // namespace trn3sim::models
