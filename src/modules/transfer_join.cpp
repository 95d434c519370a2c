// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/transfer_join.hpp"

namespace trn3sim::modules {

void TransferJoin::send(Fabric& fabric, const Message& message,
                        const std::vector<EndTraffic>& ends) {
  std::int32_t id;
  if (free_.empty()) {
    id = static_cast<std::int32_t>(open_.size());
    open_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  open_[static_cast<std::size_t>(id)] = {message, 1 + ends.size()};
  Message crossing = message;
  crossing.sink = this;
  crossing.queue = id;
  fabric.send(crossing);
  for (const EndTraffic& end : ends) end.stack->inject(end.traffic, *this, id);
}

void TransferJoin::delivered(const Message& message) {
  traffic_ended(message.queue);
}

void TransferJoin::traffic_ended(std::int32_t id) {
  Open& open = open_[static_cast<std::size_t>(id)];
  if (--open.waiting > 0) return;
  const Message message = open.message;
  free_.push_back(id);
  message.sink->delivered(message);
}

}  // namespace trn3sim::modules
