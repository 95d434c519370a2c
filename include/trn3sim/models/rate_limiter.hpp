// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Serves requests in order at a fixed rate. Exact: the end of a busy period is its start plus
// bytes / rate of the whole period, rounded up once.
#pragma once

#include <algorithm>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::models {

class RateLimiter {
 public:
  // Rate 0: no limit.
  void reset(base::Rate rate) {
    rate_ = rate;
    begin_ = end_ = base::Time(0);
    bytes_ = 0;
  }
  struct Slot {
    base::Time start, end;
  };
  // `now` ascends.
  Slot serve(base::Time now, std::int64_t bytes) {
    if (rate_.count() == 0) return {now, now};
    if (now > end_) {
      begin_ = end_ = now;
      bytes_ = 0;
    }
    const base::Time start = end_;
    bytes_ += bytes;
    end_ = begin_ + base::transfer_time(base::Bytes(bytes_), rate_);
    return {start, end_};
  }

 private:
  base::Rate rate_;
  base::Time begin_, end_;
  std::int64_t bytes_ = 0;
};

}  // namespace trn3sim::models
