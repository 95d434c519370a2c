// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Energy as results.json states it: integer nanojoules per account, each rounded down, and a total
// that is the exact sum of the written accounts.
#pragma once

#include <array>
#include <cstdint>

#include "trn3sim/base/energy_account.hpp"

namespace trn3sim::stats {

inline constexpr std::int64_t kAttojoulesPerNanojoule = 1'000'000'000;

struct EnergyNanojoules {
  std::array<std::int64_t, base::kEnergyAccounts> of{};
  std::int64_t total = 0;  // of `of`
};

// Throws base::InternalError if an account is negative or the total passes 9.2 GJ.
EnergyNanojoules to_nanojoules(const base::EnergyAccounts& accounts);

}  // namespace trn3sim::stats
