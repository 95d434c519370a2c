// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "loop_skipper.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "machine.hpp"

namespace trn3sim::sim {
namespace {

constexpr std::size_t kCycle = 4;    // iterations that a repeating cycle may have
constexpr int kDeltas = 6;           // deltas after which an instant has settled down
constexpr base::Time kJustAfter{1};  // the state is read this long after the boundary

}  // namespace

LoopSkipper::LoopSkipper(const sc_core::sc_module_name& name, Machine& machine)
    : sc_module(name),
      machine_(machine),
      state_(machine.state()),
      uses_(find_cohorts(machine.state())) {
  SC_METHOD(settle_down);
  sensitive << wake_;
  dont_initialize();
}

void LoopSkipper::boundary(std::int64_t rank, const LoopBoundary& b) {
  const LoopUse& use = uses_.at({b.block, b.op});
  const auto cohort = static_cast<std::size_t>(use.cohort_of_rank[static_cast<std::size_t>(rank)]);
  if (use.cohorts[cohort].ranks.front() != rank) return;
  requests_.push_back({&use, cohort, b});
  deltas_ = 0;
  notify_at(wake_, state_.context, state_.context.now() + kJustAfter);
}

void LoopSkipper::settle_down() {
  if (deltas_++ < kDeltas) {
    wake_.notify(sc_core::SC_ZERO_TIME);
    return;
  }
  deltas_ = 0;
  std::vector<Request> requests;
  requests.swap(requests_);
  for (const Request& r : requests) look(r);
}

template <class F>
void LoopSkipper::visit_counters(const Cohort& cohort, F&& f) {
  for (std::int64_t r : cohort.ranks) {
    machine_.runner(static_cast<std::size_t>(r)).visit_counters(f);
    machine_.cc(static_cast<std::size_t>(r)).visit_counters(f);
  }
  for (std::size_t l : cohort.links) machine_.fabric().link(l).model().visit_counters(f);
}

bool LoopSkipper::fingerprint(const Request& request, base::StateHash& hash) {
  const Cohort& cohort = request.use->cohorts[request.cohort];
  for (std::int64_t r : cohort.ranks)
    if (!machine_.runner(static_cast<std::size_t>(r))
             .fingerprint(hash, request.boundary, request.use->sets))
      return false;
  for (std::size_t s : cohort.shares) machine_.share(s).fingerprint(hash);
  const auto relative = [](const modules::Message& m) {
    const auto* receiver = dynamic_cast<const modules::CcCore*>(m.sink);
    return receiver == nullptr ? m.sequence : receiver->relative_sequence(m);
  };
  for (std::size_t l : cohort.links)
    if (!machine_.fabric().link(l).fingerprint(hash, relative)) return false;
  for (std::size_t s = 0; s < request.use->sets.size(); ++s) {
    if (!request.use->sets[s]) continue;
    const compile::GroupSet& set = state_.plan->group_sets[s];
    for (std::int64_t r : cohort.ranks) {
      const auto g = static_cast<std::size_t>(set.group_of_rank[static_cast<std::size_t>(r)]);
      if (set.groups[g].members.front() != r) continue;
      for (const auto& [sequence, entry] : state_.chains[s][g].open) {
        hash.add(
            sequence -
            machine_.cc(static_cast<std::size_t>(r)).next_sequence(static_cast<std::int32_t>(s)));
        for (const base::Time start : entry.starts) {
          hash.add(start == compile::kNotStarted ? 1 : 0);
          if (start != compile::kNotStarted) hash.add(start, request.boundary.chain);
        }
        hash.add(entry.done);
      }
    }
  }
  return true;
}

void LoopSkipper::look(const Request& request) {
  History& history = histories_[{request.use, request.cohort}];
  if (history.loop != request.boundary.loop) {
    history.loop = request.boundary.loop;
    history.snapshots.clear();
  }
  Snapshot now;
  if (!fingerprint(request, now.hash)) {
    history.snapshots.clear();
    return;
  }
  now.at = state_.context.now();
  now.boundary = request.boundary;
  const Cohort& cohort = request.use->cohorts[request.cohort];
  visit_counters(cohort, [&](std::int64_t& c) { now.counters.push_back(c); });
  for (std::int64_t r : cohort.ranks)
    now.sequences.push_back(machine_.cc(static_cast<std::size_t>(r)).sequences());
  std::int64_t frontier = 0;
  for (std::int64_t r : cohort.ranks) {
    const std::int64_t mine =
        machine_.runner(static_cast<std::size_t>(r)).sequencer().frontier(request.boundary.loop);
    if (mine < 0) return;  // a rank has left the loop, or not come to it
    frontier = std::max(frontier, mine);
  }
  for (auto it = history.snapshots.rbegin(); it != history.snapshots.rend(); ++it) {
    if (it->hash != now.hash) continue;
    const std::int64_t cycle = now.boundary.iteration - it->boundary.iteration;
    // A rank that has fetched the last iteration goes on to what comes after the loop.
    const std::int64_t periods = (now.boundary.iterations - 2 - frontier) / cycle;
    if (periods > 0) {
      skip(request, *it, now, periods);
      history.snapshots.clear();
    }
    return;
  }
  history.snapshots.push_back(std::move(now));
  if (history.snapshots.size() > kCycle) history.snapshots.pop_front();
}

void LoopSkipper::skip(const Request& request, const Snapshot& then, const Snapshot& now,
                       std::int64_t periods) {
  const Cohort& cohort = request.use->cohorts[request.cohort];
  const base::Time delta = (now.at - then.at) * periods;
  const base::Time chain = (now.boundary.chain - then.boundary.chain) * periods;
  const std::int64_t iterations = (now.boundary.iteration - then.boundary.iteration) * periods;
  std::int64_t ops = 0;
  for (std::int64_t r : cohort.ranks)
    ops -= machine_.runner(static_cast<std::size_t>(r)).sequencer().completed_ops();
  std::size_t i = 0;
  visit_counters(cohort, [&](std::int64_t& c) {
    c += (now.counters[i] - then.counters[i]) * periods;
    ++i;
  });
  for (std::int64_t r : cohort.ranks)
    ops += machine_.runner(static_cast<std::size_t>(r)).sequencer().completed_ops();
  state_.ops_done += ops;
  state_.skipped_ops += ops;
  std::map<const modules::MessageSink*, std::vector<std::int64_t>> by;
  for (std::size_t n = 0; n < cohort.ranks.size(); ++n) {
    const auto r = static_cast<std::size_t>(cohort.ranks[n]);
    RankRunner& runner = machine_.runner(r);
    runner.jump(now.boundary, iterations, delta, chain);
    std::vector<std::int64_t> more(now.sequences[n].size());
    for (std::size_t s = 0; s < more.size(); ++s)
      more[s] = (now.sequences[n][s] - then.sequences[n][s]) * periods;
    machine_.cc(r).advance_sequences(more);
    by[&machine_.cc(r)] = std::move(more);
  }
  for (std::size_t s : cohort.shares) machine_.share(s).shift(delta);
  const auto later = [&](const modules::Message& m) -> std::int64_t {
    const auto found = by.find(m.sink);
    return found == by.end() || m.set < 0 ? 0 : found->second[static_cast<std::size_t>(m.set)];
  };
  for (std::size_t l : cohort.links) machine_.fabric().link(l).shift(delta, later);
  for (std::size_t s = 0; s < request.use->sets.size(); ++s) {
    if (!request.use->sets[s]) continue;
    const compile::GroupSet& set = state_.plan->group_sets[s];
    for (std::int64_t r : cohort.ranks) {
      const auto g = static_cast<std::size_t>(set.group_of_rank[static_cast<std::size_t>(r)]);
      if (set.groups[g].members.front() != r) continue;
      std::map<std::int64_t, GroupChain::Entry> moved;
      for (auto [sequence, entry] : state_.chains[s][g].open) {
        for (base::Time& start : entry.starts)
          if (start != compile::kNotStarted) start += chain;
        moved.emplace(sequence + by[&machine_.cc(static_cast<std::size_t>(r))][s], entry);
      }
      state_.chains[s][g].open = std::move(moved);
    }
  }
}

}  // namespace trn3sim::sim
