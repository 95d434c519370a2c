// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/catalog.hpp"

#include <span>

#include "trn3sim/config/system_describe.hpp"

#include "config/document.hpp"
#include <fmt/format.h>

namespace trn3sim::config {
namespace {

// The visitor that lists the values of a spec; sources come from its dump.
class Lister {
 public:
  static constexpr bool kReads = false;

  Lister(const Json& dump, std::string path, std::vector<ResolvedValue>& values)
      : dump_(dump), path_(std::move(path)), values_(values) {}

  template <class S>
  void section(std::string_view key, S& spec, std::string_view /*doc*/) {
    Lister inner(dump_.at(std::string(key)), dotted(key), values_);
    describe(inner, spec);
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool present, std::string_view doc) {
    if (present) section(key, spec, doc);
  }
  template <class S>
  void list(std::string_view key, std::vector<S>& specs, std::int64_t, std::string_view) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      Lister inner(dump_.at(std::string(key)).at(i), fmt::format("{}.{}", dotted(key), i), values_);
      describe(inner, specs[i]);
    }
  }
  template <class S>
  void optional_list(std::string_view key, std::vector<S>& specs, std::int64_t most,
                     std::string_view doc) {
    list(key, specs, most, doc);
  }
  void counts(std::string_view key, const std::vector<std::int64_t>&, std::int64_t, std::int64_t,
              std::int64_t, std::string_view) {
    put(key);
  }
  void count(std::string_view key, std::int64_t, std::int64_t, std::int64_t, std::string_view) {
    put(key);
  }
  void number(std::string_view key, double, double, double, std::string_view) { put(key); }
  void share(std::string_view key, double, std::string_view) { put(key); }
  void flag(std::string_view key, bool, std::string_view) { put(key); }
  void text(std::string_view key, const std::string&, std::string_view) { put(key); }
  void choice(std::string_view key, const std::string&, std::span<const std::string_view>,
              std::string_view) {
    put(key);
  }
  void option_flag(std::string_view key, bool, std::string_view) { put(key); }
  void option_text(std::string_view key, const std::string&, std::string_view) { put(key); }
  void option_choice(std::string_view key, const std::string&, std::span<const std::string_view>,
                     std::string_view) {
    put(key);
  }
  void option_number(std::string_view key, std::uint64_t, std::string_view) { put(key); }
  template <class Q>
  void positive(std::string_view key, Q, std::string_view) {
    put(key);
    ResolvedValue& value = values_.back();  // "4.9152 TB/s"
    const std::size_t space = value.value.find(' ');
    value.unit = value.value.substr(space + 1);
    value.value.resize(space);
  }
  template <class Q>
  void non_negative(std::string_view key, Q quantity, std::string_view doc) {
    positive(key, quantity, doc);
  }

 private:
  [[nodiscard]] std::string dotted(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  void put(std::string_view key) {
    const Json& written = dump_.at(std::string(key));
    const Json& plain = is_long_leaf(written) ? written.at("value") : written;
    ResolvedValue value;
    value.path = dotted(key);
    value.value = plain.is_string() ? plain.get<std::string>() : plain.dump();
    if (is_long_leaf(written)) {
      value.confidence = written.at("confidence").get<std::string>();
      value.source = written.at("source").get<std::string>();
    }
    values_.push_back(std::move(value));
  }

  const Json& dump_;
  std::string path_;
  std::vector<ResolvedValue>& values_;
};

}  // namespace

std::vector<ResolvedValue> resolved_values(const RunSpec& run) {
  const Json dump = Json::parse(run.resolved_json);
  std::vector<ResolvedValue> values;
  Lister lister(dump, "", values);
  SystemFile file = system_file(run);
  describe(lister, file);
  ChipSpec chip = run.system.chip;
  lister.section("chip", chip, "");
  return values;
}

}  // namespace trn3sim::config
