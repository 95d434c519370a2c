// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A Trainium3-like chip as plain values, so that tests of models and modules need no files.
#pragma once

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::test {

inline base::Time picoseconds(std::int64_t n) {
  return base::Time(n * 1000);
}
inline base::Rate gigabytes_per_second(double n) {
  return base::Rate(static_cast<std::int64_t>(n * 1e9));
}

inline void set_test_engines(config::ChipSpec& c) {
  c.tensor.rows = c.tensor.columns = 128;
  c.tensor.clock = base::Frequency(2'400'000'000);
  c.tensor.macs_per_pe_cycle = {0.25, 1, 1, 1, 2, 4, 4};  // fp32 tf32 bf16 fp16 fp8 mxfp8 mxfp4
  c.tensor.moving_max = 512;
  c.tensor.min_interval_cycles = 64;
  c.tensor.matmul_overhead_cycles = 9;
  c.tensor.load_speedup = 4;
  c.tensor.fill_cycles = 320;
  c.tensor.sparse_weights = true;
  c.tensor.background_transpose = true;

  c.vector.clock = c.scalar.clock = c.gpsimd.clock = base::Frequency(1'200'000'000);
  c.vector.lanes = c.scalar.lanes = c.gpsimd.lanes = 128;
  c.vector.min_interval_cycles = c.scalar.min_interval_cycles = 64;
  c.gpsimd.min_interval_cycles = 64;
  c.vector.access_cycles = c.scalar.access_cycles = 100;
  c.gpsimd.access_cycles = 150;
  c.vector.max_speedup_16bit = 4;
  c.scalar.max_speedup_16bit = 2;
  c.gpsimd.max_speedup_16bit = 1;
  c.vector.fast_8bit = c.scalar.fast_8bit = true;
  c.vector.exponential_speedup = c.vector.quantize_speedup = 4;

  c.sbuf = {base::Bytes(32 << 20), 128, base::Bytes(245'752), 0.5, "fast_modes"};
  c.psum = {base::Bytes(2 << 20), 8, base::Bytes(2048), "none"};
  c.sync = {256, base::nanoseconds(250), 64};
}

inline void set_test_dma(config::DmaSpec& d) {
  d.engines = 16;
  d.queues_per_engine = 16;
  d.priority_classes = 4;
  d.bus_rate = gigabytes_per_second(38.4);
  d.plateau_rate = gigabytes_per_second(33);
  d.packet = base::Bytes(4096);
  d.collective_packet = base::Bytes(65536);
  d.issue_interval = base::nanoseconds(860);
  d.completion = base::nanoseconds(50);
  d.start_latency = base::nanoseconds(1300);
  d.outstanding = 8;
  d.inline_compute_rate = 0.5;
  d.sbuf_accumulate_rate = 1.0;
}

inline void set_test_hbm(config::HbmSpec& h) {
  h.capacity = base::Bytes(std::int64_t{36} << 30);
  h.bandwidth = gigabytes_per_second(4915.2);
  h.channels = 16;
  h.pseudo_channels = 2;
  h.sids = 3;
  h.bank_groups = h.banks_per_group = 4;
  h.row = base::Bytes(1024);
  h.burst = base::Bytes(32);
  h.interleave = base::Bytes(256);
  h.t_rcd_read = picoseconds(19'375);
  h.t_rcd_write = picoseconds(9'375);
  h.t_rp = picoseconds(16'250);
  h.t_ras = picoseconds(28'125);
  h.t_rrd_s = picoseconds(2'500);
  h.t_rrd_l = picoseconds(3'125);
  h.t_faw = picoseconds(15'000);
  h.t_ccd_l = picoseconds(2'500);
  h.t_wtr = picoseconds(6'250);
  h.t_rtw = picoseconds(12'500);
  h.t_wr = picoseconds(20'625);
  h.t_rtp = picoseconds(5'625);
  h.cl = picoseconds(12'500);
  h.cwl = picoseconds(6'250);
  h.t_refi = base::nanoseconds(3900);
  h.t_rfc_all_bank = base::nanoseconds(550);
  h.t_rfc_per_bank = base::nanoseconds(200);
  h.refresh = "per_bank";
  h.controller_latency = base::nanoseconds(40);
  h.derate = 0.93;
  h.reserved = base::Bytes(std::int64_t{96} << 20);
  h.queue_depth = 128;
}

// The limiter of TensorE's current, which the test chip is without.
inline void set_test_limiter(config::TensorSpec& t) {
  t.throttle = {0.5, base::nanoseconds(3000), base::nanoseconds(3000), 0.5};
}

// Cores, DMA and HBM of a Trainium3; fabric, host and energy stay zero.
inline config::ChipSpec test_chip() {
  config::ChipSpec c;
  c.name = "test chip";
  c.cores = 8;
  c.dies = 2;
  c.stacks = 4;
  c.logical_core_size = 2;
  set_test_engines(c);
  set_test_dma(c.dma);
  set_test_hbm(c.hbm);
  return c;
}

}  // namespace trn3sim::test
