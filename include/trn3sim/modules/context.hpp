// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What modules share: the epoch that separates benches and the machine in one SystemC kernel.
// Modules and models see time since the epoch only, so no result depends on what ran before.
#pragma once

#include <systemc>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::modules {

inline sc_core::sc_time to_sc(base::Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.count()));
}
inline base::Time from_sc(const sc_core::sc_time& t) {
  return base::Time(static_cast<std::int64_t>(t.value()));
}

// The kernel's resolution is 1 fs, so sc_time values are femtoseconds.
class Context {
 public:
  [[nodiscard]] base::Time now() const { return from_sc(sc_core::sc_time_stamp()) - epoch_; }
  void restart() { epoch_ = from_sc(sc_core::sc_time_stamp()); }

 private:
  base::Time epoch_;
};

// Schedules `event` at epoch time `at` (not before now).
inline void notify_at(sc_core::sc_event& event, const Context& context, base::Time at) {
  const base::Time delay = at - context.now();
  event.notify(to_sc(delay.count() > 0 ? delay : base::Time(0)));
}

}  // namespace trn3sim::modules
