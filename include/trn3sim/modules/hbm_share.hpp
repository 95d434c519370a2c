// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One HBM stack of the machine: a shell around models::ShareModel with one wake event. A wake is
// never cancelled: an early one finds nothing due and re-arms.
#pragma once

#include <systemc>
#include <vector>

#include "trn3sim/models/share_model.hpp"
#include "trn3sim/modules/context.hpp"

namespace trn3sim::modules {

// Told when a kernel part on a stack has ended.
class KernelEnd {
 public:
  virtual ~KernelEnd() = default;
  virtual void kernel_part_ended() = 0;
};

class HbmShare : public sc_core::sc_module {
 public:
  using SC_CURRENT_USER_MODULE = HbmShare;
  // `engines`: see models::ShareModel.
  HbmShare(const sc_core::sc_module_name& name, base::Rate capacity, base::Rate engines,
           const Context& context);

  void use_mix(const models::MixWeights& mix) { model_.use_mix(mix); }
  models::ShareModel::Handle start_kernel(const models::KernelProfile& profile, base::Time hidden,
                                          const models::Claim& claim, KernelEnd& end);
  models::ShareModel::Handle start_deferred(const models::KernelProfile& profile,
                                            std::int32_t group, KernelEnd& end);
  // Stops a kernel that has not ended. Returns the share done, in 1/ShareModel::kWholeKernel.
  std::int64_t withdraw(models::ShareModel::Handle kernel);
  models::ShareModel::Handle open_flow(base::Rate demand, const models::Claim& claim);
  void close_flow(models::ShareModel::Handle flow);
  [[nodiscard]] base::Rate granted(models::ShareModel::Handle flow) const {
    return model_.granted(flow);
  }
  [[nodiscard]] base::Time now() const { return context_.now(); }
  [[nodiscard]] std::int64_t events() const { return events_; }
  void fingerprint(base::StateHash& hash) const { model_.fingerprint(hash, context_.now()); }
  // Everything continues `delta` later; the pending wake finds nothing due and re-arms.
  void shift(base::Time delta) { model_.shift(delta); }

 private:
  models::ShareModel::Handle started(models::ShareModel::Handle handle, KernelEnd& end);
  void step();
  void arm();

  const Context& context_;
  models::ShareModel model_;
  std::vector<KernelEnd*> ends_;  // by handle
  std::vector<models::ShareModel::Handle> finished_;
  sc_core::sc_event wake_;
  base::Time armed_for_ = base::kTimeMax;
  std::int64_t events_ = 0;
};

}  // namespace trn3sim::modules
