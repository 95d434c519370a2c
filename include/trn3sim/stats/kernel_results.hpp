// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What one kernel alone on the cores of a stack took: facts of its bench run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/energy_account.hpp"
#include "trn3sim/base/quantity.hpp"

namespace trn3sim::stats {

inline constexpr std::size_t kKernelEngines = 5;
inline constexpr std::array<std::string_view, kKernelEngines> kKernelEngineNames = {
    "tensor", "vector", "scalar", "gpsimd", "sync"};

// An engine that could have worked lacked a token.
struct KernelStall {
  std::string engine;       // that waits
  std::string waits_for;    // what signals: "load of a (queue 0)", "vector tensor_copy"
  std::int64_t time_fs = 0;  // mean over the cores
};

// No run can be faster.
struct KernelBounds {
  std::int64_t tensor_fs = 0;  // MACs at the peak of their format
  std::int64_t vector_fs = 0;  // busiest of VectorE, ScalarE and GpSimdE
  std::int64_t dma_fs = 0;     // bytes at the plateau of the DMA engines
  std::int64_t hbm_fs = 0;     // bytes at the raw peak of the stack
};

struct KernelResults {
  std::string kernel, chip, dtype;  // dtype: of the array; empty if it multiplies nothing
  std::int64_t cores = 1;
  std::int64_t time_fs = 0;
  std::array<std::int64_t, kKernelEngines> active_fs{};  // mean over the cores
  std::int64_t dma_active_fs = 0;                        // some DMA engine has a packet under way
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0;
  std::int64_t spill_save_bytes = 0, spill_reload_bytes = 0;
  double flop = 0;              // of the model, not of transposes
  double peak_flops = 0;        // of `dtype`, all cores of the kernel, per second
  std::int64_t matmuls = 0, transposes = 0, transfers = 0, instructions = 0;
  std::int64_t sbuf_bytes_per_partition = 0, sbuf_usable_per_partition = 0;
  std::int64_t psum_banks = 0, psum_banks_there = 0;
  std::vector<KernelStall> stalls;  // by engine, longest first
  base::EnergyAccounts energy;      // of the kernel's share of the chip
  KernelBounds bounds;
  // Mappings that were run to find the fastest, in order: structure and time in detail.
  struct Tried {
    std::string mapping;
    std::int64_t time_fs = 0;
    bool chosen = false;
  };
  std::vector<Tried> tried;
  std::string mapping;       // in words
  std::string mapping_json;  // as a file of --mapping; empty if the kind has none
};

}  // namespace trn3sim::stats
