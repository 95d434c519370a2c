// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The report of one kernel.
#pragma once

#include <string>

#include "trn3sim/stats/kernel_results.hpp"

namespace trn3sim::report {

// `explain`: also the mapping and what bounds it.
std::string to_text(const stats::KernelResults& results, bool explain);
std::string to_json(const stats::KernelResults& results, bool explain);

}  // namespace trn3sim::report
