// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Strong integer quantities. Time is integer femtoseconds, so a clock edge is computed from its
// cycle index and nothing accumulates rounding. Mixing units does not compile; products across
// units are named functions that state their rounding direction.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace trn3sim {

__extension__ typedef __int128 Int128;  // GCC and Clang extension, needed for exact products.

namespace base {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep count() const { return value_; }

  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep n) { return Quantity(a.value_ * n); }
  friend constexpr Quantity operator*(Rep n, Quantity a) { return Quantity(a.value_ * n); }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr bool operator==(Quantity, Quantity) = default;

 private:
  Rep value_{};
};

using Time = Quantity<struct TimeTag, std::int64_t>;            // femtoseconds
using Cycles = Quantity<struct CyclesTag, std::int64_t>;        // cycles of a named clock
using Bytes = Quantity<struct BytesTag, std::int64_t>;          // bytes
using Rate = Quantity<struct RateTag, std::int64_t>;            // bytes per second
using Frequency = Quantity<struct FrequencyTag, std::int64_t>;  // hertz
using Energy = Quantity<struct EnergyTag, Int128>;              // attojoules
using Power = Quantity<struct PowerTag, std::int64_t>;          // microwatts

inline constexpr std::int64_t kFemtosPerSecond = 1'000'000'000'000'000;
inline constexpr Time kTimeMax{INT64_MAX};

constexpr Time nanoseconds(std::int64_t n) {
  return Time(n * 1'000'000);
}
constexpr Time microseconds(std::int64_t n) {
  return Time(n * 1'000'000'000);
}
constexpr double to_seconds(Time t) {
  return static_cast<double>(t.count()) * 1e-15;
}
constexpr double to_joules(Energy e) {
  return static_cast<double>(e.count()) * 1e-18;
}

// Ceiling of a / b for a >= 0, b > 0.
constexpr Int128 ceil_div(Int128 a, Int128 b) {
  return (a + b - 1) / b;
}

// Time of the `cycles`-th edge of a clock, rounded up to a femtosecond.
constexpr Time cycles_time(std::int64_t cycles, Frequency f) {
  return Time(static_cast<std::int64_t>(ceil_div(Int128(cycles) * kFemtosPerSecond, f.count())));
}

// Time to move `bytes` at `rate`, rounded up to a femtosecond. `rate` must be positive.
constexpr Time transfer_time(Bytes bytes, Rate rate) {
  return Time(
      static_cast<std::int64_t>(ceil_div(Int128(bytes.count()) * kFemtosPerSecond, rate.count())));
}

// Rate at which `bytes` take `time`, which must be positive; rounded down.
constexpr Rate average_rate(Bytes bytes, Time time) {
  return Rate(static_cast<std::int64_t>(Int128(bytes.count()) * kFemtosPerSecond / time.count()));
}

// Energy of a constant power over a time, exact: 1 uW x 1 fs = 1e-21 J = 1e-3 aJ, rounded down.
constexpr Energy power_energy(Power p, Time t) {
  return Energy(Int128(p.count()) * t.count() / 1000);
}

}  // namespace base
}  // namespace trn3sim
