// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What the parts of a change of the matmul format do to a step: a ladder of runs, each with one
// part more.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/stats/energy_nj.hpp"
#include "trn3sim/stats/results.hpp"

namespace trn3sim::report {

// One run, or the difference of two. Differences of integers are exact.
struct PrecisionFigures {
  std::int64_t step_fs = 0;
  double mfu_percent = 0;                        // full attention, bf16 geometry peak
  std::int64_t hbm_bytes = 0, scale_bytes = 0;   // read and written; scales are among them
  std::array<std::int64_t, 5> engine_busy_fs{};  // mean over used cores, order of models::Engine
  stats::EnergyNanojoules energy;
  double joules_per_token = 0;  // 0 without tokens
};

struct PrecisionStage {
  std::string part;         // "from" | "rate" | "bytes" | "quantise"
  PrecisionFigures total;   // of the run with this part and those before it
  PrecisionFigures change;  // from the stage before; zero of the first
};

struct PrecisionReport {
  std::string from, to;
  std::vector<PrecisionStage> stages;  // the last one is the whole change
  PrecisionFigures change;             // of all parts: the exact sum of theirs
};

// `runs`: with the format `from`, then of `to` the rate, also its weights in HBM, and all of it.
// Throws base::UserError (place "precision") if they are not of one program.
PrecisionReport attribute_precision(const std::string& from, const std::string& to,
                                    const std::array<stats::Results, 4>& runs);

std::string to_text(const PrecisionReport& report);
std::string to_json(const PrecisionReport& report);

}  // namespace trn3sim::report
