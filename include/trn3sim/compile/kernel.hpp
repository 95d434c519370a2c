// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel is a fusion group compiled for the cores of one HBM stack that serve one rank.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/config/mapping_spec.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::compile {

enum class KernelKind : std::uint8_t { Gemm, AttentionForward, AttentionBackward, Vector, Scan, Copy };

// One fused epilogue step: a vec function applied to `elems_per_result` extra operand tensors.
struct Epilogue {
  std::string fn;          // a trace::vec_function name
  std::int64_t elems = 0;  // of the whole kernel, all cores of the stack
  auto operator<=>(const Epilogue&) const = default;
};

// Conversion of a GEMM's operands to the format of the array. The others are experiments that tell
// what the parts of a format change: Free: mapping and buffers as if charged, but no work; None:
// SBUF holds what HBM holds, and the array takes it as it is.
enum class Conversion : std::uint8_t { Charged, Free, None };

// All the fields that decide a kernel's tile program, for the cores of ONE stack together.
struct KernelSpec {
  KernelKind kind = KernelKind::Gemm;
  // Gemm: C[m,n] (+)= A[m,k] B[k,n], batch times. Attention: batch = sequences.
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  // Copy: n tiles of m rows of k bytes over batch DMA queues, `fn` load, store or both.
  // Scan: batch sequences of m channels with n states, k steps each.
  std::int64_t heads = 0, kv_heads = 0, sq = 0, skv = 0, d = 0;
  bool causal = false;
  std::string fn;               // Vector
  std::int64_t elems = 0;       // Vector
  std::int64_t rd = 0, wr = 0;  // Vector: HBM bytes
  base::DType in = base::DType::Bf16, out = base::DType::Bf16;
  bool accumulate = false;
  bool a_weight = false, b_weight = true;  // operand is a weight (prefetchable)
  // Gemm: formats of A and B in HBM. An operand that is not in a format the array takes with `in`
  // is converted in SBUF after each load: by quantize_mx to MXFP8, else by a cast.
  std::optional<base::DType> a_format, b_format;
  Conversion conversion = Conversion::Charged;
  // Gemm: A lies as [m,k], B as [n,k] in HBM, so loads put the wrong axis on the partitions and
  // TensorE transposes each tile. Else they lie contraction-major ([k,m], [k,n]).
  bool a_transposed = false, b_transposed = false;
  // Gemm: of each `sparse_block` values of the weight along k, `sparse_kept` are stored and
  // multiplied; 0: dense.
  std::int64_t sparse_kept = 0, sparse_block = 0;
  bool flash = true, fast_exponential = true;
  // Vector: intermediates of the passes stay in SBUF; false: they go through HBM.
  bool memory_reuse = true;
  // Attention without flash: scale and mask of the scores are part of the softmax.
  bool fusion = true;
  // PSUM tiles, and SBUF buffers of loads: a second set is filled while the first is in use.
  bool double_accumulators = true, streaming_loads = true;
  std::vector<Epilogue> epilogues;
  std::int64_t cores = 1;

  auto operator<=>(const KernelSpec&) const = default;
  // Short name for people and reports: "gemm 4096x5504x4096 bf16 +silu_mul".
  [[nodiscard]] std::string label() const;
};

// Compiles a kernel: mapping (block sizes, loop order) chosen to fit SBUF and PSUM with double
// buffering, work split over `cores` along M, N or the batch (attention: along heads, else query
// tiles; scan: along channels; vector kernels: elements). Throws base::UserError (place = label) if
// the shape cannot be mapped or the format is not supported by the chip.
// With `mapping` (Gemm only) as it says: what does not fit is a base::UserError that names its file
// and key.
models::TileProgram compile_kernel(const KernelSpec& spec, const config::ChipSpec& chip,
                                   const config::MappingSpec* mapping = nullptr);

// The chosen mapping in words, for --explain and docs.
std::string describe_mapping(const KernelSpec& spec, const config::ChipSpec& chip,
                             const config::MappingSpec* mapping = nullptr);

// The mapping that compile_kernel() chooses for a Gemm.
config::MappingSpec chosen_mapping(const KernelSpec& spec, const config::ChipSpec& chip);

// Up to `count` mappings of a Gemm that the analytic search rates best, the chosen one first; they
// differ in more than buffers and chunks. Each compiles on the chip.
std::vector<config::MappingSpec> candidate_mappings(const KernelSpec& spec,
                                                    const config::ChipSpec& chip,
                                                    std::size_t count);

}  // namespace trn3sim::compile
