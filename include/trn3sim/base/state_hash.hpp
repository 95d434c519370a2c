// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A 128-bit fingerprint of simulation state: two independent 64-bit mixes of a sequence of
// integers. Equal sequences give equal fingerprints; unequal ones collide with probability 2^-128
// or so.
#pragma once

#include <compare>
#include <cstdint>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::base {

class StateHash {
 public:
  void add(std::int64_t value) {
    const auto x = static_cast<std::uint64_t>(value);
    a_ = mix(a_ ^ x, 0x9e3779b97f4a7c15ULL);                          // splitmix64 constants
    b_ = mix(b_ + x * 0xff51afd7ed558ccdULL, 0xc4ceb9fe1a85ec53ULL);  // murmur3 finaliser constants
  }
  // A time relative to `now`; never (kTimeMax) stays never.
  void add(Time t, Time now) { add(t == kTimeMax ? INT64_MIN : (t - now).count()); }
  auto operator<=>(const StateHash&) const = default;

 private:
  static std::uint64_t mix(std::uint64_t x, std::uint64_t k) {
    x += k;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  std::uint64_t a_ = 0, b_ = 1;
};

}  // namespace trn3sim::base
