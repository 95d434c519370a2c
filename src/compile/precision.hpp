// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The run's precision policy: what it changes in the kernels. Rules and assumptions:
// docs/precision.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/trace/program.hpp"

namespace trn3sim::compile {

// An op of a program.
struct OpPlace {
  std::size_t block = 0, op = 0;
};

class Precision {
 public:
  // Adds a problem for a policy that the chip cannot run, and for names of precision.ops that are
  // no GEMM of the program.
  Precision(const trace::Program& program, const config::RunSpec& run, base::Problems& problems);

  // The GEMM at `at` keeps the dtype that the trace gives it.
  [[nodiscard]] bool keeps_dtype(OpPlace at, const trace::Gemm& gemm) const;
  // Formats of a GEMM that does not; `spec` has those of the trace's default.
  void apply(OpPlace at, const trace::Gemm& gemm, KernelSpec& spec) const;
  // The optimizer's share of making the weights' copies in the formats of the GEMMs, once per step.
  // `spec` is the part of `v` on one of `stacks` stacks.
  void add_weight_copies(const trace::Vec& v, std::int64_t stacks, KernelSpec& spec) const;
  // The chip cannot run the policy: its problem is noted, those of single ops would repeat it.
  [[nodiscard]] bool refused() const { return refused_; }
  // HBM bytes of these copies, of one rank.
  [[nodiscard]] std::int64_t weight_copy_bytes() const;

 private:
  // Contraction along k (Y = X W) and along n (dX = dY W^T).
  static constexpr std::size_t kOrientations = 2;
  // Formats of some GEMMs: the run's, or those of one name of precision.ops.
  struct Format {
    base::DType array;         // of the products
    base::DType weight;        // of weights in HBM
    bool follow_trace = true;  // what the trace says, also of single ops
    Conversion conversion = Conversion::Charged;
    std::array<std::int64_t, kOrientations> weights{};  // elements of one rank
  };

  [[nodiscard]] Format format_of(const std::string& name) const;
  void choose_parts(const std::string& parts);
  void read_sparsity(const std::string& pattern);
  // Finds the ops of each name.
  void find_names(const trace::Program& program, const config::RunSpec& run,
                  base::Problems& problems);
  // Shares the weights among the formats, by the sizes of the weights that the GEMMs read.
  void share_weights(const trace::Program& program);
  // The first format that makes the same copies; one past the last stands for itself.
  [[nodiscard]] std::size_t first_like(std::size_t index) const;
  [[nodiscard]] const Format& at(OpPlace place) const;
  [[nodiscard]] bool sparse(const Format& format) const;
  [[nodiscard]] bool copies(const Format& f) const { return sparse(f) || f.weight != trace_; }
  [[nodiscard]] std::int64_t copy_bytes(const Format& format, std::int64_t elements) const;
  // Bytes that are read to make the copies of a format.
  [[nodiscard]] std::int64_t source_bytes(const Format& format) const;
  [[nodiscard]] const char* copy_function(const Format& format) const;
  // True if the chip can run the format, which `key` and `name` gave.
  bool check(const Format& format, const char* key, const std::string& name,
             const config::ChipSpec& chip, base::Problems& problems) const;
  bool check_sparsity(const config::RunSpec& run, base::Problems& problems) const;

  base::DType header_;           // format of the trace
  base::DType trace_;            // the same, or the run's other 2-byte format
  std::vector<Format> formats_;  // the run's, then those of precision.ops in order
  std::vector<std::vector<std::size_t>> format_of_op_;  // by block and op, index of formats_
  bool refused_ = false;
  std::int64_t sparse_kept_ = 0, sparse_block_ = 0;
  std::int64_t weights_ = 0;  // elements of one rank
  Int128 updated_ = 0;        // elements that rank 0's optimizer updates in a step
};

}  // namespace trn3sim::compile
