// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// How an operand of a GEMM lies in HBM and in SBUF, and what must be done to it in between.
#pragma once

#include <cstdint>

#include "trn3sim/compile/kernel.hpp"

namespace trn3sim::compile {

struct GemmOperand {
  base::DType hbm = base::DType::Bf16;
  base::DType sbuf = base::DType::Bf16;
  base::DType array = base::DType::Bf16;  // as TensorE reads it
  std::int64_t kept = 1, block = 1;       // of the values along k, compressed weights
  bool transpose = false;                 // by TensorE, tiles of 128 x 128
  bool convert = false;                   // by VectorE, after a transpose

  [[nodiscard]] bool prepared() const { return transpose || convert; }
  // Bytes of `elements` values of the dense operand; the scales of MX formats and the positions of
  // compressed values (ceil(log2(block)) bits each, assumed) are included.
  [[nodiscard]] std::int64_t hbm_bytes(std::int64_t elements) const;
  [[nodiscard]] std::int64_t sbuf_bytes(std::int64_t elements) const;
  // Bytes of MX scales among hbm_bytes.
  [[nodiscard]] std::int64_t scale_bytes(std::int64_t elements) const;
};

// `a`: the left operand, else the right one.
GemmOperand operand_of(const KernelSpec& spec, bool a);

// Format of the activations that epilogues read.
base::DType activation_format(const KernelSpec& spec);

}  // namespace trn3sim::compile
