// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_operand.hpp"

#include <bit>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kMxBlock = 32;  // values per scale byte

bool is_mx(base::DType t) {
  return t == base::DType::Mxfp8 || t == base::DType::Mxfp4;
}

std::int64_t bytes_of(base::DType format, std::int64_t elements, std::int64_t kept,
                      std::int64_t block) {
  if (block == 1) return base::storage_bytes(format, elements);
  const std::int64_t values = (elements * kept + block - 1) / block;
  const auto position_bits = std::bit_width(static_cast<std::uint64_t>(block - 1));
  return base::storage_bytes(format, values) + (values * position_bits + 7) / 8;
}

}  // namespace

std::int64_t GemmOperand::hbm_bytes(std::int64_t elements) const {
  return bytes_of(hbm, elements, kept, block);
}

std::int64_t GemmOperand::sbuf_bytes(std::int64_t elements) const {
  return bytes_of(sbuf, elements, kept, block);
}

std::int64_t GemmOperand::scale_bytes(std::int64_t elements) const {
  return is_mx(hbm) ? (elements + kMxBlock - 1) / kMxBlock : 0;
}

GemmOperand operand_of(const KernelSpec& spec, bool a) {
  GemmOperand o;
  o.hbm = (a ? spec.a_format : spec.b_format).value_or(spec.in);
  // The array multiplies MXFP4 with MXFP8 values.
  o.convert = o.hbm != spec.in && !(is_mx(o.hbm) && is_mx(spec.in));
  o.array = o.convert ? spec.in : o.hbm;
  o.sbuf = spec.conversion == Conversion::None ? o.hbm : o.array;
  if (spec.conversion == Conversion::None) o.convert = false;
  o.transpose = a ? spec.a_transposed : spec.b_transposed;
  if (spec.sparse_block > 0 && (a ? spec.a_weight : spec.b_weight && !spec.a_weight)) {
    o.kept = spec.sparse_kept;
    o.block = spec.sparse_block;
  }
  return o;
}

base::DType activation_format(const KernelSpec& spec) {
  return operand_of(spec, !spec.a_weight).hbm;
}

}  // namespace trn3sim::compile
