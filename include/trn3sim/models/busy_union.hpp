// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Length of the union of busy intervals that arrive per engine, in order within an engine.
#pragma once

#include <vector>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::models {

class BusyUnion {
 public:
  void reset() {
    pending_.clear();
    total_ = base::Time(0);
  }
  void add(base::Time start, base::Time end) {
    if (start < end) pending_.push_back({start, end});
  }
  // No interval added later starts before `horizon`: settles everything up to it.
  void settle(base::Time horizon);
  // Length of the union of everything settled.
  [[nodiscard]] base::Time total() const { return total_; }

 private:
  struct Interval {
    base::Time start, end;
  };
  std::vector<Interval> pending_;
  base::Time total_;
};

}  // namespace trn3sim::models
