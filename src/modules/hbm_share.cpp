// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/hbm_share.hpp"

namespace trn3sim::modules {

HbmShare::HbmShare(const sc_core::sc_module_name& name, base::Rate capacity, base::Rate engines,
                   const Context& context)
    : sc_module(name), context_(context), model_(capacity, engines) {
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

models::ShareModel::Handle HbmShare::start_kernel(const models::KernelProfile& profile,
                                                  base::Time hidden, const models::Claim& claim,
                                                  KernelEnd& end) {
  return started(model_.add_kernel(context_.now(), profile, hidden, claim), end);
}

models::ShareModel::Handle HbmShare::start_deferred(const models::KernelProfile& profile,
                                                    std::int32_t group, KernelEnd& end) {
  return started(model_.add_deferred(context_.now(), profile, group), end);
}

models::ShareModel::Handle HbmShare::started(models::ShareModel::Handle handle, KernelEnd& end) {
  const auto at = static_cast<std::size_t>(handle);
  if (ends_.size() <= at) ends_.resize(at + 1, nullptr);
  ends_[at] = &end;
  arm();
  return handle;
}

std::int64_t HbmShare::withdraw(models::ShareModel::Handle kernel) {
  const std::int64_t done = model_.withdraw(context_.now(), kernel);
  arm();
  return done;
}

models::ShareModel::Handle HbmShare::open_flow(base::Rate demand, const models::Claim& claim) {
  const models::ShareModel::Handle handle = model_.add_flow(context_.now(), demand, claim);
  arm();
  return handle;
}

void HbmShare::close_flow(models::ShareModel::Handle flow) {
  model_.remove_flow(context_.now(), flow);
  arm();
}

void HbmShare::step() {
  ++events_;
  const base::Time now = context_.now();
  if (now >= armed_for_) armed_for_ = base::kTimeMax;
  finished_.clear();
  model_.take_finished(now, finished_);
  // Ends may start the next kernel on this stack, which changes finished_'s owner: take a copy.
  std::vector<KernelEnd*> ended;
  for (models::ShareModel::Handle h : finished_)
    ended.push_back(ends_[static_cast<std::size_t>(h)]);
  for (KernelEnd* end : ended) end->kernel_part_ended();
  arm();
}

void HbmShare::arm() {
  const base::Time next = model_.next_end();
  if (next >= armed_for_) return;  // the pending wake looks again
  armed_for_ = next;
  notify_at(wake_, context_, next);
}

}  // namespace trn3sim::modules
