// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One self-overwriting line on a terminal about a run that takes longer than two seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trn3sim/sim/simulation.hpp"

namespace trn3sim::app {

class Progress {
 public:
  using Clock = std::function<double()>;                 // seconds, monotonic
  using Sink = std::function<void(const std::string&)>;  // shows text at once

  Progress(Clock clock, Sink sink);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Shows where the run is, at most five times a second.
  void update(const sim::Progress& progress);
  // Clears the line, if any.
  void finish();

 private:
  Clock clock_;
  Sink sink_;
  double start_, shown_;
  std::string stage_;
  double stage_start_ = 0;
  std::int64_t stage_done_ = 0;  // when the stage began
  bool visible_ = false;
};

// Progress on stderr with the real clock, or nullptr if stderr is no terminal.
std::unique_ptr<Progress> terminal_progress();

}  // namespace trn3sim::app
