// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Choice of the blocks of a GEMM on the cores of one HBM stack.
//
// One operand is stationary (128 columns of its free dimension at a time in the array), the other
// moving (up to 512 columns a pass). Panels hold the full contraction: a block of the *outer*
// operand stays in SBUF while panels of the *inner* operand stream by, both in chunks of the
// contraction, so that compute starts after the first chunk. A block of outputs is made in
// sub-blocks of at most half of PSUM; the other half is evicted meanwhile. With blocks of one
// sub-block nothing stays and both operands stream: that is how very long contractions fit.
// Operands lie in HBM with the contraction major ([k, m] and [k, n]; packed formats keep the 2 or
// 4 values of a partition together).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/compile/kernel.hpp"

#include "compile/kernel/gemm_operand.hpp"
#include "compile/kernel/vector_functions.hpp"

namespace trn3sim::compile {

enum class GemmSplit : std::uint8_t { None, M, N, Batch };

// What happens to a tile of results between PSUM and HBM.
struct Eviction {
  std::vector<Pass> scalar, vector;  // empty: copies that alternate between the two engines
  std::vector<std::int64_t> pass_width_num, pass_width_den;  // of scalar then vector passes
  // Stored tensors; width of a stored row relative to the results.
  struct Store {
    std::int64_t num = 1, den = 1;
  };
  std::vector<Store> stores{{}};
  struct Extra {
    base::DType dtype;
    std::int64_t num = 1, den = 1;
  };
  std::vector<Extra> extras;  // operands read at eviction, old C first
  [[nodiscard]] bool staged() const { return !vector.empty(); }
  // Bytes of all stored tensors for `results` elements of the result.
  [[nodiscard]] std::int64_t stored_bytes(base::DType out, std::int64_t results) const;
};

Eviction eviction_of(const KernelSpec& spec);

// The part of one core.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  auto operator<=>(const GemmShape&) const = default;
};

// Operands that are prepared and streamed: buffers of each, and how many chunks the preparation is
// ahead of the multiplies (a chunk is freed after the next one's preparation has begun).
constexpr std::int64_t kStreamRing = 4;  // chunks
constexpr std::int64_t kStreamAhead = 2;

struct GemmMapping {
  GemmSplit split = GemmSplit::None;
  std::vector<GemmShape> shapes;                  // per core
  bool stationary_a = true;                       // else B is stationary and C is stored transposed
  bool outer_stationary = true;                   // the stationary operand is the outer one
  bool outer_resident = true;                     // else it is loaded again for each inner panel
  std::int64_t outer_block = 0, inner_block = 0;  // of the free dimensions, elements
  std::int64_t sub_stationary = 1, sub_moving = 1;  // PSUM tiles of a sub-block
  std::int64_t chunk_tiles = 1;                     // contraction tiles of a chunk
  std::int64_t outer_ring = 2, inner_ring = 2;      // SBUF buffers, chunks
  std::int64_t raw_ring = 0;                        // SBUF buffers of operands as loaded, chunks
  std::int64_t transpose_banks = 0;                 // PSUM banks of transposed tiles
  bool merge_stores = false;                        // one store for all rows of a sub-block
  std::int64_t output_ring = 4, extra_ring = 0;     // SBUF buffers, rows of PSUM tiles
  std::int64_t sbuf_bytes_per_partition = 0;
  // Predictions of the busiest core.
  double tensor_ns = 0, dma_ns = 0, evict_ns = 0, total_ns = 0;
  std::int64_t traffic_bytes = 0;  // all cores
};

// K values per partition: 2 for fp8, 4 for MX formats, else 1; of compressed weights, those of the
// dense operand.
std::int64_t contraction_pack(const KernelSpec& spec, const config::ChipSpec& chip);
std::int64_t round_up(std::int64_t value, std::int64_t unit);
std::int64_t ceil_divide(std::int64_t a, std::int64_t b);
// Rows of an operand that one descriptor moves: panels of the operand's full width are contiguous,
// so a partition takes `chunk_tiles` consecutive values of k (the order of k is free if both
// operands use the same). 1 if the panel is narrower or chunks are uneven.
std::int64_t rows_together(std::int64_t width, std::int64_t full_width, std::int64_t chunk_tiles,
                           std::int64_t k, std::int64_t pack);
// ceil(width * num / den)
std::int64_t scaled(std::int64_t width, std::int64_t num, std::int64_t den);
// Time of one core's DMA engines to move `bytes` in descriptors of `row_bytes`.
double dma_nanoseconds(std::int64_t bytes, std::int64_t row_bytes, const config::ChipSpec& chip);

// Least predicted time; ties: least traffic, then least SBUF, then the first in a fixed order.
// Throws base::UserError if no mapping fits.
GemmMapping map_gemm(const KernelSpec& spec, const config::ChipSpec& chip);
// Up to `count` mappings that differ in more than buffers and chunks, map_gemm()'s first, then by
// predicted time. Throws as map_gemm().
std::vector<GemmMapping> gemm_candidates(const KernelSpec& spec, const config::ChipSpec& chip,
                                         std::size_t count);

}  // namespace trn3sim::compile
