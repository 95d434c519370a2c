// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Sharing of one HBM stack and the DMA engines of its cores between running kernels and flows.
// Bandwidth is granted max-min fair (water-filling), in bytes of the cheapest traffic per second:
// first the engines of each rank to what that rank runs, then the stack to all. A kernel whose
// bytes cost DMA or HBM more gets less data out of its grant, by its weights. A kernel's speed is
// 1 / profile.at(data rate); its remaining work is a 64-bit fixed-point share of the whole kernel,
// settled only when a grant changes. Not modelled here: order of requests inside the stack (the
// bench did that).
#pragma once

#include <cstdint>
#include <vector>

#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/state_hash.hpp"
#include "trn3sim/models/kernel_profile.hpp"
#include "trn3sim/models/share_weights.hpp"

namespace trn3sim::models {

// Max-min fair grants of `capacity` for `demands`, in bytes per second: everyone gets its demand if
// the sum fits, else the largest demands share what the smaller ones leave. Rounds down; the result
// does not depend on the order of equal demands.
std::vector<base::Rate> water_fill(base::Rate capacity, const std::vector<base::Rate>& demands);

// Who moves data on a stack: group `group` of DMA engines, at these costs.
struct Claim {
  std::int32_t group = 0;  // of the rank, 0 for the first on the stack
  ByteWeights weights;
};

class ShareModel {
 public:
  static constexpr std::int64_t kWholeKernel = std::int64_t{1} << 50;
  using Handle = std::int32_t;

  // `engines`: what the DMA engines of one group move, 0 if that is no limit of its own.
  explicit ShareModel(base::Rate capacity, base::Rate engines = base::Rate(0))
      : capacity_(capacity), engines_(engines) {}

  // What the reads and writes of all that is on the stack cost together; without it each costs what
  // it would alone.
  void use_mix(const MixWeights& mix) { mix_ = mix; }

  // A kernel starts now; `hidden` of its uncontended duration is already done (prefetched).
  Handle add_kernel(base::Time now, const KernelProfile& profile, base::Time hidden,
                    const Claim& claim = {});
  // Loads that get what the others leave on average, and at least 1/64 of the capacity: others are
  // never so dense that nothing passes between their bursts.
  Handle add_deferred(base::Time now, const KernelProfile& profile, std::int32_t group = 0);
  // Removes a kernel before its end. Returns the share of it that was done, in 1/kWholeKernel.
  std::int64_t withdraw(base::Time now, Handle kernel);
  // A flow that wants `demand` until it is removed.
  Handle add_flow(base::Time now, base::Rate demand, const Claim& claim = {});
  void remove_flow(base::Time now, Handle flow);

  // Earliest end of a running kernel under the current grants; kTimeMax if none runs.
  [[nodiscard]] base::Time next_end() const { return next_end_; }
  // Removes the kernels that are done at `now` and appends their handles, ascending.
  void take_finished(base::Time now, std::vector<Handle>& finished);
  // Data rate granted to a flow or kernel now.
  [[nodiscard]] base::Rate granted(Handle handle) const;
  // What a kernel is shorter when that share of its loads ahead is done.
  [[nodiscard]] static base::Time saved(const AheadLoads& loads, std::int64_t done);
  [[nodiscard]] base::Rate capacity() const { return capacity_; }

  // State relative to `now`, for the detection of repetition: what runs, how much of it is left.
  void fingerprint(base::StateHash& hash, base::Time now) const;
  // Lets `delta` pass without progress: everything continues that much later.
  void shift(base::Time delta);

 private:
  struct Entry {
    const KernelProfile* profile = nullptr;  // nullptr: flow
    Claim claim;
    base::Rate data;           // demand, unweighted
    base::Rate average;        // of data, with nothing else on the stack
    base::Rate demand, grant;  // of the stack: data times the weight
    base::Time full;           // duration of the whole kernel at the current grant
    std::int64_t work = 0;     // remaining, in units of 2^-50 of the kernel
    bool used = false, deferred = false;
  };
  // What entries of one kind want of one resource and get.
  struct Division;
  Handle take_slot();
  void remove(Handle handle);
  void settle(base::Time now);
  void reallocate();
  [[nodiscard]] bool fits() const;
  // The capacity for what is on the stack now: its reads and writes together may cost more than
  // each entry's weight says.
  [[nodiscard]] base::Rate mixed_capacity() const;
  void divide();
  void divide_engines(std::vector<base::Rate>& wishes) const;
  void grant(Entry& entry, base::Rate rate);
  [[nodiscard]] base::Time end_of(const Entry& entry) const;

  base::Rate capacity_, engines_;
  MixWeights mix_;
  std::vector<Entry> entries_;
  std::vector<Handle> free_;
  base::Time settled_;
  base::Time next_end_ = base::kTimeMax;
  std::int64_t total_demand_ = 0;
  bool limited_ = false;  // some grant is below its demand
};

}  // namespace trn3sim::models
