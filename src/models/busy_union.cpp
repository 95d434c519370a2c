// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/busy_union.hpp"

#include <algorithm>

namespace trn3sim::models {

void BusyUnion::settle(base::Time horizon) {
  std::sort(pending_.begin(), pending_.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> rest;
  base::Time covered(INT64_MIN);
  for (const Interval& i : pending_) {
    const base::Time start = std::max(i.start, covered);
    const base::Time end = std::min(i.end, horizon);
    if (start < end) {
      total_ += end - start;
      covered = end;
    }
    if (i.end > horizon) rest.push_back({std::max(i.start, horizon), i.end});
  }
  pending_.swap(rest);
}

}  // namespace trn3sim::models
