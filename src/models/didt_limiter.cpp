// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/didt_limiter.hpp"

#include <algorithm>
#include <cmath>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kOne = 1 << 16;
constexpr std::int64_t kNever = INT64_MIN / 4;  // cycles; far before any program

std::int64_t cycles_of(base::Time t, base::Frequency clock) {
  return static_cast<std::int64_t>(Int128(t.count()) * clock.count() / base::kFemtosPerSecond);
}

// Largest n with n^2 <= x.
std::int64_t root(Int128 x) {
  auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(x)));
  while (Int128(n) * n > x) --n;
  while (Int128(n + 1) * (n + 1) <= x) ++n;
  return n;
}

}  // namespace

DidtLimiter::DidtLimiter(const config::TensorSpec& spec) {
  const config::ThrottleSpec& t = spec.throttle;
  share_ = std::llround(t.start_share * static_cast<double>(kOne));
  ramp_ = cycles_of(t.ramp, spec.clock);
  window_ = cycles_of(t.window, spec.clock);
  const std::int64_t rearm = std::llround(t.rearm_share * static_cast<double>(kOne));
  idle_limit_ = static_cast<std::int64_t>(Int128(window_) * (kOne - rearm) / kOne);
  exists_ = share_ < kOne && ramp_ > 0;
  reset();
}

void DidtLimiter::reset() {
  on_ = exists_;
  idle_ = true;
  warm_ = false;
  begin_ = ramp_end_ = active_until_ = kNever;
  forget_gaps();
}

void DidtLimiter::warm_up() {
  reset();
  warm_ = true;
}

void DidtLimiter::forget_gaps() {
  gaps_.clear();
  first_gap_ = 0;
  idle_cycles_ = 0;
}

void DidtLimiter::begin(std::int64_t at) {
  begin_ = at;
  ramp_end_ = at + ramp_;
  forget_gaps();
}

void DidtLimiter::add_gap(std::int64_t from, std::int64_t to) {
  if (to <= from) return;
  gaps_.push_back({from, to});
  idle_cycles_ += to - from;
}

// The stretch before `start` was idle.
void DidtLimiter::note_gap(std::int64_t start) {
  const std::int64_t oldest = start - window_;
  add_gap(std::max(active_until_, oldest), start);
  while (gaps_[first_gap_].start < oldest) {
    Gap& gap = gaps_[first_gap_];
    const std::int64_t until = std::min(gap.end, oldest);
    idle_cycles_ -= until - gap.start;
    gap.start = until;
    if (gap.start < gap.end) break;
    ++first_gap_;
  }
  if (2 * first_gap_ > gaps_.size()) {
    gaps_.erase(gaps_.begin(), gaps_.begin() + static_cast<std::ptrdiff_t>(first_gap_));
    first_gap_ = 0;
  }
  if (idle_cycles_ > idle_limit_) begin(start);
}

std::int64_t DidtLimiter::work_slowly(std::int64_t start, std::int64_t cycles) {
  if (idle_) {
    begin(warm_ ? start - ramp_ : start);
    idle_ = warm_ = false;
  } else if (start > active_until_) {
    note_gap(start);
  }
  if (start >= ramp_end_) {
    active_until_ = std::max(active_until_, start + cycles);
    return cycles;
  }
  const std::int64_t taken = end_of(start - begin_, cycles) - (start - begin_);
  // What the limit keeps from being done is not utilised either; not counted twice behind a pass.
  const std::int64_t end = start + taken;
  const std::int64_t lost = end - std::max(active_until_, start + cycles);
  const std::int64_t until = std::min(end, ramp_end_);
  add_gap(until - std::max<std::int64_t>(0, lost), until);
  active_until_ = std::max(active_until_, end);
  return taken;
}

// In units of 1 / (2 R kOne) cycles of work: W(x) = 2 R u x + (kOne - u) x^2.
std::int64_t DidtLimiter::end_of(std::int64_t x, std::int64_t cycles) const {
  const Int128 rise = kOne - share_;
  const Int128 flat = Int128(2) * ramp_ * share_;
  const Int128 target = flat * x + rise * x * x + Int128(2) * ramp_ * kOne * cycles;
  const Int128 at_ramp = flat * ramp_ + rise * ramp_ * ramp_;
  if (target >= at_ramp)
    return ramp_ +
           static_cast<std::int64_t>(base::ceil_div(target - at_ramp, Int128(2) * ramp_ * kOne));
  const Int128 half = Int128(ramp_) * share_;
  auto y =
      std::max(x, static_cast<std::int64_t>((root(half * half + rise * target) - half) / rise));
  while (flat * y + rise * y * y < target) ++y;
  return y;
}

void DidtLimiter::shift(std::int64_t by) {
  if (!on_ || idle_) return;
  begin_ -= by;
  ramp_end_ -= by;
  active_until_ -= by;
  for (Gap& gap : gaps_) {
    gap.start -= by;
    gap.end -= by;
  }
}

std::int64_t DidtLimiter::age() const {
  return idle_ ? 0 : std::min(active_until_ - begin_, ramp_);
}

std::int64_t DidtLimiter::idle() const {
  std::int64_t sum = 0;
  for (std::size_t i = first_gap_; i < gaps_.size(); ++i)
    sum +=
        std::max<std::int64_t>(0, gaps_[i].end - std::max(gaps_[i].start, active_until_ - window_));
  return sum;
}

}  // namespace trn3sim::models
