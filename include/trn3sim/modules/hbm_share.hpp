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
  HbmShare(const sc_core::sc_module_name& name, base::Rate capacity, const Context& context);

  void start_kernel(const models::KernelProfile& profile, base::Time hidden, KernelEnd& end);
  models::ShareModel::Handle open_flow(base::Rate demand);
  void close_flow(models::ShareModel::Handle flow);
  [[nodiscard]] base::Rate granted(models::ShareModel::Handle flow) const {
    return model_.granted(flow);
  }
  [[nodiscard]] std::int64_t events() const { return events_; }
  void fingerprint(base::StateHash& hash) const { model_.fingerprint(hash, context_.now()); }
  // Everything continues `delta` later; the pending wake finds nothing due and re-arms.
  void shift(base::Time delta) { model_.shift(delta); }

 private:
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
