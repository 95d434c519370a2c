// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Sharing of one HBM stack and its DMA engines between running kernels and flows. Bandwidth is
// granted max-min fair (water-filling). A kernel's speed is 1 / profile.at(granted rate); its
// remaining work is a 64-bit fixed-point share of the whole kernel, settled only when a grant
// changes. Not modelled here: order of requests inside the stack (the bench did that).
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/state_hash.hpp"
#include "trn3sim/models/kernel_profile.hpp"

namespace trn3sim::models {

// Max-min fair grants of `capacity` for `demands`, in bytes per second: everyone gets its demand if
// the sum fits, else the largest demands share what the smaller ones leave. Rounds down; the result
// does not depend on the order of equal demands.
std::vector<base::Rate> water_fill(base::Rate capacity, const std::vector<base::Rate>& demands);

class ShareModel {
 public:
  using Handle = std::int32_t;

  explicit ShareModel(base::Rate capacity) : capacity_(capacity) {}

  // A kernel starts now; `hidden` of its uncontended duration is already done (prefetched).
  Handle add_kernel(base::Time now, const KernelProfile& profile, base::Time hidden);
  // A flow that wants `demand` until it is removed.
  Handle add_flow(base::Time now, base::Rate demand);
  void remove_flow(base::Time now, Handle flow);

  // Earliest end of a running kernel under the current grants; kTimeMax if none runs.
  [[nodiscard]] base::Time next_end() const { return next_end_; }
  // Removes the kernels that are done at `now` and appends their handles, ascending.
  void take_finished(base::Time now, std::vector<Handle>& finished);
  // Bandwidth granted to a flow or kernel now.
  [[nodiscard]] base::Rate granted(Handle handle) const;
  [[nodiscard]] base::Rate capacity() const { return capacity_; }

  // State relative to `now`, for the detection of repetition: what runs, how much of it is left.
  void fingerprint(base::StateHash& hash, base::Time now) const;
  // Lets `delta` pass without progress: everything continues that much later.
  void shift(base::Time delta);

 private:
  struct Entry {
    const KernelProfile* profile = nullptr;  // nullptr: flow
    base::Rate demand, grant;
    base::Time full;        // duration of the whole kernel at the current grant
    std::int64_t work = 0;  // remaining, in units of 2^-50 of the kernel
    bool used = false;
  };
  Handle take_slot();
  void settle(base::Time now);
  void reallocate();
  [[nodiscard]] base::Time end_of(const Entry& entry) const;

  base::Rate capacity_;
  std::vector<Entry> entries_;
  std::vector<Handle> free_;
  base::Time settled_;
  base::Time next_end_ = base::kTimeMax;
  std::int64_t total_demand_ = 0;
  bool limited_ = false;  // some grant is below its demand
};

}  // namespace trn3sim::models
