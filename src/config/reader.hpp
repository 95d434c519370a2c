// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The visitor that fills a spec from a JSON object. It collects problems instead of stopping and
// notes where each number comes from. A leaf is plain or {"value", "source", "confidence"}; an
// object may hold "source" and "confidence" for the plain leaves in it and below.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/quantity_text.hpp"

#include "config/document.hpp"
#include <fmt/format.h>

namespace trn3sim::config {

// Origin of one value. `confidence` is one of kConfidences.
struct Provenance {
  std::string source;
  std::string confidence;
  std::string value;  // as written
};

// "set" marks values of `--set` in the dump of a run.
inline constexpr std::array<std::string_view, 6> kConfidences = {
    "documented", "measured", "derived", "third_party", "assumed", "set"};
inline constexpr std::string_view kConfidenceNames =
    "documented, measured, derived, third_party or assumed";

// What the readers of one run share.
struct ReadState {
  base::Problems problems;
  std::map<std::string, Provenance> provenance;  // by dotted path
  std::vector<Override> overrides;
};

class Reader {
 public:
  static constexpr bool kReads = true;

  // What a document is: the label of its file, its place in the run ("chip"), and whether each of
  // its numbers must carry source and confidence.
  struct Origin {
    std::string file;
    std::string pointer;
    std::string path;
    bool sources_required = false;
  };

  Reader(const Json& object, Origin origin, ReadState& state);

  template <class S>
  void section(std::string_view key, S& spec, std::string_view doc) {
    if (const Json* object = child(key, true, doc)) read_section(key, *object, spec);
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool /*present*/, std::string_view doc) {
    if (const Json* object = child(key, false, doc)) read_section(key, *object, spec);
  }

  void count(std::string_view key, std::int64_t& value, std::int64_t low, std::int64_t high,
             std::string_view doc);
  void counts(std::string_view key, std::vector<std::int64_t>& values, std::int64_t low,
              std::int64_t high, std::int64_t most, std::string_view doc);
  template <class S>
  void list(std::string_view key, std::vector<S>& specs, std::int64_t most, std::string_view doc) {
    read_list(key, specs, 1, most, doc);
  }
  template <class S>
  void optional_list(std::string_view key, std::vector<S>& specs, std::int64_t most,
                     std::string_view doc) {
    read_list(key, specs, 0, most, doc);
  }
  void number(std::string_view key, double& value, double low, double high, std::string_view doc);
  void share(std::string_view key, double& value, std::string_view doc);
  void flag(std::string_view key, bool& value, std::string_view doc);
  void text(std::string_view key, std::string& value, std::string_view doc);
  void choice(std::string_view key, std::string& value, std::span<const std::string_view> names,
              std::string_view doc);
  void option_flag(std::string_view key, bool& value, std::string_view doc);
  void option_text(std::string_view key, std::string& value, std::string_view doc);  // may be empty
  void option_choice(std::string_view key, std::string& value,
                     std::span<const std::string_view> names, std::string_view doc);
  void option_number(std::string_view key, std::uint64_t& value, std::string_view doc);

  template <class Q>
  void positive(std::string_view key, Q& value, std::string_view doc) {
    quantity(key, value, true, doc);
  }
  template <class Q>
  void non_negative(std::string_view key, Q& value, std::string_view doc) {
    quantity(key, value, false, doc);
  }

  // A key that the caller reads itself: it is known from now on.
  void known(std::string_view key) { known_.emplace_back(key); }

  // Reports the keys that nothing asked for. Call it last.
  void finish();

  // "trn3.json: /dma/queues", or "--set ..." where an override put the value.
  [[nodiscard]] std::string place(std::string_view key) const;

 private:
  struct Leaf {
    Json value;
    std::string place;
    bool overridden = false;  // the value is the text of an override
    // The value where a number or a flag is wanted: an override's text is read as JSON.
    [[nodiscard]] Json scalar() const;
  };
  enum class Need { Optional, Required, Number };

  Reader(const Json& object, Origin origin, ReadState& state, const Reader& parent);
  template <class S>
  void read_section(std::string_view key, const Json& object, S& spec) {
    Origin origin{origin_.file, fmt::format("{}/{}", origin_.pointer, key), dotted(key),
                  origin_.sources_required};
    Reader reader(object, std::move(origin), state_, *this);
    describe(reader, spec);
    reader.finish();
  }
  template <class S>
  void read_list(std::string_view key, std::vector<S>& specs, std::int64_t least, std::int64_t most,
                 std::string_view doc) {
    const Json* items = array(key, least, most, doc);
    if (items == nullptr) return;
    specs.clear();
    for (std::size_t i = 0; i < items->size(); ++i) {
      specs.emplace_back();
      const std::string name = fmt::format("{}/{}", key, i);
      if (!(*items)[i].is_object()) {
        wrong({(*items)[i], item_place(key, i), false}, "an object");
        continue;
      }
      Origin origin{origin_.file, fmt::format("{}/{}", origin_.pointer, name),
                    fmt::format("{}.{}", dotted(key), i), origin_.sources_required};
      Reader reader((*items)[i], std::move(origin), state_, *this);
      describe(reader, specs.back());
      reader.finish();
    }
  }
  void read_defaults();
  // The list at `key`; nothing if it is missing or wrong (then a problem is noted where needed).
  [[nodiscard]] const Json* array(std::string_view key, std::int64_t least, std::int64_t most,
                                  std::string_view doc);
  [[nodiscard]] const Json* child(std::string_view key, bool required, std::string_view doc);
  // The leaf at `key`; nothing if it is missing or wrong as a leaf (then a problem is noted, which
  // says what is expected there and what it means).
  [[nodiscard]] std::optional<Leaf> leaf(std::string_view key, Need need, std::string_view expected,
                                         std::string_view doc);
  void missing(std::string_view key, std::string_view expected, std::string_view doc);
  void long_leaf(std::string_view key, const Json& written, Provenance& from, bool& ok);
  void note(std::string_view key, Provenance from, Need need);
  [[nodiscard]] std::string item_place(std::string_view key, std::size_t i) const;
  [[nodiscard]] const Override* override_at(std::string_view path) const;
  [[nodiscard]] std::string unknown_hint(const std::string& key) const;
  [[nodiscard]] std::string dotted(std::string_view key) const;
  void wrong(const Leaf& found, std::string_view expected, std::string_view hint = "");
  bool read_choice(const Leaf& found, std::string& value, std::span<const std::string_view> names);
  void read_flag(const Leaf& found, bool& value);

  template <class Q>
  void quantity(std::string_view key, Q& value, bool above_zero, std::string_view doc) {
    const std::optional<Leaf> found = leaf(key, Need::Number, quantity_sample<Q>(), doc);
    if (!found) return;
    if (!found->value.is_string()) return wrong(*found, quantity_sample<Q>());
    const auto parsed = parse_quantity<Q>(found->value.template get_ref<const std::string&>());
    if (const auto* error = std::get_if<QuantityError>(&parsed))
      return wrong(*found, error->expected);
    const Q read = std::get<Q>(parsed);
    if (read.count() < 0 || (above_zero && read.count() == 0))
      return wrong(*found, above_zero ? "a quantity above zero" : "a quantity of at least zero");
    value = read;
  }

  const Json& object_;
  Origin origin_;
  ReadState& state_;
  std::string default_source_, default_confidence_;
  std::vector<std::string> known_;
  bool shape_unknown_ =
      false;  // "type" is missing or wrong, so nobody knows which keys belong here
};

}  // namespace trn3sim::config
