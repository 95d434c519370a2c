// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/limiter_replay.hpp"

#include <algorithm>
#include <cmath>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

base::Time part(base::Time time, std::int64_t share) {
  return base::Time(
      static_cast<std::int64_t>(Int128(time.count()) * share / LimiterReplay::kWhole));
}

}  // namespace

LimiterReplay::LimiterReplay(const config::ThrottleSpec& spec) {
  if (spec.start_share >= 1) return;
  ramp_ = spec.ramp;
  idle_limit_ =
      base::Time(std::llround((1 - spec.rearm_share) * static_cast<double>(spec.window.count())));
}

std::int64_t LimiterReplay::enter(base::Time now, const KernelProfile& profile, base::Time hidden) {
  running_ = &profile;
  share_ = 0;
  entry_age_ = entry_idle_ = base::Time(0);
  const TensorEntry& e = profile.tensor;
  if (!worked_ || e.age.count() == 0) return 0;
  const base::Time gap = now - ended_ + std::max(base::Time(0), e.head - hidden);
  if (idle_ + gap > idle_limit_) return 0;
  entry_idle_ = idle_ + gap;
  entry_age_ = std::min(ramp_, age_ + gap);
  const std::int64_t left = (ramp_ - entry_age_).count();
  const auto rest = static_cast<std::int64_t>(Int128(left) * kWhole / ramp_.count());
  share_ = kWhole - static_cast<std::int64_t>(Int128(rest) * rest / kWhole);
  return share_;
}

void LimiterReplay::leave(base::Time now) {
  TRN3SIM_CHECK(running_ != nullptr, "no kernel runs");
  const TensorEntry& e = running_->tensor;
  const bool one_ramp = e.head + e.age + e.tail >= running_->duration;  // never engaged again
  running_ = nullptr;
  if (e.age.count() == 0) return;
  worked_ = true;
  ended_ = now - e.tail;
  age_ = e.age;
  idle_ = e.idle;
  if (share_ == 0 || !one_ramp) return;
  age_ = std::min(ramp_, age_ + entry_age_);
  idle_ = std::min(idle_limit_, idle_ + entry_idle_);
}

base::Time LimiterReplay::cost() const {
  return running_ == nullptr ? base::Time(0) : running_->tensor.cost - saved();
}

base::Time LimiterReplay::passes() const {
  if (running_ == nullptr) return base::Time(0);
  return running_->tensor.passes - part(running_->tensor.passes_less, share_);
}

base::Time LimiterReplay::saved() const {
  return running_ == nullptr ? base::Time(0) : part(running_->tensor.saves, share_);
}

void LimiterReplay::fingerprint(base::StateHash& hash, base::Time now) const {
  if (running_ != nullptr) {
    hash.add(share_);
    hash.add(entry_age_.count());
    hash.add(entry_idle_.count());
  }
  // TensorE idle for too long: the next entry is cold, whatever else.
  const bool matters = worked_ && idle_ + (now - ended_) <= idle_limit_;
  hash.add(matters ? 1 : 0);
  if (!matters) return;
  hash.add((now - ended_).count());
  hash.add(age_.count());
  hash.add(idle_.count());
}

}  // namespace trn3sim::models
