// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks across the fields of a system whose single fields are right.
#pragma once

#include <string>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/system_spec.hpp"

namespace trn3sim::config {

// Adds one problem per broken rule. `chip_place` and `fabric_place` are the places of the chip and
// the fabric objects ("trn3.json: ", "ultraserver64.json: /fabric"); keys are appended.
void validate(const SystemSpec& system, const std::string& chip_place,
              const std::string& fabric_place, base::Problems& problems);

}  // namespace trn3sim::config
