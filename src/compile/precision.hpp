// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The run's precision policy: what it changes in the kernels. Rules and assumptions:
// docs/precision.md.
#pragma once

#include <cstdint>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

class Precision {
 public:
  // Adds a problem for a policy that the chip cannot run.
  Precision(const trace::Program& program, const config::RunSpec& run, base::Problems& problems);

  // Formats of a GEMM without an explicit dtype; `spec` has those of the trace.
  void apply(const trace::Gemm& gemm, KernelSpec& spec) const;
  // The optimizer's share of making the weights' copies in the policy's format, once per step.
  // `spec` is the part of `v` on one of `stacks` stacks.
  void add_weight_copies(const trace::Vec& v, std::int64_t stacks, KernelSpec& spec) const;
  // The chip cannot run the policy: its problem is noted, those of single ops would repeat it.
  [[nodiscard]] bool refused() const { return refused_; }
  // HBM bytes of these copies, of one rank.
  [[nodiscard]] std::int64_t weight_copy_bytes() const;

 private:
  [[nodiscard]] bool copies() const { return sparse_block_ > 0 || weight_ != trace_; }
  // True if the chip can run the policy.
  [[nodiscard]] bool check(const config::RunSpec& run, base::Problems& problems) const;

  base::DType trace_;    // format of the trace
  base::DType array_;    // of the products
  base::DType weight_;   // of weights in HBM
  bool policy_ = false;  // a format is given
  bool refused_ = false;
  std::int64_t sparse_kept_ = 0, sparse_block_ = 0;
  std::int64_t weights_ = 0;  // elements of one rank
  Int128 updated_ = 0;        // elements that rank 0's optimizer updates in a step
};

}  // namespace trn3sim::compile
