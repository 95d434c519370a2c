// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Length of the union of busy intervals that arrive per engine, in order within an engine.
#pragma once

#include <cstddef>
#include <vector>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::models {

class BusyUnion {
 public:
  void reset() {
    pending_.clear();
    runs_.clear();
    total_ = base::Time(0);
  }
  void add(base::Time start, base::Time end) {
    if (start >= end) return;
    if (pending_.empty() || start < pending_.back().start) runs_.push_back(pending_.size());
    pending_.push_back({start, end});
  }
  // No interval added later starts before `horizon`: settles everything up to it.
  void settle(base::Time horizon);
  // Length of the union of everything settled.
  [[nodiscard]] base::Time total() const { return total_; }

 private:
  struct Interval {
    base::Time start, end;
  };
  void merge_runs();

  std::vector<Interval> pending_, merged_;
  std::vector<std::size_t> runs_;  // where ascending runs begin in pending_
  base::Time total_;
};

}  // namespace trn3sim::models
