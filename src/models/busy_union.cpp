// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/busy_union.hpp"

#include <algorithm>
#include <iterator>

namespace trn3sim::models {

// Intervals come in one ascending run per engine, so merging beats sorting.
void BusyUnion::merge_runs() {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  const auto at = [this](std::size_t run) {
    return pending_.begin() +
           static_cast<std::ptrdiff_t>(run < runs_.size() ? runs_[run] : pending_.size());
  };
  while (runs_.size() > 1) {
    std::vector<std::size_t> longer;
    merged_.clear();
    for (std::size_t r = 0; r < runs_.size(); r += 2) {
      longer.push_back(merged_.size());
      std::merge(at(r), at(r + 1), at(r + 1), at(r + 2), std::back_inserter(merged_), earlier);
    }
    pending_.swap(merged_);
    runs_.swap(longer);
  }
}

void BusyUnion::settle(base::Time horizon) {
  merge_runs();
  std::vector<Interval> rest;
  base::Time covered(INT64_MIN);
  for (const Interval& i : pending_) {
    const base::Time start = std::max(i.start, covered);
    const base::Time end = std::min(i.end, horizon);
    if (start < end) {
      total_ += end - start;
      covered = end;
    }
    if (i.end <= horizon) continue;
    const base::Time from = std::max(i.start, horizon);
    if (!rest.empty() && from <= rest.back().end)
      rest.back().end = std::max(rest.back().end, i.end);
    else
      rest.push_back({from, i.end});
  }
  pending_.swap(rest);
  runs_.clear();
  if (!pending_.empty()) runs_.push_back(0);
}

}  // namespace trn3sim::models
