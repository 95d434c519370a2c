// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages that begin or end on a detailed chip: the message crosses its links while the memory of
// each detailed end moves the same bytes; it is delivered when all of that is done. Both ends start
// when the message is sent. (Approximation: a message that queues for its link has its memory
// traffic early, and the receiver's begins before the first byte can be there.)
#pragma once

#include <deque>
#include <vector>

#include "trn3sim/modules/link.hpp"
#include "trn3sim/modules/stack_traffic.hpp"

namespace trn3sim::modules {

// Traffic at one end of a message.
struct EndTraffic {
  StackTraffic* stack = nullptr;
  Traffic traffic;
};

class TransferJoin : public MessageSink, public TrafficEnd {
 public:
  // Sends `message` and starts the traffic of its ends.
  void send(Fabric& fabric, const Message& message, const std::vector<EndTraffic>& ends);
  void delivered(const Message& message) override;
  void traffic_ended(std::int32_t id) override;

 private:
  struct Open {
    Message message;  // as its sink is to get it
    std::size_t waiting = 0;
  };
  std::deque<Open> open_;
  std::vector<std::int32_t> free_;
};

}  // namespace trn3sim::modules
