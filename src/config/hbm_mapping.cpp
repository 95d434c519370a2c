// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/hbm_mapping.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "trn3sim/config/quantity_text.hpp"

#include <fmt/format.h>

namespace trn3sim::config {
namespace {

using Kind = HbmField::Kind;

bool power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

int bits_of(std::int64_t value) {
  return std::countr_zero(static_cast<std::uint64_t>(value));
}

std::int64_t fold_of(const HbmSpec& s) {
  return s.channels * s.pseudo_channels;
}

// What no map can divide.
HbmMapping impossible_shape(const HbmSpec& s) {
  HbmMapping map;
  const std::pair<const char*, std::int64_t> shape[] = {
      {"hbm.burst", s.burst.count()},     {"hbm.channels", fold_of(s)},
      {"hbm.bank_groups", s.bank_groups}, {"hbm.banks_per_group", s.banks_per_group},
      {"hbm.row", s.row.count()},
  };
  for (const auto& [key, value] : shape) {
    if (power_of_two(value)) continue;
    map.key = key;
    map.problem = fmt::format("found {}; expected a power of two", value);
    return map;
  }
  if (s.row < s.burst) {
    map.key = "hbm.row";
    map.problem =
        fmt::format("{} is less than a burst of {}", quantity_text(s.row), quantity_text(s.burst));
  }
  return map;
}

class Parser {
 public:
  explicit Parser(const HbmSpec& spec)
      : spec_(spec), columns_(bits_of(spec.row.count() / spec.burst.count())) {}

  HbmMapping parse(const std::string& letters) {
    map_.key = "hbm.mapping";
    for (const char letter : letters) {
      if (letter != ' ' && map_.problem.empty()) add(letter);
    }
    if (map_.problem.empty()) check_complete();
    return std::move(map_);
  }

 private:
  void add(char letter) {
    const std::string known = "PGghcKS";
    if (known.find(letter) == std::string::npos)
      return fail(fmt::format("unknown letter '{}'; known are P, G, g, h, c, K, S", letter));
    const int seen = seen_[known.find(letter)]++;
    if (letter == 'c') {
      if (seen == columns_)
        return fail(fmt::format("more than {} column bits 'c'; a row has {} bursts", columns_,
                                std::int64_t{1} << columns_));
      return field(Kind::Column, seen, 2);
    }
    if (seen > 0) return fail(fmt::format("'{}' comes twice", letter));
    switch (letter) {
      case 'P':
        return field(Kind::Channel, 0, fold_of(spec_));
      case 'G':
        return field(Kind::Group, 0, spec_.bank_groups);
      case 'g':
        return field(Kind::Group, 0, std::min<std::int64_t>(spec_.bank_groups, 2));
      case 'h':
        return field(Kind::Group, 1, std::max<std::int64_t>(spec_.bank_groups / 2, 1));
      case 'K':
        return field(Kind::Bank, 0, spec_.banks_per_group);
      default:
        return field(Kind::Sid, 0, spec_.sids);
    }
  }
  void field(Kind kind, int low, std::int64_t count) { map_.fields.push_back({kind, low, count}); }
  void fail(std::string problem) { map_.problem = std::move(problem); }

  [[nodiscard]] int seen(char letter) const { return seen_[std::string("PGghcKS").find(letter)]; }
  void check_complete() {
    if (seen('G') > 0 && seen('g') + seen('h') > 0)
      return fail("'G' is all bits of the bank group: expected it without 'g' and 'h'");
    const bool groups = seen('G') > 0 || (seen('g') > 0 && seen('h') > 0) ||
                        (seen('g') > 0 && spec_.bank_groups == 2) || spec_.bank_groups == 1;
    if (!groups)
      return fail(fmt::format("{} bank groups: expected 'G', or 'g' and 'h'", spec_.bank_groups));
    const auto missing = [&](char letter, std::int64_t count, const char* what) {
      if (map_.problem.empty() && seen(letter) == 0 && count > 1)
        fail(fmt::format("'{}' is missing: there are {} {}", letter, count, what));
    };
    missing('P', fold_of(spec_), "pseudo-channels");
    missing('K', spec_.banks_per_group, "banks in a group");
    missing('S', spec_.sids, "stack IDs");
    if (map_.problem.empty() && seen('c') != columns_)
      fail(fmt::format("{} column bits 'c'; a row of {} in bursts of {} has {}", seen('c'),
                       quantity_text(spec_.row), quantity_text(spec_.burst), columns_));
  }

  const HbmSpec& spec_;
  int columns_;
  HbmMapping map_;
  int seen_[7] = {};
};

}  // namespace

std::string hbm_mapping_letters(const HbmSpec& spec) {
  if (!spec.mapping.empty()) return spec.mapping;
  // Column pair, low bit of the bank group, columns up to the interleave, ..., rest of the row.
  const int columns = bits_of(spec.row.count() / spec.burst.count());
  const int low = std::max(bits_of(spec.interleave.count() / spec.burst.count()) - 1, 1);
  std::string letters = "cg";
  letters.append(static_cast<std::size_t>(low - 1), 'c');
  letters += spec.bank_groups > 2 ? "Ph" : "P";
  letters.append(static_cast<std::size_t>(std::max(columns - low, 0)), 'c');
  return letters + "KS";
}

HbmMapping hbm_mapping(const HbmSpec& spec) {
  HbmMapping map = impossible_shape(spec);
  if (!map.problem.empty()) return map;
  if (spec.mapping.empty()) {
    const std::int64_t columns = spec.interleave.count() / spec.burst.count();
    if (!power_of_two(spec.interleave.count()) || columns < 4 ||
        spec.interleave.count() > 2 * spec.row.count() || spec.bank_groups < 2) {
      map.key = "hbm.interleave";
      map.problem = fmt::format(
          "found {} with {} bank groups; expected a power of two from four "
          "bursts to two rows and two groups at least",
          quantity_text(spec.interleave), spec.bank_groups);
      return map;
    }
  }
  return Parser(spec).parse(hbm_mapping_letters(spec));
}

}  // namespace trn3sim::config
