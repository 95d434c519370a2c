// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "rings.hpp"

namespace trn3sim::compile {
namespace {

using Order = std::vector<std::int64_t>;

// Which members are joined by one link of the fabric, in both directions.
class Neighbours {
 public:
  Neighbours(const GroupPlan& group, const Embedding& embedding) : of_(group.members.size()) {
    const std::size_t n = of_.size();
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b)
        if (direct(group, embedding, a, b) && direct(group, embedding, b, a)) {
          of_[a].insert(static_cast<std::int64_t>(b));
          of_[b].insert(static_cast<std::int64_t>(a));
        }
  }

  // Takes the edges of a cycle away; false if one is not there.
  bool remove(const Order& cycle) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const std::int64_t a = cycle[i], b = cycle[(i + 1) % cycle.size()];
      if (of_[static_cast<std::size_t>(a)].erase(b) == 0) return false;
      of_[static_cast<std::size_t>(b)].erase(a);
    }
    return true;
  }

  // The one cycle through all members, if everyone has exactly two neighbours; else nothing.
  [[nodiscard]] Order only_cycle() const {
    for (const auto& mine : of_)
      if (mine.size() != 2) return {};
    Order order{0};
    std::int64_t before = -1, at = 0;
    for (;;) {
      const auto& mine = of_[static_cast<std::size_t>(at)];
      const std::int64_t next = *mine.begin() == before ? *mine.rbegin() : *mine.begin();
      if (next == 0) break;
      order.push_back(next);
      before = at;
      at = next;
    }
    return order.size() == of_.size() ? order : Order{};
  }

 private:
  static bool direct(const GroupPlan& group, const Embedding& embedding, std::size_t from,
                     std::size_t to) {
    const auto port = [&](std::size_t i) {
      return embedding.places[static_cast<std::size_t>(group.members[i])].nodes.front();
    };
    const topology::Route& route = embedding.routes.route(port(from), port(to));
    return 1 == std::count_if(route.begin(), route.end(), [&](topology::LinkId id) {
             return embedding.routes.graph().link(id).kind == topology::LinkKind::NeuronLink;
           });
  }

  std::vector<std::set<std::int64_t>> of_;
};

bool one_per_chip(const GroupPlan& group, const std::vector<RankPlace>& places) {
  std::set<std::int64_t> chips;
  for (std::int64_t r : group.members) chips.insert(places[static_cast<std::size_t>(r)].chip);
  return chips.size() == group.members.size();
}

// A cycle through `rows` rings of `length` columns: once around each row, forwards or backwards by
// the bits of `turns`, then on to the next row in the column where it ends. Empty if it does not
// close. `across`: the rows are the columns of the numbering.
Order row_by_row(std::int64_t rows, std::int64_t length, std::uint64_t turns, bool across) {
  Order order;
  std::int64_t x = 0;
  for (std::int64_t y = 0; y < rows; ++y) {
    const std::int64_t step = (turns >> y & 1) == 0 ? 1 : length - 1;
    for (std::int64_t i = 0; i < length; ++i) {
      if (i > 0) x = (x + step) % length;
      order.push_back(across ? x * rows + y : y * length + x);
    }
  }
  return x == 0 ? order : Order{};
}

// A cycle and the one that is left of the links without it.
std::pair<Order, Order> two_cycles(const Neighbours& all, std::int64_t rows, std::int64_t length) {
  constexpr std::int64_t kMostTurns = 10;  // rows whose direction is varied
  for (const bool across : {false, true})
    for (std::uint64_t turns = 0; turns >> std::min(rows, kMostTurns) == 0; ++turns) {
      Order first = row_by_row(rows, length, turns, across);
      Neighbours rest = all;
      if (first.empty() || !rest.remove(first)) continue;
      Order second = rest.only_cycle();
      if (!second.empty()) return {std::move(first), std::move(second)};
    }
  return {};
}

}  // namespace

std::vector<Ring> hamiltonian_rings(const GroupPlan& group, const Embedding& embedding) {
  const auto n = static_cast<std::int64_t>(group.members.size());
  if (n < 9 || !one_per_chip(group, embedding.places)) return {};
  const Neighbours all(group, embedding);
  for (std::int64_t length = 3; length * 3 <= n; ++length) {
    if (n % length != 0) continue;
    auto [first, second] = two_cycles(all, n / length, length);
    if (first.empty()) continue;
    std::vector<Ring> rings;
    for (Order* order : {&first, &second}) {
      rings.push_back(make_ring(group, *order, embedding));
      std::reverse(order->begin(), order->end());
      rings.push_back(make_ring(group, *order, embedding));
    }
    return rings;
  }
  return {};
}

}  // namespace trn3sim::compile
