// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The visitor that writes a spec as JSON: exact quantities, every value with its source and
// confidence where it has one. The reader accepts the result and makes the same spec of it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "config/reader.hpp"

namespace trn3sim::config {

class Dumper {
 public:
  static constexpr bool kReads = false;

  Dumper(Json& out, std::string path, const std::map<std::string, Provenance>& provenance)
      : out_(out), path_(std::move(path)), provenance_(provenance) {
    out_ = Json::object();
  }

  template <class S>
  void section(std::string_view key, S& spec, std::string_view /*doc*/) {
    Dumper dumper(out_[std::string(key)], dotted(key), provenance_);
    describe(dumper, spec);
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool present, std::string_view doc) {
    if (present) section(key, spec, doc);
  }
  void count(std::string_view key, std::int64_t value, std::int64_t, std::int64_t,
             std::string_view) {
    put(key, value);
  }
  void counts(std::string_view key, const std::vector<std::int64_t>& values, std::int64_t,
              std::int64_t, std::int64_t, std::string_view) {
    put(key, values);
  }
  template <class S>
  void list(std::string_view key, std::vector<S>& specs, std::int64_t, std::string_view /*doc*/) {
    Json& items = out_[std::string(key)] = Json::array();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      items.emplace_back();
      Dumper dumper(items.back(), fmt::format("{}.{}", dotted(key), i), provenance_);
      describe(dumper, specs[i]);
    }
  }
  template <class S>
  void optional_list(std::string_view key, std::vector<S>& specs, std::int64_t most,
                     std::string_view doc) {
    list(key, specs, most, doc);
  }
  void number(std::string_view key, double value, double, double, std::string_view) {
    put(key, value);
  }
  void share(std::string_view key, double value, std::string_view) { put(key, value); }
  void flag(std::string_view key, bool value, std::string_view) { put(key, value); }
  void text(std::string_view key, const std::string& value, std::string_view) { put(key, value); }
  void choice(std::string_view key, const std::string& value, std::span<const std::string_view>,
              std::string_view) {
    put(key, value);
  }
  void option_flag(std::string_view key, bool value, std::string_view) { put(key, value); }
  void option_text(std::string_view key, const std::string& value, std::string_view) {
    put(key, value);
  }
  void option_choice(std::string_view key, const std::string& value,
                     std::span<const std::string_view>, std::string_view) {
    put(key, value);
  }
  void option_number(std::string_view key, std::uint64_t value, std::string_view) {
    put(key, value);
  }
  template <class Q>
  void positive(std::string_view key, Q value, std::string_view) {
    put(key, quantity_text(value));
  }
  template <class Q>
  void non_negative(std::string_view key, Q value, std::string_view) {
    put(key, quantity_text(value));
  }

 private:
  [[nodiscard]] std::string dotted(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  template <class T>
  void put(std::string_view key, const T& value) {
    Json& leaf = out_[std::string(key)];
    const auto from = provenance_.find(dotted(key));
    if (from == provenance_.end())
      leaf = value;
    else
      leaf = {{"value", value},
              {"source", from->second.source},
              {"confidence", from->second.confidence}};
  }

  Json& out_;
  std::string path_;
  const std::map<std::string, Provenance>& provenance_;
};

}  // namespace trn3sim::config
