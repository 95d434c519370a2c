// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Energy = event count x coefficient (exact integers in attojoules) plus static power x time.
#pragma once

#include "trn3sim/base/energy_account.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/event_counts.hpp"

namespace trn3sim::models {

// Dynamic energy of counted events, chip side (regulator loss not included).
base::EnergyAccounts dynamic_energy(const EventCounts& counts, const config::EnergySpec& spec);

// Static energy of one chip over `elapsed`: HBM background and PHY, links, host, uncore clock,
// leakage at the operating temperature, and core clocks: `core_busy` is the sum over cores of the
// time with a compute engine busy; idle cores keep clock_gated_share of their clock power.
base::EnergyAccounts static_energy(const config::ChipSpec& chip, base::Time elapsed,
                                   base::Time core_busy);

// Adds the regulator account: total x (1 / efficiency - 1), rounded down.
void add_regulator_loss(base::EnergyAccounts& accounts, const config::EnergySpec& spec);

}  // namespace trn3sim::models
