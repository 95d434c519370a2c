// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/progress.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "trn3sim/base/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace trn3sim::app {
namespace {

constexpr double kQuietSeconds = 2.0;
constexpr double kIntervalSeconds = 0.2;

std::string eta(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  return whole < 100 ? fmt::format("{} s", whole)
                     : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(Clock clock, Sink sink)
    : clock_(std::move(clock)),
      sink_(std::move(sink)),
      start_(clock_()),
      shown_(start_ + kQuietSeconds - kIntervalSeconds) {}

void Progress::update(const sim::Progress& progress) {
  const double now = clock_();
  if (stage_ != progress.stage) {
    stage_ = progress.stage;
    stage_start_ = now;
    stage_done_ = progress.done;
  }
  if (now - shown_ < kIntervalSeconds || progress.total <= 0) return;
  shown_ = now;
  std::string text =
      fmt::format("\r{} {:.0f} %", stage_,
                  100.0 * static_cast<double>(progress.done) / static_cast<double>(progress.total));
  const double elapsed = now - stage_start_;
  const auto done = static_cast<double>(progress.done - stage_done_);
  if (elapsed > 0 && done > 0) {
    const double rate = done / elapsed;
    text += fmt::format(", {}, ETA {}", base::format_si(rate, "ops/s"),
                        eta(static_cast<double>(progress.total - progress.done) / rate));
  }
  if (progress.simulated.count() > 0) {
    text += fmt::format(", at {}", base::format_time(progress.simulated));
  }
  sink_(text + "\x1b[K");
  visible_ = true;
}

void Progress::finish() {
  if (visible_) sink_("\r\x1b[K");
  visible_ = false;
}

std::unique_ptr<Progress> terminal_progress() {
  if (::isatty(STDERR_FILENO) == 0) return nullptr;
  return std::make_unique<Progress>(
      [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
      },
      [](const std::string& text) {
        (void)std::fputs(text.c_str(), stderr);
        (void)std::fflush(stderr);
      });
}

}  // namespace trn3sim::app
