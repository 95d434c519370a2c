// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "trn3sim/base/text.hpp"
#include "trn3sim/config/system_describe.hpp"

#include "config/rules.hpp"
#include <fmt/format.h>

namespace trn3sim::config {
namespace {

void check_paired_planes(const FabricSpec& fabric, Rules& rules) {
  rules.require(
      fabric.chips_per_server % 2 == 0, "chips_per_server",
      fmt::format("chips come in pairs: expected an even number, got {}", fabric.chips_per_server));
  const bool whole = fabric.servers % fabric.servers_per_rack == 0;
  rules.require(whole, "servers",
                fmt::format("{} servers do not fill racks of {} (servers_per_rack)", fabric.servers,
                            fabric.servers_per_rack));
  const std::int64_t racks = fabric.servers / fabric.servers_per_rack;
  rules.require(
      !whole || racks <= 2, "servers",
      fmt::format("{} racks; chips are wired to one partner rack, so expected 1 or 2 racks",
                  racks));
}

// The nodes of a "graph" fabric by number: chips first, then switches.
class FabricGraph {
 public:
  FabricGraph(const FabricSpec& fabric, Rules& rules) : fabric_(fabric), rules_(rules) {
    for (std::int64_t chip = 0; chip < fabric.chips_per_server; ++chip)
      numbers_.emplace(fmt::format("chip{}", chip), numbers_.size());
    for (std::size_t i = 0; i < fabric.switches.size(); ++i) add_switch(i);
    used_.resize(numbers_.size());
    next_.resize(numbers_.size());
    back_.resize(numbers_.size());
    for (std::size_t i = 0; i < fabric.links.size(); ++i) add_link(i);
  }

  // Only for a graph whose names are right.
  void check_use() {
    for (std::size_t i = 0; i < fabric_.switches.size(); ++i)
      rules_.require(used_[number(fabric_.switches[i].name)], fmt::format("switches.{}.name", i),
                     fmt::format("no link leads to \"{}\"", fabric_.switches[i].name));
    if (const std::string cut = unreached(next_); !cut.empty())
      rules_.require(false, "links", fmt::format("chip0 cannot reach {}", cut));
    else if (const std::string mute = unreached(back_); !mute.empty())
      rules_.require(false, "links", fmt::format("{} cannot reach chip0", mute));
  }
  [[nodiscard]] bool names_right() const { return names_right_; }

 private:
  using Adjacency = std::vector<std::vector<std::size_t>>;

  void add_switch(std::size_t i) {
    const std::string& name = fabric_.switches[i].name;
    const std::string place = fmt::format("switches.{}.name", i);
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const bool plain =
        !name.starts_with("chip") && name.find_first_not_of(kLetters) == std::string::npos;
    require(
        plain, place,
        fmt::format("\"{}\": expected letters, digits, \"_\", \".\" and \"-\" that do not start "
                    "with \"chip\"",
                    name));
    if (plain)
      require(numbers_.emplace(name, numbers_.size()).second, place,
              fmt::format("a second switch \"{}\"", name));
  }

  void add_link(std::size_t i) {
    const GraphLinkSpec& link = fabric_.links[i];
    const bool known = known_end(link.from, fmt::format("links.{}.from", i));
    if (!known_end(link.to, fmt::format("links.{}.to", i)) || !known) return;
    require(link.from != link.to, fmt::format("links.{}.to", i),
            fmt::format("a link from {} to itself", link.from));
    join(link.from, link.to, i);
    if (!link.one_way) join(link.to, link.from, i);
  }

  bool known_end(const std::string& name, const std::string& place) {
    if (numbers_.contains(name)) return true;
    std::vector<std::string> names;
    for (const auto& [known, number] : numbers_) names.push_back(known);
    require(false, place,
            fmt::format("\"{}\" is no chip (chip0 to chip{}) and no switch{}", name,
                        fabric_.chips_per_server - 1, base::did_you_mean(name, names)));
    return false;
  }

  void join(const std::string& from, const std::string& to, std::size_t i) {
    const std::size_t a = number(from), b = number(to);
    const auto [first, added] = links_.emplace(std::pair(a, b), i);
    require(
        added, fmt::format("links.{}", i),
        fmt::format("a second link from {} to {}, after links/{}; join them to one with the sum "
                    "of the bandwidths",
                    from, to, first->second));
    next_[a].push_back(b);
    back_[b].push_back(a);
    used_[a] = used_[b] = true;
  }

  void require(bool holds, const std::string& place, const std::string& what) {
    names_right_ = names_right_ && holds;
    rules_.require(holds, place, what);
  }

  // The chips that chip 0 does not reach, "chip3, chip4 and 5 more"; empty if it reaches all.
  [[nodiscard]] std::string unreached(const Adjacency& next) const {
    std::vector<bool> seen(numbers_.size());
    std::vector<std::size_t> open{0};
    seen[0] = true;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const std::size_t to : next[at]) {
        if (!seen[to]) open.push_back(to);
        seen[to] = true;
      }
    }
    constexpr std::size_t kShown = 4;
    std::vector<std::string> names;
    for (std::size_t chip = 0; chip < static_cast<std::size_t>(fabric_.chips_per_server); ++chip)
      if (!seen[chip]) names.push_back(fmt::format("chip{}", chip));
    if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
    return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kShown, ", "),
                       names.size() - kShown);
  }

  [[nodiscard]] std::size_t number(const std::string& name) const { return numbers_.at(name); }

  const FabricSpec& fabric_;
  Rules& rules_;
  std::map<std::string, std::size_t> numbers_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> links_;  // ends to index
  std::vector<bool> used_;
  Adjacency next_, back_;
  bool names_right_ = true;
};

}  // namespace

void check_fabric(const FabricSpec& fabric, Rules& rules) {
  if (fabric.type == "paired_planes") {
    check_paired_planes(fabric, rules);
  } else if (fabric.type == "torus") {
    const std::int64_t chips = fabric.chips_per_server;
    rules.require(chips >= 2 && chips <= kChipsMax, "dims",
                  fmt::format("{}{} chips; expected 2 to {}", chips > kChipsMax ? "at least " : "",
                              chips, kChipsMax));
  } else if (fabric.type == "graph") {
    FabricGraph graph(fabric, rules);
    if (graph.names_right()) graph.check_use();
  }
}

}  // namespace trn3sim::config
