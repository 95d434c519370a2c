// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of one run: simulated facts only, in integers with the unit in the name. describe() (in
// results_describe.hpp) is the only writer and reader of results.json.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/base/energy_account.hpp"
#include "trn3sim/base/quantity.hpp"

namespace trn3sim::stats {

using base::Bytes;
using base::Rate;
using base::Time;

// Classes of a rank's time; every femtosecond has exactly one, first match in this order.
enum class TimeClass : std::uint8_t {
  Compute, Throttled, ExposedMemory, ExposedCommunication, Bubble, HostInput
};
inline constexpr std::size_t kTimeClasses = 6;
inline constexpr std::array<std::string_view, kTimeClasses> kTimeClassNames = {
    "compute", "throttled", "exposed_memory", "exposed_communication", "bubble", "host_input"};

// Summed over ranks, femtoseconds x ranks (exact).
struct Breakdown {
  std::array<std::int64_t, kTimeClasses> mean_fs{};  // mean over ranks; parts sum to step_fs
};

struct PhaseResult {
  std::string phase;
  std::int64_t busy_fs = 0;        // mean over ranks of the time the phase is the last started
  double model_flop = 0;           // of all ranks
};

struct KernelResult {
  std::string label;
  std::int64_t count = 0;          // executions over all ranks
  std::int64_t total_fs = 0;       // summed over ranks, each rank's time in this kernel
  std::int64_t alone_fs = 0;       // one execution with nothing else on the stack
  std::int64_t tensor_ideal_fs = 0;  // of one execution
  std::int64_t hbm_bytes = 0;      // of one execution, one stack
  std::string bound;               // "tensor" | "vector" | "scalar" | "gpsimd" | "dma" | "latency"
};

struct CollectiveResult {
  std::string label;               // "all_gather tp 33.6 MB"
  std::int64_t count = 0;          // instances over all groups
  std::int64_t total_fs = 0;       // summed over member ranks: first start to own completion
  std::int64_t in_bytes = 0, out_bytes = 0;  // per rank, one instance
  std::int64_t ranks = 0;
  std::int64_t bus_rate = 0;       // bytes/s, mean over instances
  std::string algorithm;
  std::string worst_link;
};

struct LinkResult {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t busy_fs = 0;
  std::int64_t queue_fs = 0;       // summed waiting time of messages
};

struct LowerBounds {
  std::int64_t compute_fs = 0, dma_fs = 0, hbm_fs = 0, link_fs = 0, critical_path_fs = 0;
};

struct AssumedUse {
  std::string path, value, reason;
};

struct CheckResult {
  std::string name;                // "bytes sent = bytes received"
  bool passed = false;
  std::string detail;
};

struct Results {
  std::string config_name, trace_name, trace_sha256, compile_level, model_version;
  std::int64_t chips = 0, ranks = 0, cores_used = 0;
  std::int64_t tokens_per_step = 0;
  std::int64_t step_fs = 0;
  // FLOP of all ranks.
  double model_flop = 0, model_flop_causal = 0, hardware_flop = 0;
  // Peak of the used cores, FLOP/s: geometry at bf16, headline at bf16, at the run's matmul formats
  // (executed FLOP over the sum of FLOP / peak of its format).
  double peak_geometry_flops = 0, peak_headline_flops = 0, peak_dtype_flops = 0;
  std::int64_t tensor_ideal_fs = 0;          // mean over ranks: executed MACs at peak
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0;
  std::int64_t hbm_scale_bytes = 0;          // MX block scales, in the two above
  std::int64_t spill_save_bytes = 0, spill_reload_bytes = 0;  // intermediates, likewise
  std::int64_t hbm_peak_rate = 0;            // all stacks, bytes/s
  std::int64_t dma_bytes = 0;
  std::int64_t peak_memory_bytes = 0, memory_capacity_bytes = 0;  // of the fullest rank
  std::array<std::int64_t, 5> engine_busy_fs{};  // mean over used cores, order of models::Engine
  Breakdown breakdown;
  std::vector<PhaseResult> phases;
  std::vector<KernelResult> kernels;         // by total time, descending; ties by label
  std::vector<CollectiveResult> collectives; // likewise
  std::vector<LinkResult> links;             // by bytes, descending; only links that carried bytes
  LowerBounds bounds;
  base::EnergyAccounts energy;               // whole machine, attojoules
  std::int64_t bytes_sent = 0, bytes_received = 0;
  std::vector<AssumedUse> assumed;
  std::vector<CheckResult> checks;
};

// How the run itself went: never in results.json.
struct RunInfo {
  double wall_s = 0, profile_wall_s = 0, simulate_wall_s = 0;
  std::int64_t peak_rss_bytes = 0;
  std::int64_t rank_ops = 0, kernel_events = 0, profiled_kernels = 0, bench_instructions = 0;
  std::int64_t profile_cache_hits = 0, profile_cache_misses = 0, profile_cache_errors = 0;
  std::string host, version;
};

// results.json as text: sorted keys, integers with units in the keys, energy in nanojoules where a
// parent is the sum of its written children. Byte-identical for identical results.
std::string to_json(const Results& results);
// Reads what to_json wrote. Throws base::UserError naming file and key.
Results results_from_json(const std::string& text, const std::string& file);
std::string to_json(const RunInfo& info);

}  // namespace trn3sim::stats
