// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What the semaphores of a tile program stand for, read off the program.
#pragma once

#include <string>
#include <vector>

#include "trn3sim/models/instruction.hpp"

namespace trn3sim::models {

// Per semaphore of the core, who signals it: "load of a", "store of c", "tensor multiply_moving",
// "nobody". Several signalling instructions are joined by "or".
std::vector<std::string> semaphore_signallers(const TileProgram& program, const CoreProgram& core);

// "load of a (queue 0)"
std::string transfer_name(const TileProgram& program, const DmaTransfer& transfer);

}  // namespace trn3sim::models
