// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/kernel_profile.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {

base::Time KernelProfile::at(base::Rate served) const {
  if (curve.empty()) return duration;
  if (served >= curve.back().served) return curve.back().duration;
  TRN3SIM_CHECK(served.count() > 0, "a kernel that moves data needs a positive rate");
  const auto above = std::upper_bound(
      curve.begin(), curve.end(), served,
      [](base::Rate rate, const ProfilePoint& point) { return rate < point.served; });
  if (above == curve.begin()) {
    // Bound by its data: the time is proportional to 1/rate.
    return base::Time(static_cast<std::int64_t>(
        base::ceil_div(Int128(above->duration.count()) * above->served.count(), served.count())));
  }
  const ProfilePoint& low = *(above - 1);
  if (low.served == served) return low.duration;
  // Linear in x = 1/rate between low (x larger) and high:
  // share = (1/r - 1/high) / (1/low - 1/high) = low (high - r) / (r (high - low)).
  const Int128 l = low.served.count();
  const Int128 h = above->served.count();
  const Int128 r = served.count();
  const Int128 extra = low.duration.count() - above->duration.count();
  // Rates below 2^43 (8.8 TB/s) with times below 2^63 would overflow a single product; the ratio in
  // 1/2^40 keeps the error below a millionth of a millionth of the difference.
  const Int128 share = ((l * (h - r)) << 40) / (r * (h - l));
  return base::Time(static_cast<std::int64_t>(above->duration.count() + ((extra * share) >> 40)));
}

base::Rate KernelProfile::demand() const {
  if (curve.empty()) return base::Rate();
  const Int128 unlimited = curve.back().duration.count();
  for (const ProfilePoint& point : curve) {
    if (Int128(point.duration.count()) * 1000 <= unlimited * 1001) return point.served;
  }
  return curve.back().served;
}

}  // namespace trn3sim::models
