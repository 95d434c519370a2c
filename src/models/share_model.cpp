// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/share_model.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kWhole = std::int64_t{1} << 50;  // work units of a whole kernel

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
                                          base::Time hidden) {
  settle(now);
  const Handle handle = take_slot();
  Entry& e = entries_[static_cast<std::size_t>(handle)];
  e = Entry{};
  e.used = true;
  e.profile = &profile;
  e.demand = profile.demand();
  e.full = profile.duration;
  e.grant = e.demand;
  const Int128 whole = std::max<std::int64_t>(profile.duration.count(), 1);
  const Int128 left = profile.duration.count() - hidden.count();
  TRN3SIM_CHECK(left >= 0, "more work hidden than there is");
  e.work = static_cast<std::int64_t>(base::ceil_div(Int128(kWhole) * left, whole));
  total_demand_ += e.demand.count();
  reallocate();
  return handle;
}

ShareModel::Handle ShareModel::add_flow(base::Time now, base::Rate demand) {
  settle(now);
  const Handle handle = take_slot();
  Entry& e = entries_[static_cast<std::size_t>(handle)];
  e = Entry{};
  e.used = true;
  e.demand = e.grant = demand;
  total_demand_ += demand.count();
  reallocate();
  return handle;
}

void ShareModel::remove_flow(base::Time now, Handle flow) {
  settle(now);
  Entry& e = entries_[static_cast<std::size_t>(flow)];
  TRN3SIM_CHECK(e.used && e.profile == nullptr, "not a flow");
  total_demand_ -= e.demand.count();
  e.used = false;
  free_.push_back(flow);
  reallocate();
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

void ShareModel::reallocate() {
  const bool fits = total_demand_ <= capacity_.count();
  if (!fits || limited_) {
    std::vector<base::Rate> demands;
    for (const Entry& e : entries_)
      if (e.used) demands.push_back(e.demand);
    const std::vector<base::Rate> grants = water_fill(capacity_, demands);
    std::size_t i = 0;
    for (Entry& e : entries_) {
      if (!e.used) continue;
      // The profile of a kernel alone knows the stack; a flow alone does not.
      const bool alone = demands.size() == 1 && e.profile != nullptr;
      const base::Rate grant = fits || alone ? e.demand : grants[i];
      ++i;
      if (e.profile != nullptr && grant != e.grant)
        e.full = grant == e.demand ? e.profile->duration : e.profile->at(grant);
      e.grant = grant;
    }
    limited_ = !fits;
  }
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
  for (std::size_t i = before; i < finished.size(); ++i) {
    Entry& e = entries_[static_cast<std::size_t>(finished[i])];
    total_demand_ -= e.demand.count();
    e.used = false;
    free_.push_back(finished[i]);
  }
  reallocate();
}

base::Rate ShareModel::granted(Handle handle) const {
  return entries_[static_cast<std::size_t>(handle)].grant;
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
