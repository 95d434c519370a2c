// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Host side of one rank: timed delays, and memory operations over the chip's PCIe link and the
// instance's storage, which are links of the fabric.
#pragma once

#include <systemc>

#include "trn3sim/modules/cc_core.hpp"
#include "trn3sim/modules/link.hpp"

namespace trn3sim::modules {

class HostPort : public sc_core::sc_module, public MessageSink {
 public:
  using SC_CURRENT_USER_MODULE = HostPort;
  HostPort(const sc_core::sc_module_name& name, const Context& context, TransferEnd& end)
      : sc_module(name), context_(context), end_(end) {
    SC_METHOD(step);
    sensitive << wake_;
    dont_initialize();
  }

  // One operation at a time.
  void delay(std::int32_t queue, base::Time duration) {
    queue_ = queue;
    due_ = context_.now() + duration;
    notify_at(wake_, context_, due_);
  }
  void fingerprint(base::StateHash& hash) const { hash.add(due_, context_.now()); }
  void shift(base::Time delta) {
    if (due_ != base::kTimeMax) due_ += delta;
  }
  void delivered(const Message& message) override { end_.transfer_ended(message.queue); }

 private:
  void step() {
    if (due_ == base::kTimeMax) return;
    if (context_.now() < due_) {  // shifted meanwhile
      notify_at(wake_, context_, due_);
      return;
    }
    due_ = base::kTimeMax;
    end_.transfer_ended(queue_);
  }

  const Context& context_;
  TransferEnd& end_;
  std::int32_t queue_ = 0;
  base::Time due_ = base::kTimeMax;
  sc_core::sc_event wake_;
};

}  // namespace trn3sim::modules
