// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/kernel_profile.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

// 1/rate as a fixed-point number; fits 2^90 for every positive rate.
Int128 inverse(base::Rate rate) {
  return (Int128(1) << 90) / rate.count();
}

bool moves_data(const std::vector<ProfilePoint>& curve) {
  return !curve.empty() && curve.back().served.count() > 0;
}

}  // namespace

base::Time KernelProfile::at(base::Rate served) const {
  if (!moves_data(curve)) return duration;
  if (served >= curve.back().served) return curve.back().duration;
  TRN3SIM_CHECK(served.count() > 0, "a kernel that moves data needs a positive rate");
  const auto above = std::upper_bound(
      curve.begin(), curve.end(), served,
      [](base::Rate rate, const ProfilePoint& point) { return rate < point.served; });
  if (above == curve.begin()) {
    // All its data binds: nothing makes the time grow faster with 1 / rate.
    const Int128 bytes = counts.hbm_read_bytes + counts.hbm_write_bytes;
    const Int128 femtos = bytes * base::kFemtosPerSecond;
    const Int128 time = above->duration.count() + base::ceil_div(femtos, served.count()) -
                        femtos / above->served.count();
    TRN3SIM_CHECK(time < base::kTimeMax.count(), "kernel time passes the largest time");
    return base::Time(static_cast<std::int64_t>(time));
  }
  const ProfilePoint& slow = *(above - 1);
  if (slow.served == served) return slow.duration;
  // Share of the way from the faster to the slower point in 1/rate, in 1/2^36. Only the share is
  // rounded (down), so the result is monotone in the rate.
  const Int128 span = inverse(slow.served) - inverse(above->served);
  const Int128 share = ((inverse(served) - inverse(above->served)) << 36) / span;
  const Int128 extra = slow.duration.count() - above->duration.count();
  return base::Time(
      static_cast<std::int64_t>(above->duration.count() + extra * share / (Int128(1) << 36)));
}

base::Rate KernelProfile::demand() const {
  if (!moves_data(curve)) return base::Rate();
  const Int128 unlimited = curve.back().duration.count();
  for (const ProfilePoint& point : curve) {
    if (Int128(point.duration.count()) * 1000 <= unlimited * 1001) return point.served;
  }
  return curve.back().served;
}

KernelProfile ahead_profile(const AheadLoads& ahead) {
  KernelProfile p;
  p.duration = ahead.duration;
  p.counts.hbm_read_bytes = p.counts.dma_bytes = ahead.bytes.count();
  p.curve.push_back(
      {base::average_rate(ahead.bytes, std::max(ahead.duration, base::Time(1))), ahead.duration});
  return p;
}

}  // namespace trn3sim::models
