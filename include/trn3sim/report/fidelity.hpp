// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Two runs of one step compared: replayed kernel profiles against full detail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/stats/results.hpp"

namespace trn3sim::report {

// Errors are relative to the detailed run; positive: the profiled run takes longer.
struct KernelFidelity {
  std::string label;
  std::int64_t count = 0;                                       // executions over all ranks
  std::int64_t profiled_fs = 0, detailed_fs = 0, alone_fs = 0;  // mean of one execution
  double error_percent = 0;
  double share_percent = 0;  // of the detailed kernel time
};

struct FidelityReport {
  std::vector<KernelFidelity> kernels;  // by size of the error, largest first; ties by label
  // Size of the error of a kernel execution, each weighted by its time; an execution counts with
  // the mean error of its kernel.
  double p50_percent = 0, p95_percent = 0, worst_percent = 0;
  double kernel_time_error_percent = 0;  // of the sum over all executions
  std::int64_t profiled_step_fs = 0, detailed_step_fs = 0;
  double step_error_percent = 0;
};

// Throws base::UserError (place "fidelity") if the runs are not of one program.
FidelityReport compare_fidelity(const stats::Results& profiled, const stats::Results& detailed);

std::string to_text(const FidelityReport& report);
std::string to_json(const FidelityReport& report);

}  // namespace trn3sim::report
