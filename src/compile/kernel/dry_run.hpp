// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a tile program ends, whatever its times are.
#pragma once

#include <string>

#include "trn3sim/models/instruction.hpp"

namespace trn3sim::compile {

// Who waits for whom when nothing can go on; empty if every stream ends. A semaphore has one
// waiting and one signalling party, so the order of steps does not matter.
std::string deadlock_of(const models::TileProgram& program);

}  // namespace trn3sim::compile
