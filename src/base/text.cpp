// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace trn3sim::base {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    const std::size_t d = edit_distance(word, c);
    if (d < best_distance) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : fmt::format("; did you mean \"{}\"?", best);
}

std::string format_si(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 11> kPrefix = {"f", "p", "n", "u", "m", "",
                                                               "k", "M", "G", "T", "P"};
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, unit);
  int index = 5;
  double scaled = value;
  while (std::abs(scaled) >= 999.5 && index < 10) {
    scaled /= 1000;
    ++index;
  }
  while (std::abs(scaled) < 0.9995 && index > 0) {
    scaled *= 1000;
    --index;
  }
  const int decimals = std::abs(scaled) >= 99.95 ? 0 : std::abs(scaled) >= 9.995 ? 1 : 2;
  if (index == 10 && std::abs(scaled) >= 999.5) {  // beyond peta: exa
    scaled /= 1000;
    return fmt::format("{:.{}f} E{}", scaled, 2, unit);
  }
  return fmt::format("{:.{}f} {}{}", scaled, decimals, kPrefix[static_cast<std::size_t>(index)],
                     unit);
}

std::string format_time(Time t) {
  return format_si(to_seconds(t), "s");
}
std::string format_bytes(Bytes b) {
  return format_si(static_cast<double>(b.count()), "B");
}
std::string format_rate(Rate r) {
  return format_si(static_cast<double>(r.count()), "B/s");
}
std::string format_energy(Energy e) {
  return format_si(to_joules(e), "J");
}

}  // namespace trn3sim::base
