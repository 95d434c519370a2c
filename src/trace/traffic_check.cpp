// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Do the members of every group run the same collectives, and is every send received? Counted over
// the whole program, loops multiplied out; the order is not compared.
#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "trn3sim/base/quantity.hpp"

#include "trace/activation.hpp"
#include "trace/check.hpp"
#include "trace/nested.hpp"
#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

enum class Kind : std::uint8_t { Collective, Send, Receive };

// Transfers that must be matched one to one.
struct Key {
  Kind kind = Kind::Collective;
  CollectiveKind collective = CollectiveKind::AllReduce;
  std::vector<int> axes;    // of the group; of the peer
  std::int64_t in = 0;      // bytes
  std::int64_t out = 0;     // bytes; tag of a message
  std::int64_t offset = 0;  // of the peer
  auto operator<=>(const Key&) const = default;
};
struct Count {
  Int128 times = 0;
  std::uint32_t line = 0;  // of the first such op
};
using Traffic = std::map<Key, Count>;

std::optional<Key> key_of(const Op& op) {
  if (const auto* c = std::get_if<Collective>(&op.body))
    return Key{Kind::Collective, c->kind, c->axes, c->in, c->out, 0};
  if (const auto* p = std::get_if<PointToPoint>(&op.body))
    return Key{p->send ? Kind::Send : Kind::Receive,
               CollectiveKind::AllReduce,
               {p->axis},
               p->bytes,
               p->tag,
               p->offset};
  return std::nullopt;
}

void add(Traffic& traffic, const Key& key, Int128 times, std::uint32_t line) {
  Count& count = traffic[key];
  count.times += times;
  count.line = count.line == 0 ? line : std::min(count.line, line);
}

class TrafficCheck {
 public:
  TrafficCheck(const Program& program, Report& report) : program_(program), report_(report) {}

  void run() {
    bool conditional = false, messages = false;
    for (const Block& block : program_.blocks)
      for (const Op& op : block.ops) {
        conditional = conditional || !op.when.empty();
        messages = messages || std::holds_alternative<PointToPoint>(op.body);
      }
    if (!conditional && !messages) return;  // all ranks run one program
    ranks_ = representative_ranks(program_);
    for (std::int64_t rank : ranks_)
      for (const auto& [key, count] : of(rank)) {
        if (key.kind == Kind::Collective)
          check_group(rank, key, count);
        else
          check_peer(rank, key, count);
      }
  }

 private:
  const Traffic& of(std::int64_t rank) {
    const auto [at, is_new] = by_rank_.try_emplace(rank);
    if (is_new) at->second = count(rank);
    return at->second;
  }

  [[nodiscard]] Traffic count(std::int64_t rank) const {
    std::vector<Traffic> blocks(program_.blocks.size());
    const auto fill = [&](std::size_t b) {
      for (const Op& op : program_.blocks[b].ops) {
        if (!runs_on(program_, op, rank)) continue;
        const Nested nested = nested_of(op);
        if (nested.block >= 0) {
          for (const auto& [key, c] : blocks[static_cast<std::size_t>(nested.block)])
            add(blocks[b], key, c.times * nested.times, c.line);
        } else if (const std::optional<Key> key = key_of(op)) {
          add(blocks[b], *key, 1, op.line);
        }
      }
    };
    // Blocks are defined before use; the top level is last.
    for (std::size_t b = 1; b < blocks.size(); ++b) fill(b);
    fill(0);
    return std::move(blocks[0]);
  }

  [[nodiscard]] static Int128 times(const Traffic& traffic, const Key& key) {
    const auto at = traffic.find(key);
    return at == traffic.end() ? 0 : at->second.times;
  }

  [[nodiscard]] bool same_group(std::int64_t a, std::int64_t b,
                                const std::vector<int>& axes) const {
    const base::Mesh& mesh = program_.header.mesh;
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end() &&
          mesh.coordinate(a, axis) != mesh.coordinate(b, axis))
        return false;
    return true;
  }

  void complain(const Count& count, std::string text) {
    if (reported_.insert(count.line).second) report_.add(count.line, std::move(text));
  }

  void check_group(std::int64_t rank, const Key& key, const Count& count) {
    for (std::int64_t other : ranks_) {
      if (other == rank || !same_group(rank, other, key.axes)) continue;
      const Int128 there = times(of(other), key);
      if (there == count.times) continue;
      complain(count,
               fmt::format("the members of a group disagree: rank {} runs {} (in {}, out {}) "
                           "{} times, rank {} runs it {} times",
                           rank, collective_name(key.collective), key.in, key.out,
                           static_cast<std::int64_t>(count.times), other,
                           static_cast<std::int64_t>(there)));
      return;
    }
  }

  void check_peer(std::int64_t rank, const Key& key, const Count& count) {
    const base::Mesh& mesh = program_.header.mesh;
    const int axis = key.axes[0];
    const std::int64_t peer =
        mesh.with_coordinate(rank, axis, mesh.coordinate(rank, axis) + key.offset);
    const bool sends = key.kind == Kind::Send;
    Key mirror = key;
    mirror.kind = sends ? Kind::Receive : Kind::Send;
    mirror.offset = -key.offset;
    const Int128 there = times(of(peer), mirror);
    if (there == count.times) return;
    complain(count,
             fmt::format("rank {} {} {} messages of {} bytes (tag {}) {} rank {}, which {} {}",
                         rank, sends ? "sends" : "expects", static_cast<std::int64_t>(count.times),
                         key.in, key.out, sends ? "to" : "from", peer, sends ? "receives" : "sends",
                         static_cast<std::int64_t>(there)));
  }

  const Program& program_;
  Report& report_;
  std::vector<std::int64_t> ranks_;
  std::map<std::int64_t, Traffic> by_rank_;
  std::set<std::uint32_t> reported_;
};

}  // namespace

void check_traffic(const Program& program, Report& report) {
  TrafficCheck(program, report).run();
}

}  // namespace trn3sim::trace
