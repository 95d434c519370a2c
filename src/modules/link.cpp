// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/link.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "trn3sim/base/error.hpp"

namespace trn3sim::modules {
namespace {

// SystemC names must not hold the path separator or arrows.
std::string module_name(const std::string& link) {
  std::string name = link;
  for (char& c : name)
    if (c == '.' || c == '-' || c == '>') c = '_';
  return name;
}

}  // namespace

Link::Link(const sc_core::sc_module_name& name, const topology::Link& spec, base::Time forward,
           Fabric& fabric, const Context& context)
    : sc_module(name),
      fabric_(fabric),
      context_(context),
      model_(spec.bandwidth, spec.latency + forward) {
  SC_METHOD(advance);
  sensitive << wake_;
  dont_initialize();
  SC_METHOD(arbitrate);
  sensitive << kick_;
  dont_initialize();
}

void Link::request(Message message) {
  message.asked = context_.now();
  pending_.push_back(message);
  if (model_.idle(context_.now()))
    kick_.notify(sc_core::SC_ZERO_TIME);
  else
    arm();
}

void Link::arbitrate() {
  ++events_;
  const base::Time now = context_.now();
  if (pending_.empty() || !model_.idle(now)) return;
  const auto first =
      std::min_element(pending_.begin(), pending_.end(), [](const Message& a, const Message& b) {
        return std::tie(a.priority, a.asked, a.order, a.sequence, a.part, a.index) <
               std::tie(b.priority, b.asked, b.order, b.sequence, b.part, b.index);
      });
  Message m = *first;
  pending_.erase(first);
  if (m.hop == 0 && m.source != nullptr) m.cap = std::min(m.cap, m.source->rate(m));
  const auto transit = model_.send(now, m.bytes, m.cap, m.tail_in, m.asked);
  m.tail_in = transit.tail_out;
  if (m.hop + 1 < m.route->size()) {
    heads_.push_back({transit.head_out, m});
  } else {
    // Arrivals leave in order of their last byte; `after` is the same for most messages, so the
    // queue stays nearly sorted and insertion is cheap.
    const Transit arrival{transit.tail_out + m.after, m};
    auto at = tails_.end();
    while (at != tails_.begin() && std::prev(at)->due > arrival.due) --at;
    tails_.insert(at, arrival);
  }
  arm();
}

void Link::advance() {
  ++events_;
  const base::Time now = context_.now();
  if (now >= armed_for_) armed_for_ = base::kTimeMax;
  while (!heads_.empty() && heads_.front().due <= now) {
    Message m = heads_.front().message;
    heads_.pop_front();
    ++m.hop;
    fabric_.send(m);
  }
  while (!tails_.empty() && tails_.front().due <= now) {
    const Message m = tails_.front().message;
    tails_.pop_front();
    m.sink->delivered(m);
  }
  if (!pending_.empty() && model_.idle(now)) kick_.notify(sc_core::SC_ZERO_TIME);
  arm();
}

void Link::arm() {
  base::Time next = base::kTimeMax;
  if (!heads_.empty()) next = heads_.front().due;
  if (!tails_.empty()) next = std::min(next, tails_.front().due);
  if (!pending_.empty() && !model_.idle(context_.now())) next = std::min(next, model_.busy_until());
  if (next >= armed_for_) return;
  armed_for_ = next;
  notify_at(wake_, context_, next);
}

bool Link::fingerprint(base::StateHash& hash, const MessageSequence& sequence) const {
  const base::Time now = context_.now();
  if (!pending_.empty() && model_.idle(now)) return false;
  model_.fingerprint(hash, now);
  const auto add = [&](const Message& m) {
    hash.add(static_cast<std::int64_t>(m.order));
    hash.add(m.hop);
    hash.add(m.bytes.count());
    hash.add(m.cap.count());
    hash.add(m.tail_in, now);
    hash.add(m.asked, now);
    hash.add(sequence(m));
    hash.add(m.part);
    hash.add(m.index);
  };
  hash.add(static_cast<std::int64_t>(pending_.size()));
  for (const Message& m : pending_) add(m);
  for (const std::deque<Transit>* queue : {&heads_, &tails_}) {
    hash.add(static_cast<std::int64_t>(queue->size()));
    for (const Transit& t : *queue) {
      hash.add(t.due, now);
      add(t.message);
    }
  }
  return true;
}

void Link::shift(base::Time delta, const MessageSequence& later) {
  model_.shift(delta);
  for (Message& m : pending_) {
    m.asked += delta;
    m.tail_in += delta;
    m.sequence += later(m);
  }
  for (std::deque<Transit>* queue : {&heads_, &tails_})
    for (Transit& t : *queue) {
      t.due += delta;
      t.message.tail_in += delta;
      t.message.asked += delta;
      t.message.sequence += later(t.message);
    }
}

void Fabric::elaborate(const std::vector<std::size_t>& order) {
  TRN3SIM_CHECK(links_.empty() && order.size() == graph_.links().size(), "fabric elaborated twice");
  links_.resize(order.size());
  for (std::size_t i : order) {
    const topology::Link& spec = graph_.links()[i];
    links_[i] = std::make_unique<Link>(module_name(spec.name).c_str(), spec,
                                       graph_.node(spec.to).forward, *this, context_);
  }
}

topology::LinkId Fabric::add(const topology::Link& link) {
  added_.push_back(link);
  links_.push_back(
      std::make_unique<Link>(module_name(link.name).c_str(), link, base::Time(0), *this, context_));
  return static_cast<topology::LinkId>(links_.size() - 1);
}

void Fabric::send(Message message) {
  const topology::LinkId next = (*message.route)[message.hop];
  links_[static_cast<std::size_t>(next)]->request(message);
}

}  // namespace trn3sim::modules
