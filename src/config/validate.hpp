// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks across the fields of a system whose single fields are right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/system_spec.hpp"

namespace trn3sim::config {

// The place of a value for messages, by its keys: {"chip", "dma", "plateau_rate"} is
// "trn3.json: /dma/plateau_rate", or "--set ..." if an override gave it.
using PlaceOf = std::function<std::string(const std::vector<std::string>& keys)>;

// Adds one problem per broken rule.
void validate(const SystemSpec& system, const PlaceOf& place_of, base::Problems& problems);

}  // namespace trn3sim::config
