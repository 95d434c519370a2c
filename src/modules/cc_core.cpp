// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/cc_core.hpp"

#include <algorithm>
#include <tuple>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::modules {
namespace {

constexpr std::int32_t kPointToPoint = -1;  // Message::set of send and recv ops
constexpr std::uint64_t kStreams = 64;      // messages of one rank order by set within this
// Traffic of a message's ends: kinds of one group set have queues of their own; messages that leave
// at once take turns with them.
constexpr std::int32_t kDeparture = 0, kArrival = 1, kOperand = 2, kKinds = 3;

}  // namespace

CcCore::CcCore(const sc_core::sc_module_name& name, std::int64_t rank, const CcNetwork& network,
               TransferEnd& end)
    : sc_module(name), rank_(rank), network_(network), end_(end) {
  const std::size_t sets = network.plan->group_sets.size();
  active_.resize(sets);
  next_sequence_.resize(sets, 0);
  early_.resize(sets);
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

void CcCore::start(const CollectiveJob& job) {
  Active& a = active_[static_cast<std::size_t>(job.set)];
  TRN3SIM_CHECK(!a.running, "a group set runs two collectives at once on one rank");
  a = Active{};
  a.running = true;
  a.job = job;
  a.sequence = next_sequence_[static_cast<std::size_t>(job.set)]++;
  a.begin = network_.context->now() + compile::start_delay(job.program, *network_.chip);
  arm();
}

// Timed work is only the begin of collectives.
void CcCore::step() {
  const base::Time now = network_.context->now();
  if (now >= armed_for_) armed_for_ = base::kTimeMax;
  for (std::size_t s = 0; s < active_.size(); ++s)
    if (active_[s].running && !active_[s].begun && active_[s].begin <= now)
      begin(static_cast<std::int32_t>(s));
  arm();
}

void CcCore::arm() {
  base::Time next = base::kTimeMax;
  for (const Active& a : active_)
    if (a.running && !a.begun) next = std::min(next, a.begin);
  if (next >= armed_for_) return;
  armed_for_ = next;
  notify_at(wake_, *network_.context, next);
}

void CcCore::begin(std::int32_t set) {
  Active& a = active_[static_cast<std::size_t>(set)];
  a.begun = true;
  const compile::CollectiveProgram& p = a.job.program;
  if (p.moves() && port().share != nullptr) {
    a.wanted = compile::flow_demand(p, network_.plan->group_sets[static_cast<std::size_t>(set)],
                                    rank_, *network_.graph, *network_.chip,
                                    network_.plan->places[static_cast<std::size_t>(rank_)]);
    const auto touches = static_cast<std::size_t>(compile::hbm_touches(p.parts[0], 0));
    a.flow = port().share->open_flow(a.wanted.rate, {static_cast<std::int32_t>(port().first_core),
                                                     network_.flow_weights.at(touches)});
  }
  std::vector<Early>& early = early_[static_cast<std::size_t>(set)];
  for (const Early& e : early)
    for (std::int64_t i = 0; e.sequence == a.sequence && i < e.count; ++i) count_arrival(a, e.part);
  std::erase_if(early, [&](const Early& e) { return e.sequence == a.sequence; });
  send_ready(a, set);
  finish_if_done(set);
}

void CcCore::send_ready(Active& a, std::int32_t set) {
  for (std::size_t part = 0; part < a.job.program.used; ++part)
    while (compile::may_send(a.job.program, a.at, part)) send_step(a, set, part, a.at.sent[part]++);
}

void CcCore::send_step(const Active& a, std::int32_t set, std::size_t part, std::int64_t index) {
  const compile::ProgramPart& p = a.job.program.parts[part];
  const config::ChipSpec& chip = *network_.chip;
  const auto me = static_cast<std::size_t>(rank_);
  const compile::Hop hop =
      compile::hop_of(p, network_.plan->group_sets[static_cast<std::size_t>(set)], rank_, index);
  Message m;
  m.route = hop.route->empty() ? &network_.local[me] : hop.route;
  m.order = static_cast<std::uint64_t>(rank_) * kStreams + static_cast<std::uint64_t>(set) + 1;
  m.bytes = p.bytes;
  m.cap = compile::message_rate(a.job.program, p, index, chip, network_.plan->places[me]);
  if (port().share != nullptr) m.source = this;
  m.touches = compile::hbm_touches(p, index) * a.job.program.exits;
  m.after = compile::arrival_delay(a.job.program, part, index, chip);
  m.sink = network_.cores[static_cast<std::size_t>(hop.to)];
  m.set = set;
  m.sequence = a.sequence;
  m.from = rank_;
  m.part = static_cast<std::int32_t>(part);
  m.index = static_cast<std::int32_t>(index);
  m.ring = p.at_once || p.pipelined ? m.index : 0;
  counts_.sent_bytes += p.bytes.count();
  counts_.hbm_read_bytes += compile::send_hbm_bytes(p);
  counts_.dma_bytes += p.bytes.count();
  launch(m, hop.to, index < p.reduce_receives);
}

EndTraffic CcCore::end_traffic(const Message& m, std::int64_t rank, std::int32_t kind) const {
  const StackPort& at = network_.ports[static_cast<std::size_t>(rank)];
  EndTraffic end;
  end.stack = at.traffic;
  end.traffic.first_core = static_cast<std::int32_t>(at.first_core);
  end.traffic.cores =
      static_cast<std::int32_t>(network_.plan->places[static_cast<std::size_t>(rank)].cores);
  end.traffic.queue = kKinds * (m.set + 1 + m.ring) + kind;
  end.traffic.bytes = m.bytes;
  end.traffic.write = kind == kArrival;
  base::Rate slowest = m.cap;
  for (const topology::LinkId link : *m.route)
    slowest = std::min(slowest, network_.fabric->spec(static_cast<std::size_t>(link)).bandwidth);
  end.traffic.rate = slowest;
  end.traffic.after = m.after;
  return end;
}

void CcCore::launch(const Message& m, std::int64_t to, bool reduce) {
  std::vector<EndTraffic> ends;
  if (port().traffic != nullptr) ends.push_back(end_traffic(m, rank_, kDeparture));
  if (network_.ports[static_cast<std::size_t>(to)].traffic != nullptr) {
    ends.push_back(end_traffic(m, to, kArrival));
    if (reduce) ends.push_back(end_traffic(m, to, kOperand));
  }
  if (ends.empty() || m.bytes.count() == 0)
    network_.fabric->send(m);
  else
    network_.join->send(*network_.fabric, m, ends);
}

// A message that is still queued when its collective has ended has no flow any more.
base::Rate CcCore::rate(const Message& m) const {
  const Active& a = active_[static_cast<std::size_t>(m.set)];
  if (!a.running || a.sequence != m.sequence) return m.cap;
  return compile::granted_rate(a.wanted, port().share->granted(a.flow), m.touches, m.cap);
}

void CcCore::delivered(const Message& m) {
  counts_.received_bytes += m.bytes.count();
  counts_.hbm_write_bytes += m.bytes.count();
  if (m.set == kPointToPoint) {
    network_.cores[static_cast<std::size_t>(m.from)]->end_.transfer_ended(m.queue);
    const auto box = std::find_if(inbox_.begin(), inbox_.end(), [&](const Inbox& b) {
      return b.peer == m.from && b.tag == m.sequence;
    });
    if (box == inbox_.end())
      inbox_.push_back({m.from, m.sequence, 1});
    else
      ++box->count;
    if (expected_.waiting) receive(expected_.queue, expected_.peer, expected_.tag);
    return;
  }
  Active& a = active_[static_cast<std::size_t>(m.set)];
  if (a.begun && a.running && a.sequence == m.sequence)
    arrived(a, m);
  else
    count_early(m);
}

// In order of sequence and part, whichever came first, so that equal states look equal.
void CcCore::count_early(const Message& m) {
  std::vector<Early>& early = early_[static_cast<std::size_t>(m.set)];
  const auto at = std::find_if(early.begin(), early.end(), [&](const Early& e) {
    return std::tie(e.sequence, e.part) >= std::tie(m.sequence, m.part);
  });
  if (at != early.end() && at->sequence == m.sequence && at->part == m.part)
    ++at->count;
  else
    early.insert(at, {m.sequence, m.part, 1});
}

void CcCore::count_arrival(Active& a, std::int32_t part) {
  const auto i = static_cast<std::size_t>(part);
  const compile::ProgramPart& p = a.job.program.parts[i];
  counts_.hbm_read_bytes +=
      compile::receive_hbm_read_bytes(p, a.at.received[i] < p.reduce_receives);
  ++a.at.received[i];
}

void CcCore::arrived(Active& a, const Message& m) {
  count_arrival(a, m.part);
  send_ready(a, m.set);
  finish_if_done(m.set);
}

void CcCore::finish_if_done(std::int32_t set) {
  Active& a = active_[static_cast<std::size_t>(set)];
  const compile::CollectiveProgram& p = a.job.program;
  if (!a.running || !compile::is_done(p, a.at)) return;
  a.running = false;
  if (a.flow >= 0) port().share->close_flow(a.flow);
  end_.transfer_ended(a.job.queue);
}

void CcCore::send(std::int32_t queue, std::int64_t peer, const topology::Route& route,
                  base::Bytes bytes, std::int64_t tag) {
  const auto me = static_cast<std::size_t>(rank_);
  Message m;
  m.route = route.empty() ? &network_.local[me] : &route;
  m.order = static_cast<std::uint64_t>(rank_) * kStreams;
  m.bytes = bytes;
  m.cap = compile::dma_rate(*network_.chip, network_.plan->places[me], false);
  m.after = network_.chip->dma.start_latency + network_.chip->dma.completion;
  m.sink = network_.cores[static_cast<std::size_t>(peer)];
  m.set = kPointToPoint;
  m.sequence = tag;
  m.from = rank_;
  m.queue = queue;
  counts_.sent_bytes += bytes.count();
  counts_.hbm_read_bytes += bytes.count();
  counts_.dma_bytes += bytes.count();
  launch(m, peer, false);
}

void CcCore::receive(std::int32_t queue, std::int64_t peer, std::int64_t tag) {
  const auto box = std::find_if(inbox_.begin(), inbox_.end(),
                                [&](const Inbox& b) { return b.peer == peer && b.tag == tag; });
  if (box == inbox_.end()) {
    expected_ = {queue, peer, tag, true};
    return;
  }
  if (--box->count == 0) inbox_.erase(box);
  expected_.waiting = false;
  end_.transfer_ended(queue);
}

bool CcCore::fingerprint(base::StateHash& hash, const std::vector<bool>& sets) const {
  const base::Time now = network_.context->now();
  for (std::size_t s = 0; s < active_.size(); ++s) {
    const Active& a = active_[s];
    if (!sets[s]) {
      if (a.running) return false;
      continue;
    }
    hash.add(a.running ? 1 : 0);
    if (a.running) {
      hash.add(a.begun ? 1 : 0);
      hash.add(a.sequence - next_sequence_[s]);
      hash.add(a.flow);
      hash.add(a.begun ? 0 : (a.begin - now).count());
      for (std::size_t i = 0; i < a.job.program.used; ++i) {
        const compile::ProgramPart& p = a.job.program.parts[i];
        for (const std::int64_t value : {a.at.sent[i], a.at.received[i], p.bytes.count(), p.sends,
                                         p.receives, std::int64_t{p.ring}})
          hash.add(value);
      }
    }
    for (const Early& e : early_[s]) {
      hash.add(e.sequence - next_sequence_[s]);
      hash.add(e.part);
      hash.add(e.count);
    }
  }
  for (const Inbox& box : inbox_) {
    hash.add(box.peer);
    hash.add(box.tag);
    hash.add(box.count);
  }
  hash.add(expected_.waiting ? expected_.peer + 1 : 0);
  return true;
}

void CcCore::shift(base::Time delta) {
  for (Active& a : active_)
    if (a.running && !a.begun) a.begin += delta;
}

void CcCore::advance_sequences(const std::vector<std::int64_t>& by) {
  for (std::size_t s = 0; s < active_.size(); ++s) {
    next_sequence_[s] += by[s];
    if (active_[s].running) active_[s].sequence += by[s];
    for (Early& e : early_[s]) e.sequence += by[s];
  }
}

std::int64_t CcCore::relative_sequence(const Message& m) const {
  return m.set < 0 ? m.sequence : m.sequence - next_sequence_[static_cast<std::size_t>(m.set)];
}

std::string CcCore::waiting() const {
  std::string text;
  for (std::size_t s = 0; s < active_.size(); ++s) {
    const Active& a = active_[s];
    if (!a.running) continue;
    std::int64_t sent = 0, sends = 0, received = 0, receives = 0;
    for (std::size_t i = 0; i < a.job.program.used; ++i) {
      sent += a.at.sent[i];
      sends += a.job.program.parts[i].sends;
      received += a.at.received[i];
      receives += a.job.program.parts[i].receives;
    }
    text += fmt::format("collective {} of group {}: sent {} of {}, received {} of {}; ", a.sequence,
                        network_.plan->group_sets[s].name, sent, sends, received, receives);
  }
  if (expected_.waiting)
    text += fmt::format("recv from rank {} tag {}; ", expected_.peer, expected_.tag);
  return text;
}

}  // namespace trn3sim::modules
