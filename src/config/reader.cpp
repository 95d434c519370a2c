// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "config/reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "trn3sim/base/text.hpp"

#include <fmt/ranges.h>

namespace trn3sim::config {
namespace {

bool is_confidence(std::string_view text) {
  return std::find(kConfidences.begin(), kConfidences.end(), text) != kConfidences.end();
}

std::string quoted_list(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text;
}

}  // namespace

Json Reader::Leaf::scalar() const {
  if (!overridden) return value;
  Json parsed = Json::parse(value.get_ref<const std::string&>(), nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : value;
}

Reader::Reader(const Json& object, Origin origin, ReadState& state)
    : object_(object), origin_(std::move(origin)), state_(state) {
  read_defaults();
}

Reader::Reader(const Json& object, Origin origin, ReadState& state, const Reader& parent)
    : object_(object),
      origin_(std::move(origin)),
      state_(state),
      default_source_(parent.default_source_),
      default_confidence_(parent.default_confidence_) {
  read_defaults();
}

void Reader::read_defaults() {
  for (const auto& [key, target] :
       {std::pair{"source", &default_source_}, std::pair{"confidence", &default_confidence_}}) {
    known_.emplace_back(key);
    const auto it = object_.find(key);
    if (it == object_.end()) continue;
    const bool is_source = std::string_view(key) == "source";
    if (!it->is_string() || it->get_ref<const std::string&>().empty() ||
        (!is_source && !is_confidence(it->get_ref<const std::string&>())))
      wrong({*it, place(key), false},
            is_source ? "a text that names the source" : kConfidenceNames);
    else
      *target = it->get<std::string>();
  }
}

std::string Reader::dotted(std::string_view key) const {
  return origin_.path.empty() ? std::string(key) : fmt::format("{}.{}", origin_.path, key);
}

const Override* Reader::override_at(std::string_view path) const {
  const Override* found = nullptr;  // the last one wins
  for (const Override& change : state_.overrides)
    if (change.path == path) found = &change;
  return found;
}

std::string Reader::place(std::string_view key) const {
  if (const Override* change = override_at(dotted(key))) return change->place();
  return fmt::format("{}: {}/{}", origin_.file, origin_.pointer, key);
}

std::string Reader::item_place(std::string_view key, std::size_t i) const {
  if (const Override* change = override_at(fmt::format("{}.{}", dotted(key), i)))
    return change->place();
  return fmt::format("{}/{}", place(key), i);
}

void Reader::wrong(const Leaf& found, std::string_view expected, std::string_view hint) {
  state_.problems.add(found.place,
                      fmt::format("expected {}, got {}{}", expected, shown(found.value), hint));
}

void Reader::missing(std::string_view key, std::string_view expected, std::string_view doc) {
  state_.problems.add(place(key),
                      fmt::format("required, but missing; expected {} ({})", expected, doc));
}

const Json* Reader::child(std::string_view key, bool required, std::string_view doc) {
  known_.emplace_back(key);
  const auto it = object_.find(key);
  if (it == object_.end()) {
    if (required) missing(key, "an object", doc);
    return nullptr;
  }
  if (it->is_object()) return &*it;
  wrong({*it, place(key), false}, "an object");
  return nullptr;
}

const Json* Reader::array(std::string_view key, std::int64_t least, std::int64_t most,
                          std::string_view doc) {
  known_.emplace_back(key);
  const auto it = object_.find(key);
  if (it == object_.end()) {
    if (least > 0) missing(key, "a list of objects", doc);
    return nullptr;
  }
  const auto fits = [&](std::size_t n) {
    return n >= static_cast<std::size_t>(least) && n <= static_cast<std::size_t>(most);
  };
  if (it->is_array() && fits(it->size())) return &*it;
  const std::string found = it->is_array() ? fmt::format("{} items", it->size()) : shown(*it);
  state_.problems.add(
      place(key), fmt::format("expected a list of {} to {} objects, got {}", least, most, found));
  return nullptr;
}

void Reader::long_leaf(std::string_view key, const Json& written, Provenance& from, bool& ok) {
  const auto problem = [&](std::string_view inner, const std::string& what) {
    ok = false;
    state_.problems.add(fmt::format("{}/{}", place(key), inner), what);
  };
  static const std::vector<std::string> kKeys = {"value", "source", "confidence"};
  for (const auto& [name, value] : written.items()) {
    if (name == "value") {
      continue;
    } else if (name == "source" && value.is_string() &&
               !value.get_ref<const std::string&>().empty()) {
      from.source = value.get<std::string>();
    } else if (name == "source") {
      problem(name, fmt::format("expected a text that names the source, got {}", shown(value)));
    } else if (name == "confidence" && value.is_string() &&
               is_confidence(value.get_ref<const std::string&>())) {
      from.confidence = value.get<std::string>();
    } else if (name == "confidence") {
      problem(name, fmt::format("expected {}, got {}", kConfidenceNames, shown(value)));
    } else {
      problem(name, "unknown key" + base::did_you_mean(name, kKeys));
    }
  }
  if (!written.contains("value")) problem("value", "required, but missing");
}

std::optional<Reader::Leaf> Reader::leaf(std::string_view key, Need need, std::string_view expected,
                                         std::string_view doc) {
  known_.emplace_back(key);
  const auto it = object_.find(key);
  if (it == object_.end()) {
    if (need != Need::Optional) missing(key, expected, doc);
    return std::nullopt;
  }
  if (const Override* change = override_at(dotted(key))) {
    note(key, {"--set", "set", change->value}, need);
    return Leaf{*it, change->place(), true};
  }
  Provenance from{default_source_, default_confidence_, {}};
  bool ok = true;
  const Json* value = &*it;
  if (it->is_object()) {
    long_leaf(key, *it, from, ok);
    if (!ok) return std::nullopt;
    value = &it->at("value");
  }
  from.value = value->is_string() ? value->get<std::string>() : shown(*value);
  note(key, std::move(from), need);
  return Leaf{*value, place(key), false};
}

void Reader::note(std::string_view key, Provenance from, Need need) {
  if (from.source.empty() || from.confidence.empty()) {
    if (origin_.sources_required && need == Need::Number)
      state_.problems.add(
          place(key),
          fmt::format("a number of a chip file needs \"source\" and \"confidence\" ({}), "
                      "its own or those of its section",
                      kConfidenceNames));
    return;
  }
  state_.provenance[dotted(key)] = std::move(from);
}

void Reader::count(std::string_view key, std::int64_t& value, std::int64_t low, std::int64_t high,
                   std::string_view doc) {
  std::optional<Leaf> found = leaf(key, Need::Number, "a whole number", doc);
  if (!found) return;
  found->value = found->scalar();
  if (!found->value.is_number_integer()) return wrong(*found, "a whole number");
  const bool huge = found->value.is_number_unsigned() &&
                    found->value.get<std::uint64_t>() >
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t read =
      huge ? std::numeric_limits<std::int64_t>::max() : found->value.get<std::int64_t>();
  if (huge || read < low || read > high)
    return wrong(*found, fmt::format("a whole number from {} to {}", low, high));
  value = read;
}

// An override gives the whole list as JSON, "[4, 4]", or one item, dims.0.
void Reader::counts(std::string_view key, std::vector<std::int64_t>& values, std::int64_t low,
                    std::int64_t high, std::int64_t most, std::string_view doc) {
  std::optional<Leaf> found = leaf(key, Need::Number, "a list of whole numbers", doc);
  if (!found) return;
  if (found->overridden) {
    const std::string& text = found->value.get_ref<const std::string&>();
    Json parsed = too_deep(text) > 0 ? Json() : Json::parse(text, nullptr, false);
    if (parsed.is_array()) found->value = std::move(parsed);
  }
  const Json& list = found->value;
  if (!list.is_array() || list.empty() || list.size() > static_cast<std::size_t>(most))
    return wrong(*found, fmt::format("a list of 1 to {} whole numbers", most));
  std::vector<std::int64_t> read;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Override* change = override_at(fmt::format("{}.{}", dotted(key), i));
    Leaf item{list[i], item_place(key, i), change != nullptr && list[i].is_string()};
    item.value = item.scalar();
    if (!item.value.is_number_integer() || item.value < low || item.value > high)
      return wrong(item, fmt::format("a whole number from {} to {}", low, high));
    read.push_back(item.value.get<std::int64_t>());
  }
  values = std::move(read);
}

void Reader::number(std::string_view key, double& value, double low, double high,
                    std::string_view doc) {
  std::optional<Leaf> found = leaf(key, Need::Number, "a number", doc);
  if (!found) return;
  found->value = found->scalar();
  if (!found->value.is_number()) return wrong(*found, "a number");
  const double read = found->value.get<double>();
  if (!std::isfinite(read) || read < low || read > high)
    return wrong(*found, fmt::format("a number from {} to {}", low, high));
  value = read;
}

void Reader::share(std::string_view key, double& value, std::string_view doc) {
  std::optional<Leaf> found = leaf(key, Need::Number, "a number above 0 and at most 1", doc);
  if (!found) return;
  found->value = found->scalar();
  if (!found->value.is_number()) return wrong(*found, "a number");
  const double read = found->value.get<double>();
  if (!std::isfinite(read) || read <= 0 || read > 1)
    return wrong(*found, "a number above 0 and at most 1");
  value = read;
}

void Reader::read_flag(const Leaf& found, bool& value) {
  const Json scalar = found.scalar();
  if (!scalar.is_boolean()) return wrong(found, "true or false");
  value = scalar.get<bool>();
}

void Reader::flag(std::string_view key, bool& value, std::string_view doc) {
  if (const std::optional<Leaf> found = leaf(key, Need::Required, "true or false", doc))
    read_flag(*found, value);
}

void Reader::option_flag(std::string_view key, bool& value, std::string_view doc) {
  if (const std::optional<Leaf> found = leaf(key, Need::Optional, "true or false", doc))
    read_flag(*found, value);
}

void Reader::text(std::string_view key, std::string& value, std::string_view doc) {
  const std::optional<Leaf> found = leaf(key, Need::Required, "a text", doc);
  if (!found) return;
  if (!found->value.is_string() || found->value.get_ref<const std::string&>().empty())
    return wrong(*found, "a text");
  value = found->value.get<std::string>();
}

void Reader::option_text(std::string_view key, std::string& value, std::string_view doc) {
  const std::optional<Leaf> found = leaf(key, Need::Optional, "a text", doc);
  if (!found) return;
  if (!found->value.is_string()) return wrong(*found, "a text");
  value = found->value.get<std::string>();
}

bool Reader::read_choice(const Leaf& found, std::string& value,
                         std::span<const std::string_view> names) {
  std::string hint;
  if (found.value.is_string()) {
    const std::string& read = found.value.get_ref<const std::string&>();
    if (std::find(names.begin(), names.end(), read) != names.end()) {
      value = read;
      return true;
    }
    hint = base::did_you_mean(read, std::vector<std::string>(names.begin(), names.end()));
  }
  wrong(found, quoted_list(names), hint);
  return false;
}

void Reader::choice(std::string_view key, std::string& value,
                    std::span<const std::string_view> names, std::string_view doc) {
  const std::optional<Leaf> found = leaf(key, Need::Required, quoted_list(names), doc);
  const bool ok = found && read_choice(*found, value, names);
  if (!ok && key == "type") shape_unknown_ = true;
}

void Reader::option_choice(std::string_view key, std::string& value,
                           std::span<const std::string_view> names, std::string_view doc) {
  if (const std::optional<Leaf> found = leaf(key, Need::Optional, quoted_list(names), doc))
    read_choice(*found, value, names);
}

void Reader::option_number(std::string_view key, std::uint64_t& value, std::string_view doc) {
  std::optional<Leaf> found = leaf(key, Need::Optional, "a whole number of at least 0", doc);
  if (!found) return;
  found->value = found->scalar();
  if (!found->value.is_number_unsigned()) return wrong(*found, "a whole number of at least 0");
  value = found->value.get<std::uint64_t>();
}

// A near name, or all names if they are few. The first two known keys are source and confidence.
std::string Reader::unknown_hint(const std::string& key) const {
  constexpr std::size_t kFew = 8;
  std::string hint = base::did_you_mean(key, known_);
  const std::vector<std::string> names(known_.begin() + 2,
                                       known_.end());  // without source, confidence
  if (!hint.empty() || names.size() > kFew) return hint;
  return fmt::format("; known are {}", fmt::join(names, ", "));
}

void Reader::finish() {
  if (shape_unknown_) return;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    // An override that made this key, or one inside it, is the place to mend.
    const std::string path = dotted(key);
    const auto made =
        std::find_if(state_.overrides.begin(), state_.overrides.end(), [&](const Override& change) {
          return change.path == path || change.path.starts_with(path + ".");
        });
    const std::string hint = unknown_hint(key);
    if (made != state_.overrides.end())
      state_.problems.add(made->place(),
                          fmt::format("unknown key \"{}\" in {}{}", key, origin_.path, hint));
    else
      state_.problems.add(fmt::format("{}: {}/{}", origin_.file, origin_.pointer, key),
                          "unknown key" + hint);
  }
}

}  // namespace trn3sim::config
