// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Text helpers: suggestions for mistyped names and numbers with units for people.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::base {

// The candidate nearest to `word` by edit distance if it is near enough to be a typing slip
// (at most a third of its length, at least 1), else empty. Ties: the earlier candidate.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// " ; did you mean "x"?" text or "" (leading "; ").
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Three or four significant digits with a decimal SI unit: "8.123 s", "412 us", "13.4 ns".
std::string format_time(Time t);
// Decimal: "1.23 GB".
std::string format_bytes(Bytes b);
// "4.92 TB/s".
std::string format_rate(Rate r);
// "12.3 kJ".
std::string format_energy(Energy e);
// `value` with a decimal SI prefix and 3 significant digits: si(1.5e12, "FLOP") = "1.50 TFLOP".
std::string format_si(double value, std::string_view unit);

}  // namespace trn3sim::base
