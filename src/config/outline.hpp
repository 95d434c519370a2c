// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The visitor that notes what keys a spec has, and the tree it makes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/config/quantity_text.hpp"
#include "trn3sim/config/system_describe.hpp"

#include <fmt/format.h>

namespace trn3sim::config {

enum class KeyKind : std::uint8_t {
  Section,
  List,
  Counts,
  Count,
  Number,
  Share,
  Seed,
  Flag,
  Text,
  Choice,
  Quantity
};

struct KeyInfo;

// The keys of a section whose "type" has one value.
struct Shape {
  std::string type;
  std::vector<KeyInfo> keys;
};

struct KeyInfo {
  KeyKind kind = KeyKind::Text;
  std::string key, doc;
  bool required = true;
  std::string standard;            // value if it is missing; only of options
  double low = 0, high = 0;        // Count, Counts, Number
  std::int64_t most = 0;           // items of List and Counts
  bool above_zero = false;         // Quantity
  std::string quantity;            // "time"
  std::string limit;               // largest quantity
  std::vector<std::string> names;  // values of a Choice, units of a Quantity
  std::vector<KeyInfo> keys;       // Section, items of a List
  std::vector<Shape> shapes;       // Section with a "type"; then `keys` is empty
};

class Outliner {
 public:
  static constexpr bool kReads = false;

  explicit Outliner(std::vector<KeyInfo>& keys) : keys_(keys) {}

  template <class S>
  void section(std::string_view key, S& spec, std::string_view doc) {
    KeyInfo& info = add(KeyKind::Section, key, doc);
    Outliner inner(info.keys);
    describe(inner, spec);
  }
  void section(std::string_view key, FabricSpec& /*spec*/, std::string_view doc) {
    KeyInfo& info = add(KeyKind::Section, key, doc);
    for (const std::string_view type : kFabricTypes) {
      Shape& shape = info.shapes.emplace_back(Shape{std::string(type), {}});
      FabricSpec spec;
      spec.type = type;
      Outliner inner(shape.keys);
      describe(inner, spec);
    }
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool /*present*/, std::string_view doc) {
    section(key, spec, doc);
    keys_.back().required = false;
  }
  template <class S>
  void list(std::string_view key, std::vector<S>& /*specs*/, std::int64_t most,
            std::string_view doc) {
    KeyInfo& info = add(KeyKind::List, key, doc);
    info.most = most;
    Outliner inner(info.keys);
    S spec;
    describe(inner, spec);
  }
  template <class S>
  void optional_list(std::string_view key, std::vector<S>& specs, std::int64_t most,
                     std::string_view doc) {
    list(key, specs, most, doc);
    keys_.back().required = false;
  }
  void counts(std::string_view key, const std::vector<std::int64_t>& /*values*/, std::int64_t low,
              std::int64_t high, std::int64_t most, std::string_view doc) {
    range(add(KeyKind::Counts, key, doc), static_cast<double>(low), static_cast<double>(high));
    keys_.back().most = most;
  }
  void count(std::string_view key, std::int64_t /*value*/, std::int64_t low, std::int64_t high,
             std::string_view doc) {
    range(add(KeyKind::Count, key, doc), static_cast<double>(low), static_cast<double>(high));
  }
  void number(std::string_view key, double /*value*/, double low, double high,
              std::string_view doc) {
    range(add(KeyKind::Number, key, doc), low, high);
  }
  void share(std::string_view key, double /*value*/, std::string_view doc) {
    add(KeyKind::Share, key, doc);
  }
  void flag(std::string_view key, bool /*value*/, std::string_view doc) {
    add(KeyKind::Flag, key, doc);
  }
  void text(std::string_view key, const std::string& /*value*/, std::string_view doc) {
    add(KeyKind::Text, key, doc);
  }
  void choice(std::string_view key, const std::string& /*value*/,
              std::span<const std::string_view> names, std::string_view doc) {
    add(KeyKind::Choice, key, doc).names.assign(names.begin(), names.end());
  }
  void option_flag(std::string_view key, bool value, std::string_view doc) {
    flag(key, value, doc);
    option(value ? "true" : "false");
  }
  void option_text(std::string_view key, const std::string& value, std::string_view doc) {
    text(key, value, doc);
    option(value);
  }
  void option_choice(std::string_view key, const std::string& value,
                     std::span<const std::string_view> names, std::string_view doc) {
    choice(key, value, names, doc);
    option(value);
  }
  void option_number(std::string_view key, std::uint64_t value, std::string_view doc) {
    add(KeyKind::Seed, key, doc);
    option(fmt::format("{}", value));
  }
  template <class Q>
  void positive(std::string_view key, Q value, std::string_view doc) {
    non_negative(key, value, doc);
    keys_.back().above_zero = true;
  }
  template <class Q>
  void non_negative(std::string_view key, Q /*value*/, std::string_view doc) {
    KeyInfo& info = add(KeyKind::Quantity, key, doc);
    info.quantity = quantity_name<Q>();
    info.names = quantity_units<Q>();
    info.limit = quantity_text(quantity_limit<Q>());
  }

 private:
  KeyInfo& add(KeyKind kind, std::string_view key, std::string_view doc) {
    KeyInfo& info = keys_.emplace_back();
    info.kind = kind;
    info.key = key;
    info.doc = doc;
    return info;
  }
  static void range(KeyInfo& info, double low, double high) {
    info.low = low;
    info.high = high;
  }
  void option(std::string standard) {
    keys_.back().required = false;
    keys_.back().standard = std::move(standard);
  }

  std::vector<KeyInfo>& keys_;
};

// Keys of a chip file and of a system file, without "kind" and, of a system, "chip".
std::vector<KeyInfo> chip_outline();
std::vector<KeyInfo> system_outline();

}  // namespace trn3sim::config
