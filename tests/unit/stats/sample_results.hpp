// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A small result with every field set, round enough to derive metrics by hand.
#pragma once

#include "trn3sim/stats/results.hpp"

namespace trn3sim::test {

// Step 2 s on 4 chips, 10 ranks; 1000 FLOP/s geometry peak.
inline stats::Results sample_results() {
  stats::Results r;
  r.config_name = "four_chips";
  r.trace_name = "toy";
  r.trace_sha256 = "ab12";
  r.compile_level = "tuned";
  r.model_version = "m1";
  r.chips = 4;
  r.ranks = 10;
  r.cores_used = 20;
  r.tokens_per_step = 400;
  r.step_fs = 2'000'000'000'000'000;
  r.model_flop = 1000;
  r.model_flop_causal = 900;
  r.hardware_flop = 1100;
  r.peak_geometry_flops = 1000;
  r.peak_headline_flops = 1250;
  r.peak_dtype_flops = 4000;
  r.tensor_ideal_fs = 1'100'000'000'000'000;
  r.hbm_read_bytes = 600;
  r.hbm_write_bytes = 200;
  r.hbm_scale_bytes = 20;
  r.spill_save_bytes = 7;
  r.spill_reload_bytes = 9;
  r.hbm_peak_rate = 1600;
  r.dma_bytes = 900;
  r.peak_memory_bytes = 12'000'000'000;
  r.memory_capacity_bytes = 36'000'000'000;
  r.engine_busy_fs = {1'200'000'000'000'000, 500'000'000'000'000, 400'000'000'000'000, 1, 2};
  r.breakdown.mean_fs = {1'400'000'000'000'000, 100'000'000'000'000, 200'000'000'000'000,
                         200'000'000'000'000,   60'000'000'000'000,  40'000'000'000'000};
  r.phases = {{"forward", 500'000'000'000'000, 300.0},
              {"backward", 1'300'000'000'000'000, 700.0},
              {"optimizer", 200'000'000'000'000, 0.0}};
  r.kernels = {{"gemm 4096x5504x4096 bf16", 640, 9'000'000'000'000'000, 14'000'000'000'000,
                12'000'000'000'000, 1'000'000, "tensor"},
               {"vec adamw", 10, 1'000'000'000'000'000, 100'000'000'000'000, 0, 2'000'000, "dma"}};
  r.collectives = {{"all_gather tp 33.6 MB", 64, 3'000'000'000'000'000, 8'400'000, 33'600'000, 4,
                    150'000'000'000, "ring", "chip0.stack1->chip0.stack2"}};
  r.links = {{"chip0.stack1->chip0.stack2", 5000, 500'000'000'000'000, 7},
             {"chip0.stack0->chip0.stack1", 4000, 400'000'000'000'000, 0}};
  r.bounds = {1'100'000'000'000'000, 300'000'000'000'000, 500'000'000'000'000, 400'000'000'000'000,
              1'600'000'000'000'000};
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    // (i + 1) x 100 nJ and 0.9 nJ that the file drops: total 9100 nJ.
    r.energy.of[i] = base::Energy(Int128(i + 1) * 100'000'000'000 + 900'000'000);
  }
  r.bytes_sent = 9000;
  r.bytes_received = 9000;
  r.assumed = {{"chip.on_chip.stack_link", "1 TB/s", "no figure is published"}};
  r.checks = {{"bytes sent = bytes received", true, ""}};
  return r;
}

}  // namespace trn3sim::test
