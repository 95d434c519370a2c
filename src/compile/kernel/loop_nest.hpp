// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The iterations of an explicit loop nest, one after another: a matmul each. What is loaded,
// accumulated or stored together is a *region*: the iterations below one body of some loop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trn3sim/config/mapping_spec.hpp"

#include "compile/kernel/gemm_mapping.hpp"

namespace trn3sim::compile {

enum Dimension : std::size_t { kM, kN, kK };

// A box of the iteration space.
struct Box {
  std::array<std::int64_t, 3> low{}, size{};
};

// What the regions of a nest are for.
enum RegionKind : std::size_t { kLoadA, kLoadB, kAccumulate, kStore };
inline constexpr std::size_t kRegionKinds = 4;

struct LoopNest {
  std::vector<Box> matmuls;
  std::array<std::vector<std::int32_t>, kRegionKinds> region_of;  // of each matmul
  std::array<std::vector<Box>, kRegionKinds> regions;
};

// The nest of one core's share, all batches.
LoopNest make_nest(const config::LoopMapping& mapping, const GemmShape& shape);

// Size of the boxes at the body inside `inside` loops, and of the matmuls, at the largest.
std::array<std::int64_t, 3> extent_inside(const config::LoopMapping& mapping,
                                          const GemmShape& shape, std::int64_t inside);

// Loads of one operand along a nest.
struct LoadPlan {
  struct Transfer {
    std::int64_t k = 0, width = 0;
  };
  std::vector<std::vector<Transfer>> regions;  // in the order of first use
  std::vector<bool> first;                     // per matmul: of its region
  // Per matmul: transfers that it is the first and the last of its region to use; of those whose
  // last new tile it uses.
  std::vector<std::uint16_t> fresh, freed, taken;
  std::vector<bool> new_tile, dead_tile;    // per matmul: first and last use of its tile
  [[nodiscard]] std::int64_t most() const;  // transfers of a region
};
LoadPlan plan_loads(const LoopNest& nest, RegionKind kind, const config::OperandMapping& operand);

// A tile of results in PSUM, from its first matmul to its last of one accumulation.
struct Accumulation {
  std::size_t first = 0, last = 0;  // matmuls
  Box box;
  std::int32_t store = 0;  // region
  bool adds = false;       // to a partial sum in SBUF
  bool final = false;      // the sum is complete
};
std::vector<Accumulation> plan_accumulations(const LoopNest& nest, std::int64_t k);

}  // namespace trn3sim::compile
