// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/quantity_text.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace trn3sim::config {
namespace {

using base::Bytes;
using base::Energy;
using base::Frequency;
using base::Power;
using base::Rate;
using base::Time;

constexpr std::size_t kDigitsMax = 18;  // keeps digits x factor below 2^127

struct Unit {
  std::string_view name;
  std::int64_t factor;  // base units
};

constexpr std::int64_t power_of_ten(int n) {
  std::int64_t value = 1;
  while (n-- > 0) value *= 10;
  return value;
}

// Units of each kind, ascending; a sample; the largest accepted value.
template <class Q>
struct Kind;

template <>
struct Kind<Bytes> {
  static constexpr Unit kUnits[] = {
      {"B", 1}, {"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}, {"TiB", 1LL << 40}};
  static constexpr std::string_view kSample = "24 MiB", kBase = "byte", kName = "capacity";
  static constexpr std::int64_t kLimit = 1LL << 50;
};
template <>
struct Kind<Rate> {
  static constexpr Unit kUnits[] = {{"B/s", 1},
                                    {"kB/s", power_of_ten(3)},
                                    {"MB/s", power_of_ten(6)},
                                    {"GB/s", power_of_ten(9)},
                                    {"TB/s", power_of_ten(12)},
                                    {"PB/s", power_of_ten(15)}};
  static constexpr std::string_view kSample = "4.9 TB/s", kBase = "byte per second", kName = "rate";
  static constexpr std::int64_t kLimit = power_of_ten(18);
};
template <>
struct Kind<Frequency> {
  static constexpr Unit kUnits[] = {
      {"Hz", 1}, {"kHz", power_of_ten(3)}, {"MHz", power_of_ten(6)}, {"GHz", power_of_ten(9)}};
  static constexpr std::string_view kSample = "1.4 GHz", kBase = "hertz", kName = "frequency";
  static constexpr std::int64_t kLimit = power_of_ten(12);
};
template <>
struct Kind<Time> {
  static constexpr Unit kUnits[] = {{"fs", 1},
                                    {"ps", power_of_ten(3)},
                                    {"ns", power_of_ten(6)},
                                    {"us", power_of_ten(9)},
                                    {"ms", power_of_ten(12)},
                                    {"s", power_of_ten(15)}};
  static constexpr std::string_view kSample = "860 ns", kBase = "femtosecond", kName = "time";
  static constexpr std::int64_t kLimit = power_of_ten(15);
};
template <>
struct Kind<Energy> {
  static constexpr Unit kUnits[] = {{"aJ", 1},
                                    {"fJ", power_of_ten(3)},
                                    {"pJ", power_of_ten(6)},
                                    {"nJ", power_of_ten(9)},
                                    {"uJ", power_of_ten(12)},
                                    {"mJ", power_of_ten(15)},
                                    {"J", power_of_ten(18)}};
  static constexpr std::string_view kSample = "0.42 pJ", kBase = "attojoule", kName = "energy";
  static constexpr std::int64_t kLimit = power_of_ten(18);
};
template <>
struct Kind<Power> {
  static constexpr Unit kUnits[] = {
      {"uW", 1}, {"mW", power_of_ten(3)}, {"W", power_of_ten(6)}, {"kW", power_of_ten(9)}};
  static constexpr std::string_view kSample = "8 W", kBase = "microwatt", kName = "power";
  static constexpr std::int64_t kLimit = power_of_ten(12);
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number split off the front of a text: value = digits / 10^decimals.
struct Decimal {
  Int128 digits = 0;
  int decimals = 0;
  bool ok = false;
  bool long_number = false;  // more digits than fit
  std::string_view rest;
};

Decimal split_decimal(std::string_view text) {
  Decimal d;
  bool negative = false;
  if (text.starts_with('-')) {
    negative = true;
    text.remove_prefix(1);
  }
  std::size_t used = 0, digits = 0;
  bool point = false;
  for (; used < text.size(); ++used) {
    const char c = text[used];
    if (is_digit(c)) {
      if (++digits > kDigitsMax) {
        d.long_number = true;
        return d;
      }
      d.digits = d.digits * 10 + (c - '0');
      if (point) ++d.decimals;
    } else if (c == '.' && !point && used > 0) {
      point = true;
    } else {
      break;
    }
  }
  if (used == 0 || !is_digit(text[0]) || text[used - 1] == '.') return d;
  if (negative) d.digits = -d.digits;
  d.rest = text.substr(used);
  if (d.rest.starts_with(' ')) d.rest.remove_prefix(1);
  d.ok = true;
  return d;
}

std::string unit_list(std::span<const Unit> units) {
  std::string text;
  for (std::size_t i = 0; i < units.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == units.size() ? " or " : ", ", units[i].name);
  return text;
}

}  // namespace

template <class Q>
std::string quantity_sample() {
  return fmt::format("a quantity such as \"{}\"", Kind<Q>::kSample);
}

template <class Q>
std::string quantity_name() {
  return std::string(Kind<Q>::kName);
}

template <class Q>
std::vector<std::string> quantity_units() {
  std::vector<std::string> names;
  for (const Unit& unit : Kind<Q>::kUnits) names.emplace_back(unit.name);
  return names;
}

template <class Q>
Q quantity_limit() {
  return Q(static_cast<typename Q::rep>(Kind<Q>::kLimit));
}

template <class Q>
ParsedQuantity<Q> parse_quantity(std::string_view text) {
  const Decimal d = split_decimal(text);
  if (d.long_number) return QuantityError{fmt::format("a number of at most {} digits", kDigitsMax)};
  if (!d.ok || d.rest.empty()) return QuantityError{quantity_sample<Q>()};
  for (const Unit& unit : Kind<Q>::kUnits) {
    if (d.rest != unit.name) continue;
    const Int128 scaled = d.digits * unit.factor;
    const Int128 divisor = power_of_ten(d.decimals);
    if (scaled % divisor != 0)
      return QuantityError{fmt::format("a whole number of {}s", Kind<Q>::kBase)};
    const Int128 value = scaled / divisor;
    if (value > Kind<Q>::kLimit || value < -Int128(Kind<Q>::kLimit))
      return QuantityError{fmt::format("at most {}", quantity_text(quantity_limit<Q>()))};
    return Q(static_cast<typename Q::rep>(value));
  }
  return QuantityError{
      fmt::format("{} (unit {})", quantity_sample<Q>(), unit_list(Kind<Q>::kUnits))};
}

template <class Q>
std::string quantity_text(Q value) {
  const auto count = static_cast<std::int64_t>(value.count());
  const std::span<const Unit> units(Kind<Q>::kUnits);
  const Unit* unit = &units[0];
  for (const Unit& u : units)
    if (count >= u.factor && (!std::is_same_v<Q, Bytes> || count % u.factor == 0)) unit = &u;
  std::string text = fmt::format("{}", count / unit->factor);
  if (std::int64_t rest = count % unit->factor; rest != 0) {
    text += '.';
    for (std::int64_t digit = unit->factor / 10; rest != 0; digit /= 10) {
      text += static_cast<char>('0' + rest / digit);
      rest %= digit;
    }
  }
  return fmt::format("{} {}", text, unit->name);
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define TRN3SIM_QUANTITY(Q)                                       \
  template ParsedQuantity<Q> parse_quantity<Q>(std::string_view); \
  template std::string quantity_sample<Q>();                      \
  template std::string quantity_name<Q>();                        \
  template std::vector<std::string> quantity_units<Q>();          \
  template std::string quantity_text<Q>(Q);                       \
  template Q quantity_limit<Q>();
// NOLINTEND(bugprone-macro-parentheses)
TRN3SIM_QUANTITY(Bytes)
TRN3SIM_QUANTITY(Rate)
TRN3SIM_QUANTITY(Frequency)
TRN3SIM_QUANTITY(Time)
TRN3SIM_QUANTITY(Energy)
TRN3SIM_QUANTITY(Power)
#undef TRN3SIM_QUANTITY

}  // namespace trn3sim::config
