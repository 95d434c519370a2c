// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of energy. Every joule belongs to exactly one account; the total is their exact sum.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::base {

enum class EnergyAccount : std::uint8_t {
  Tensor,
  Vector,
  Scalar,
  Gpsimd,
  SbufPsum,
  DmaNoc,
  Hbm,
  HbmPhy,
  Link,
  Host,
  Clock,
  Leakage,
  Regulator
};
inline constexpr std::size_t kEnergyAccounts = 13;

constexpr std::array<std::string_view, kEnergyAccounts> kEnergyAccountNames = {
    "tensor",  "vector", "scalar", "gpsimd", "sbuf_psum", "dma_noc",  "hbm",
    "hbm_phy", "link",   "host",   "clock",  "leakage",   "regulator"};

struct EnergyAccounts {
  std::array<Energy, kEnergyAccounts> of{};
  Energy& operator[](EnergyAccount a) { return of[static_cast<std::size_t>(a)]; }
  Energy operator[](EnergyAccount a) const { return of[static_cast<std::size_t>(a)]; }
  EnergyAccounts& operator+=(const EnergyAccounts& o) {
    for (std::size_t i = 0; i < kEnergyAccounts; ++i) of[i] += o.of[i];
    return *this;
  }
  [[nodiscard]] Energy total() const {
    Energy sum;
    for (Energy e : of) sum += e;
    return sum;
  }
};

}  // namespace trn3sim::base
