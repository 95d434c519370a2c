// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link. Messages are served one after another; over several hops they cut
// through: the head moves on after the link's latency while the tail is still being sent, and a
// link stays busy until the tail has passed. An idle path of links with bandwidths b and latencies
// l thus takes sum(l) + bytes / min(b).
#pragma once

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/state_hash.hpp"

namespace trn3sim::models {

class LinkModel {
 public:
  LinkModel(base::Rate bandwidth, base::Time latency) : bandwidth_(bandwidth), latency_(latency) {}

  struct Transit {
    base::Time head_out;  // the head is at the far end
    base::Time tail_out;  // the last byte is at the far end
  };
  [[nodiscard]] bool idle(base::Time now) const { return now >= busy_until_; }
  [[nodiscard]] base::Time busy_until() const { return busy_until_; }

  // Sends `bytes` now (the link must be idle). `cap`: what both ends can source and sink; zero: no
  // limit. `tail_in`: when the last byte reaches this link (now or earlier if it is all here).
  // `queued_since`: when the message asked.
  Transit send(base::Time now, base::Bytes bytes, base::Rate cap, base::Time tail_in,
               base::Time queued_since);

  // When it becomes free, relative to `now`; how long it has been idle does not matter.
  void fingerprint(base::StateHash& hash, base::Time now) const {
    hash.add(idle(now) ? 0 : (busy_until_ - now).count());
  }
  void shift(base::Time delta) { busy_until_ += delta; }
  // Calls f(counter) for each counter, as std::int64_t&.
  template <class F>
  void visit_counters(F&& f) {
    std::int64_t values[] = {bytes_.count(), busy_.count(), queued_.count()};
    for (std::int64_t& v : values) f(v);
    bytes_ = base::Bytes(values[0]);
    busy_ = base::Time(values[1]);
    queued_ = base::Time(values[2]);
  }

  [[nodiscard]] base::Bytes bytes() const { return bytes_; }
  [[nodiscard]] base::Time busy() const { return busy_; }
  [[nodiscard]] base::Time queued() const { return queued_; }

 private:
  base::Rate bandwidth_;
  base::Time latency_;
  base::Time busy_until_, busy_, queued_;
  base::Bytes bytes_;
};

}  // namespace trn3sim::models
