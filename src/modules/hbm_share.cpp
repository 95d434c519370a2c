// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/hbm_share.hpp"

namespace trn3sim::modules {

HbmShare::HbmShare(const sc_core::sc_module_name& name, base::Rate capacity, const Context& context)
    : sc_module(name), context_(context), model_(capacity) {
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

void HbmShare::start_kernel(const models::KernelProfile& profile, base::Time hidden,
                            KernelEnd& end) {
  const auto handle = static_cast<std::size_t>(model_.add_kernel(context_.now(), profile, hidden));
  if (ends_.size() <= handle) ends_.resize(handle + 1, nullptr);
  ends_[handle] = &end;
  arm();
}

models::ShareModel::Handle HbmShare::open_flow(base::Rate demand) {
  const models::ShareModel::Handle handle = model_.add_flow(context_.now(), demand);
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
