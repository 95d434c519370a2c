// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/link_model.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {

LinkModel::Transit LinkModel::send(base::Time now, base::Bytes bytes, base::Rate cap,
                                   base::Time tail_in, base::Time queued_since) {
  TRN3SIM_CHECK(idle(now), "a busy link was asked to send");
  const base::Rate rate = cap.count() > 0 ? std::min(cap, bandwidth_) : bandwidth_;
  const base::Time end = std::max(now + base::transfer_time(bytes, rate), tail_in);
  busy_ += end - now;
  queued_ += now - queued_since;
  bytes_ += bytes;
  busy_until_ = end;
  return {now + latency_, end + latency_};
}

}  // namespace trn3sim::models
