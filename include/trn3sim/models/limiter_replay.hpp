// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether replayed kernels find the limiter of TensorE's current released: what DidtLimiter is to
// instructions, from a profile's TensorEntry. A kernel whose TensorE was idle for longer than
// `window x (1 - rearm_share)`, idle time within the window of the kernel before included, enters
// cold. Else the ramp has gone on since the limit was last engaged; at age x of a ramp R the rest
// costs (1 - x/R)^2 of the whole, so the kernel gets the share 1 - (1 - x/R)^2 of its hot saving.
#pragma once

#include <cstdint>

#include "trn3sim/base/state_hash.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::models {

class LimiterReplay {
 public:
  static constexpr std::int64_t kWhole = 1 << 20;

  // No limiter.
  LimiterReplay() = default;
  explicit LimiterReplay(const config::ThrottleSpec& spec);

  // A kernel starts, `hidden` of it done before: its share of the hot saving, in 1 / kWhole.
  std::int64_t enter(base::Time now, const KernelProfile& profile, base::Time hidden);
  // The kernel that has entered last ends.
  void leave(base::Time now);
  // What the limiter costs it, and what passes on the array take longer, mean over cores.
  [[nodiscard]] base::Time cost() const;
  [[nodiscard]] base::Time passes() const;
  // What it is shorter than with a cold entry.
  [[nodiscard]] base::Time saved() const;

  // State that can matter later, relative to `now`.
  void fingerprint(base::StateHash& hash, base::Time now) const;
  // Goes on as if `delta` had passed.
  void shift(base::Time delta) { ended_ += delta; }

 private:
  base::Time ramp_, idle_limit_;
  const KernelProfile* running_ = nullptr;
  std::int64_t share_ = 0;             // of the running kernel
  base::Time entry_age_, entry_idle_;  // likewise, if the share is above 0
  bool worked_ = false;                // any kernel on TensorE has ended
  base::Time ended_, age_, idle_;      // the last work of TensorE
};

}  // namespace trn3sim::models
