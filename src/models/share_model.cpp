// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/share_model.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kWhole = ShareModel::kWholeKernel;
constexpr std::int64_t kLeastDeferred = 64;

base::Rate scaled(base::Rate rate, std::int64_t numerator, std::int64_t denominator) {
  return base::Rate(static_cast<std::int64_t>(Int128(rate.count()) * numerator / denominator));
}

}  // namespace

std::vector<base::Rate> water_fill(base::Rate capacity, const std::vector<base::Rate>& demands) {
  std::vector<std::size_t> order(demands.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return demands[a] < demands[b]; });
  std::vector<base::Rate> grants(demands.size());
  std::int64_t left = capacity.count();
  base::Rate fair(0);
  bool enough = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    // All that want more than their share get the same, whatever their order: the remainder of the
    // division, below one byte per second each, is left over.
    if (enough) fair = base::Rate(left / static_cast<std::int64_t>(order.size() - i));
    enough = demands[order[i]] <= fair;
    grants[order[i]] = std::min(demands[order[i]], fair);
    left -= grants[order[i]].count();
  }
  return grants;
}

ShareModel::Handle ShareModel::take_slot() {
  if (free_.empty()) {
    entries_.emplace_back();
    return static_cast<Handle>(entries_.size()) - 1;
  }
  const auto lowest = std::min_element(free_.begin(), free_.end());
  const Handle handle = *lowest;
  free_.erase(lowest);
  return handle;
}

ShareModel::Handle ShareModel::add_kernel(base::Time now, const KernelProfile& profile,
                                          base::Time hidden, const Claim& claim) {
  settle(now);
  const Handle handle = take_slot();
  Entry& e = entries_[static_cast<std::size_t>(handle)];
  e = Entry{};
  e.used = true;
  e.profile = &profile;
  e.claim = claim;
  e.data = profile.demand();
  e.demand = scaled(e.data, claim.weights.stack, kUnitWeight);
  e.full = profile.duration;
  e.grant = e.demand;
  e.average = base::average_rate(
      base::Bytes(profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes),
      std::max(profile.duration, base::Time(1)));
  const Int128 whole = std::max<std::int64_t>(profile.duration.count(), 1);
  const Int128 left = profile.duration.count() - hidden.count();
  TRN3SIM_CHECK(left >= 0, "more work hidden than there is");
  e.work = static_cast<std::int64_t>(base::ceil_div(Int128(kWhole) * left, whole));
  total_demand_ += e.demand.count();
  reallocate();
  return handle;
}

ShareModel::Handle ShareModel::add_deferred(base::Time now, const KernelProfile& profile,
                                            std::int32_t group) {
  const Handle handle = add_kernel(now, profile, base::Time(0), {group, {}});
  entries_[static_cast<std::size_t>(handle)].deferred = true;
  reallocate();
  return handle;
}

std::int64_t ShareModel::withdraw(base::Time now, Handle kernel) {
  settle(now);
  const Entry& e = entries_[static_cast<std::size_t>(kernel)];
  TRN3SIM_CHECK(e.used && e.profile != nullptr, "not a kernel");
  const std::int64_t left = e.work;
  remove(kernel);
  reallocate();
  return kWhole - left;
}

base::Time ShareModel::saved(const AheadLoads& loads, std::int64_t done) {
  return base::Time(static_cast<std::int64_t>(Int128(loads.saves.count()) * done / kWhole));
}

ShareModel::Handle ShareModel::add_flow(base::Time now, base::Rate demand, const Claim& claim) {
  settle(now);
  const Handle handle = take_slot();
  Entry& e = entries_[static_cast<std::size_t>(handle)];
  e = Entry{};
  e.used = true;
  e.claim = claim;
  e.data = e.average = demand;
  e.demand = e.grant = scaled(demand, claim.weights.stack, kUnitWeight);
  total_demand_ += e.demand.count();
  reallocate();
  return handle;
}

void ShareModel::remove_flow(base::Time now, Handle flow) {
  settle(now);
  const Entry& e = entries_[static_cast<std::size_t>(flow)];
  TRN3SIM_CHECK(e.used && e.profile == nullptr, "not a flow");
  remove(flow);
  reallocate();
}

void ShareModel::remove(Handle handle) {
  Entry& e = entries_[static_cast<std::size_t>(handle)];
  total_demand_ -= e.demand.count();
  e.used = false;
  free_.push_back(handle);
}

void ShareModel::settle(base::Time now) {
  const Int128 elapsed = (now - settled_).count();
  TRN3SIM_CHECK(elapsed >= 0, "time runs backwards");
  settled_ = now;
  if (elapsed == 0) return;
  for (Entry& e : entries_) {
    if (!e.used || e.profile == nullptr) continue;
    const Int128 full = std::max<std::int64_t>(e.full.count(), 1);
    const auto done = static_cast<std::int64_t>(std::min<Int128>(elapsed * kWhole / full, e.work));
    e.work -= done;
  }
}

void ShareModel::grant(Entry& e, base::Rate rate) {
  if (e.profile != nullptr && rate != e.grant)
    e.full = rate == e.demand ? e.profile->duration
                              : e.profile->at(scaled(rate, kUnitWeight, e.claim.weights.stack));
  e.grant = rate;
}

// One resource, in bytes of the cheapest traffic: entries and what they want of it.
struct ShareModel::Division {
  struct Part {
    const Entry* entry = nullptr;
    std::int64_t weight = kUnitWeight;  // on this resource
    base::Rate wish, grant;
  };
  std::vector<Part> first, deferred;

  void add(const Entry& e, std::int64_t weight, base::Rate wish) {
    (e.deferred ? deferred : first).push_back({&e, weight, wish, wish});
  }
  [[nodiscard]] static std::int64_t total(const std::vector<Part>& parts) {
    std::int64_t sum = 0;
    for (const Part& p : parts) sum += p.wish.count();
    return sum;
  }
  static void fill(std::vector<Part>& parts, base::Rate capacity) {
    std::vector<base::Rate> wishes;
    for (const Part& p : parts) wishes.push_back(p.wish);
    const std::vector<base::Rate> grants = water_fill(capacity, wishes);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].grant = grants[i];
  }
  // What an entry takes on average: a flow all of it, a kernel its bytes over its duration.
  [[nodiscard]] static std::int64_t taken(const Part& p) {
    if (p.entry->profile == nullptr) return p.grant.count();
    const KernelProfile& k = *p.entry->profile;
    const std::int64_t bytes = k.counts.hbm_read_bytes + k.counts.hbm_write_bytes;
    const base::Time full = k.at(scaled(p.grant, kUnitWeight, p.weight));
    const Int128 rate = Int128(bytes) * p.weight * base::kFemtosPerSecond /
                        (Int128(kUnitWeight) * std::max<std::int64_t>(full.count(), 1));
    return static_cast<std::int64_t>(std::min<Int128>(rate, p.grant.count()));
  }
  // A wish is what helps in a kernel's bursts; on average it takes less, and the others have the
  // rest. So each may have what the others leave on average, if that is more than its fair share.
  // A kernel alone has what it wishes: its profile knows the resource.
  void divide(base::Rate capacity) {
    const bool alone = first.size() == 1 && first.front().entry->profile != nullptr;
    if (total(first) > capacity.count() && !alone) fill(first, capacity);
    std::int64_t used = 0;
    for (const Part& p : first) used += taken(p);
    std::vector<base::Rate> grants;
    for (const Part& p : first) {
      const base::Rate left(capacity.count() - (used - taken(p)));
      grants.push_back(std::max(p.grant, std::min(p.wish, left)));
    }
    for (std::size_t i = 0; i < first.size(); ++i) first[i].grant = grants[i];
    const std::int64_t least = capacity.count() / kLeastDeferred;
    fill(deferred, base::Rate(std::max(capacity.count() - used, least)));
  }
};

// Lowers the wishes (of the stack) of groups whose engines cannot serve them all.
void ShareModel::divide_engines(std::vector<base::Rate>& wishes) const {
  std::int32_t groups = 0;
  for (const Entry& e : entries_)
    if (e.used) groups = std::max(groups, e.claim.group + 1);
  for (std::int32_t g = 0; g < groups; ++g) {
    Division d;
    for (const Entry& e : entries_)
      if (e.used && e.claim.group == g)
        d.add(e, e.claim.weights.engines,
              scaled(e.demand, e.claim.weights.engines, e.claim.weights.stack));
    if (Division::total(d.first) + Division::total(d.deferred) <= engines_.count()) continue;
    d.divide(engines_);
    for (const std::vector<Division::Part>* parts : {&d.first, &d.deferred})
      for (const Division::Part& p : *parts) {
        if (p.grant == p.wish) continue;
        const ByteWeights& w = p.entry->claim.weights;
        wishes[static_cast<std::size_t>(p.entry - entries_.data())] =
            scaled(p.grant, w.stack, w.engines);
      }
  }
}

void ShareModel::divide() {
  std::vector<base::Rate> wishes;
  for (const Entry& e : entries_) wishes.push_back(e.demand);
  if (engines_.count() > 0) divide_engines(wishes);
  Division d;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].used) d.add(entries_[i], entries_[i].claim.weights.stack, wishes[i]);
  const base::Rate capacity = mixed_capacity();
  if (Division::total(d.first) + Division::total(d.deferred) > capacity.count())
    d.divide(capacity);
  for (const std::vector<Division::Part>* parts : {&d.first, &d.deferred})
    for (const Division::Part& p : *parts)
      grant(entries_[static_cast<std::size_t>(p.entry - entries_.data())], p.grant);
}

base::Rate ShareModel::mixed_capacity() const {
  Int128 bytes = 0, writes = 0, apart = 0;
  for (const Entry& e : entries_) {
    if (!e.used) continue;
    bytes += e.average.count();
    writes += Int128(e.average.count()) * e.claim.weights.writes;
    apart += Int128(e.average.count()) * mix_.at(e.claim.weights.writes);
  }
  if (bytes == 0) return capacity_;
  const std::int64_t together = mix_.at(static_cast<std::int64_t>(writes / bytes));
  return scaled(capacity_, std::min(static_cast<std::int64_t>(apart / bytes), together), together);
}

bool ShareModel::fits() const {
  if (total_demand_ > mixed_capacity().count()) return false;
  return engines_.count() == 0 || total_demand_ <= engines_.count();
}

void ShareModel::reallocate() {
  const bool all = fits();
  if (!all) {
    divide();
  } else if (limited_) {
    for (Entry& e : entries_)
      if (e.used) grant(e, e.demand);
  }
  limited_ = !all;
  next_end_ = base::kTimeMax;
  for (const Entry& e : entries_)
    if (e.used && e.profile != nullptr) next_end_ = std::min(next_end_, end_of(e));
}

base::Time ShareModel::end_of(const Entry& e) const {
  const Int128 left = base::ceil_div(Int128(e.work) * e.full.count(), kWhole);
  return settled_ + base::Time(static_cast<std::int64_t>(left));
}

void ShareModel::take_finished(base::Time now, std::vector<Handle>& finished) {
  if (now < next_end_) return;
  const std::size_t before = finished.size();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
    if (!e.used || e.profile == nullptr || end_of(e) > now) continue;
    finished.push_back(static_cast<Handle>(i));
  }
  settle(now);
  for (std::size_t i = before; i < finished.size(); ++i) remove(finished[i]);
  reallocate();
}

base::Rate ShareModel::granted(Handle handle) const {
  const Entry& e = entries_[static_cast<std::size_t>(handle)];
  return e.grant == e.demand ? e.data : scaled(e.grant, kUnitWeight, e.claim.weights.stack);
}

void ShareModel::fingerprint(base::StateHash& hash, base::Time now) const {
  hash.add(settled_, now);
  hash.add(next_end_, now);
  for (const Entry& e : entries_) {
    hash.add(e.used ? 1 : 0);
    if (!e.used) continue;
    hash.add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(e.profile)));
    hash.add(e.demand.count());
    hash.add(e.grant.count());
    hash.add(e.full.count());
    hash.add(e.work);
  }
}

void ShareModel::shift(base::Time delta) {
  settled_ += delta;
  if (next_end_ != base::kTimeMax) next_end_ += delta;
}

}  // namespace trn3sim::models
