// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Links of the fabric and the messages that cross them. A request made now is granted in the next
// delta, in order of (class, order), so the order in which processes run cannot change a result.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "trn3sim/models/link_model.hpp"
#include "trn3sim/modules/context.hpp"
#include "trn3sim/topology/graph.hpp"

namespace trn3sim::modules {

struct Message;

// Told when the last byte of a message has arrived.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void delivered(const Message& message) = 0;
};

// Asked for the rate of a message when its first link takes it: by then all flows that open or
// close at that instant have done so, in whatever order.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  [[nodiscard]] virtual base::Rate rate(const Message& message) const = 0;
};

struct Message {
  const topology::Route* route = nullptr;
  std::uint32_t hop = 0;
  std::uint32_t priority = 0;  // class, 0 first
  std::uint64_t order = 0;     // stable tie-break: sender's id
  base::Bytes bytes;
  base::Rate cap;    // what both ends can source and sink; zero: no limit
  base::Time after;  // added to the arrival of the last byte before it is reported
  base::Time tail_in, asked;
  const MessageSource* source = nullptr;  // may lower `cap`
  MessageSink* sink = nullptr;
  std::int32_t set = 0;       // for the receiver: group set (or -1 point to point), ...
  std::int32_t index = 0;     // of the part's messages, in the order they are sent
  std::int32_t ring = 0;      // of the DMA engines at its ends
  std::int64_t sequence = 0;  // ... collective of that set, or tag
  std::int64_t from = 0;      // sending rank
  std::int32_t queue = 0;     // of the sender, for its completion
  std::int32_t part = 0;      // of a collective's program
  std::int64_t touches = 1;   // HBM bytes that the sender's stack moves for each byte
};

class Fabric;

// Gives a message's sequence number relative to what its receiver counts, for fingerprints.
using MessageSequence = std::function<std::int64_t(const Message&)>;

class Link : public sc_core::sc_module {
 public:
  using SC_CURRENT_USER_MODULE = Link;
  Link(const sc_core::sc_module_name& name, const topology::Link& spec, base::Time forward,
       Fabric& fabric, const Context& context);

  void request(Message message);
  [[nodiscard]] const models::LinkModel& model() const { return model_; }
  [[nodiscard]] std::int64_t events() const { return events_; }

  // State relative to now. False if a request waits for a grant at this very instant, so that the
  // state cannot be shifted.
  bool fingerprint(base::StateHash& hash, const MessageSequence& sequence) const;
  // Everything continues `delta` later; `later` gives what to add to a message's sequence number.
  void shift(base::Time delta, const MessageSequence& later);
  models::LinkModel& model() { return model_; }

 private:
  struct Transit {
    base::Time due;
    Message message;
  };
  void advance();
  void arbitrate();
  void arm();

  Fabric& fabric_;
  const Context& context_;
  models::LinkModel model_;
  std::vector<Message> pending_;
  std::deque<Transit> heads_, tails_;  // ascending due times
  sc_core::sc_event wake_, kick_;
  base::Time armed_for_ = base::kTimeMax;
  std::int64_t events_ = 0;
};

// All links of the machine: those of the graph, then those added.
class Fabric {
 public:
  Fabric(const topology::Graph& graph, const Context& context) : graph_(graph), context_(context) {}

  // Makes the modules of all links of the graph, in the given order of link indices.
  void elaborate(const std::vector<std::size_t>& order);
  // Adds a link that is not in the graph (a stack's local copies, a host port) and returns its id.
  topology::LinkId add(const topology::Link& link);

  void send(Message message);
  [[nodiscard]] std::size_t size() const { return links_.size(); }
  [[nodiscard]] const Link& link(std::size_t i) const { return *links_[i]; }
  [[nodiscard]] Link& link(std::size_t i) { return *links_[i]; }
  [[nodiscard]] const topology::Link& spec(std::size_t i) const {
    return i < graph_.links().size() ? graph_.links()[i] : added_[i - graph_.links().size()];
  }

 private:
  friend class Link;
  const topology::Graph& graph_;
  const Context& context_;
  std::vector<std::unique_ptr<Link>> links_;
  std::deque<topology::Link> added_;
};

}  // namespace trn3sim::modules
