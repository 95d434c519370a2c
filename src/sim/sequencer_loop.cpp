// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequencer: what the loop skip needs to see and to change.
#include <algorithm>

#include "trn3sim/sim/sequencer.hpp"

namespace trn3sim::sim {
namespace {

constexpr std::uint64_t kPathPrime = 1099511628211ULL;  // FNV-1a

}  // namespace

// Calls and iterations from the top level down to the repeat op, as one number. It is the same on
// every rank and does not hold the iteration of the repeat itself.
std::uint64_t Sequencer::path_of(std::int32_t parent, std::int32_t parent_op) const {
  if (parent < 0) return 14695981039346656037ULL;
  const Frame& p = frames_[static_cast<std::size_t>(parent)];
  std::uint64_t h = p.loop;
  for (const std::int64_t part : {p.iteration, std::int64_t{p.block}, std::int64_t{parent_op}})
    h = (h ^ static_cast<std::uint64_t>(part)) * kPathPrime;
  return h;
}

bool Sequencer::frame_inside(std::int32_t id, std::uint64_t loop) const {
  for (; id >= 0; id = frames_[static_cast<std::size_t>(id)].parent)
    if (frames_[static_cast<std::size_t>(id)].loop == loop) return true;
  return false;
}

bool Sequencer::inside(const Ticket& t, std::uint64_t loop) const {
  return frame_inside(t.frame, loop);
}

std::vector<std::int32_t> Sequencer::frames_by_age() const {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < frames_.size(); ++i)
    if (frames_[i].used) ids.push_back(static_cast<std::int32_t>(i));
  std::sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
    return frames_[static_cast<std::size_t>(a)].serial <
           frames_[static_cast<std::size_t>(b)].serial;
  });
  return ids;
}

// Frames count back from the youngest, so that the number is the same one iteration later.
std::int64_t Sequencer::stable_frame(const Ticket& t) const {
  if (t.frame < 0) return -1;
  std::int64_t younger = 0;
  const std::uint64_t serial = frames_[static_cast<std::size_t>(t.frame)].serial;
  for (const Frame& f : frames_)
    if (f.used && f.serial > serial) ++younger;
  return younger;
}

void Sequencer::fingerprint_frame(base::StateHash& hash, const Frame& f, bool inside_loop,
                                  base::Time chain) const {
  hash.add(f.block);
  hash.add(f.parent_op);
  hash.add(f.iterations);
  hash.add(f.outs_left);
  hash.add(f.ops_left);
  hash.add(f.position);
  hash.add(f.phase);
  hash.add((f.entry_done ? 1 : 0) + (f.outs_done ? 2 : 0) + (f.fetched ? 4 : 0));
  for (std::size_t i = 0; i < f.waits.size(); ++i) {
    hash.add(f.done[i] ? -1 : f.waits[i]);
    if (inside_loop && !f.done[i] && f.chain[i].count() > 0) hash.add(f.chain[i], chain);
  }
  if (!inside_loop) return;
  hash.add(f.entry_chain.count() > 0 ? (f.entry_chain - chain).count() : 0);
  hash.add(f.out_chain.count() > 0 ? (f.out_chain - chain).count() : 0);
}

void Sequencer::fingerprint(base::StateHash& hash, std::uint64_t loop, std::int64_t iteration,
                            base::Time chain) const {
  const std::vector<std::int32_t> ids = frames_by_age();
  std::vector<std::int64_t> age(frames_.size(), -1);
  for (std::size_t i = 0; i < ids.size(); ++i)
    age[static_cast<std::size_t>(ids[i])] = static_cast<std::int64_t>(i);
  const auto number = [&](std::int32_t id) {
    return id < 0 ? -1 : age[static_cast<std::size_t>(id)];
  };
  hash.add(static_cast<std::int64_t>(ids.size()));
  for (std::int32_t id : ids) {
    const Frame& f = frames_[static_cast<std::size_t>(id)];
    hash.add(number(f.parent));
    hash.add(f.loop == loop ? f.iteration - iteration : f.iteration);
    hash.add(number(f.next_iteration));
    fingerprint_frame(hash, f, frame_inside(id, loop), chain);
  }
  for (const Queue& q : queues_) {
    hash.add(q.busy ? 1 : 0);
    hash.add(static_cast<std::int64_t>(q.waiting.size()));
    for (const Ticket& t : q.waiting) {
      hash.add(number(t.frame));
      hash.add(t.op);
    }
  }
  for (std::int32_t id : fetch_stack_) hash.add(number(id));
  hash.add(in_window_);
}

std::int64_t Sequencer::frontier(std::uint64_t loop) const {
  std::int64_t highest = -1;
  for (const Frame& f : frames_)
    if (f.used && f.loop == loop) highest = std::max(highest, f.iteration);
  return highest;
}

void Sequencer::jump(std::uint64_t loop, std::int64_t iterations, base::Time chain) {
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    Frame& f = frames_[i];
    if (!f.used || !frame_inside(static_cast<std::int32_t>(i), loop)) continue;
    for (base::Time& c : f.chain)
      if (c.count() > 0) c += chain;
    if (f.entry_chain.count() > 0) f.entry_chain += chain;
    if (f.out_chain.count() > 0) f.out_chain += chain;
  }
  for (Frame& f : frames_)
    if (f.used && f.loop == loop) f.iteration += iterations;
  // Identities of the loops inside hold the iterations above them.
  for (std::int32_t id : frames_by_age()) {
    Frame& f = frames_[static_cast<std::size_t>(id)];
    f.loop = path_of(f.parent, f.parent_op);
  }
}

}  // namespace trn3sim::sim
