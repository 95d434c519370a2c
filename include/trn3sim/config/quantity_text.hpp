// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantities as text: "2.4 GHz", "24 MiB", "4.9 TB/s", "860 ns", "0.42 pJ", "8 W". The space is
// optional. Decimals are parsed exactly; a value that is no whole number of base units (bytes,
// bytes per second, hertz, femtoseconds, attojoules, microwatts) is refused, never rounded.
// Capacities are binary (B, KiB, MiB, GiB, TiB), rates decimal (B/s to PB/s).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::config {

// Why a text is no quantity: what was expected, without what was found.
struct QuantityError {
  std::string expected;  // a quantity such as "24 MiB"
};

template <class Q>
using ParsedQuantity = std::variant<Q, QuantityError>;

// Parses `text`; a negative value parses. Instantiated for Bytes, Rate, Frequency, Time, Energy and
// Power.
template <class Q>
ParsedQuantity<Q> parse_quantity(std::string_view text);

// A sample for messages: `a quantity such as "24 MiB"`.
template <class Q>
std::string quantity_sample();

// Shortest exact text in the largest unit that keeps the number at 1 or above; parses back to the
// same value. "4915.2 GB/s" is written "4.9152 TB/s".
template <class Q>
std::string quantity_text(Q value);

// "time", "frequency", "energy", "power", "rate" or "capacity".
template <class Q>
std::string quantity_name();

// The units of a kind, ascending: "fs", "ps", ...
template <class Q>
std::vector<std::string> quantity_units();

// Largest accepted value of a kind, against slips and overflow: 1 PiB, 1 EB/s, 1 THz, 1 s, 1 J, 1
// MW.
template <class Q>
Q quantity_limit();

}  // namespace trn3sim::config
