// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of one chip as plain values in base units. Every number comes from a chip file, where
// it carries its source and confidence; the describe() functions in chip_describe.hpp name the
// JSON keys, ranges and meanings.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/quantity.hpp"

namespace trn3sim::config {

using base::Bytes;
using base::Energy;
using base::Frequency;
using base::Power;
using base::Rate;
using base::Time;

// The limiter of TensorE's current (dI/dt). Off with start_share 1 or without a ramp.
struct ThrottleSpec {
  double start_share = 1;  // of the full rate when work begins
  Time ramp;               // until the full rate
  Time window;             // in which utilisation is judged
  double rearm_share = 0;  // utilisation of a window below which the limit is back
};

// Systolic array of a NeuronCore (TensorE).
struct TensorSpec {
  std::int64_t rows = 0;     // contraction positions (partitions)
  std::int64_t columns = 0;  // output partitions
  Frequency clock;
  // MACs per PE and cycle by base::DType; 0 = not supported. fp32 0.25 means four passes.
  std::array<double, base::kDTypes> macs_per_pe_cycle{};
  std::int64_t moving_max = 0;          // columns of one MultiplyMoving
  std::int64_t min_interval_cycles = 0; // shortest MultiplyMoving-to-MultiplyMoving interval
  std::int64_t matmul_overhead_cycles = 0; // array cycles lost between two MultiplyMoving
  std::int64_t load_speedup = 0;        // LoadStationary is this much faster than a matmul
  std::int64_t fill_cycles = 0;         // from first moving column to first result
  bool sparse_weights = false;          // stationary weights of 16-bit formats may be compressed
  bool background_transpose = false;    // v4: PE transposes hide behind matmuls
  ThrottleSpec throttle;
};

// Vector, Scalar and GpSimd engines.
struct LaneEngineSpec {
  Frequency clock;
  std::int64_t lanes = 0;
  std::int64_t min_interval_cycles = 0;
  std::int64_t access_cycles = 0;       // static overhead of an instruction that is not pipelined
  std::int64_t max_speedup_16bit = 1;   // fastest performance mode for 2-byte data in SBUF
  bool fast_8bit = false;               // 8-bit data run in these modes too
  std::int64_t exponential_speedup = 0; // v4 VectorE `exponential` elements per lane and cycle (2-byte); 0 = none
  std::int64_t quantize_speedup = 0;    // v4 VectorE `quantize_mx` elements per lane and cycle; 0 = none
};

struct SbufSpec {
  Bytes capacity;                  // whole SBUF of one core
  std::int64_t partitions = 0;
  Bytes usable_per_partition;      // what a kernel may use
  double strided_rate = 1;         // of an engine whose innermost stride is 16 B or more
  std::string shared_port = "none";  // of VectorE and GpSimdE: "exclusive" | "fast_modes" | "none"
};

struct PsumSpec {
  Bytes capacity;
  std::int64_t banks = 0;
  Bytes bank_bytes_per_partition;
  std::string shared_port = "none";  // of VectorE and ScalarE: "exclusive" | "none"
};

struct SyncSpec {
  std::int64_t semaphores = 0;      // per core
  Time dma_to_engine;               // DMA completion until a waiting engine starts
  std::int64_t engine_cycles = 0;   // engine-to-engine semaphore, cycles of the waiting engine
};

// DMA engines of one core. An engine moves descriptors (one row of a transfer each, split at
// `max_packet`) at `bus_rate`, plus `descriptor_overhead` for each packet.
struct DmaSpec {
  std::int64_t engines = 0;           // per core
  std::int64_t queues_per_engine = 0; // rings
  std::int64_t priority_classes = 1;  // served strictly in order; 1: round robin only
  Rate bus_rate;                      // raw rate of one engine
  Rate plateau_rate;                  // documented achievable rate of one engine (4 KiB packets)
  Bytes packet;                       // arbitration granule
  Bytes collective_packet;
  Time issue_interval;                // between two transfers of the same queue
  Time completion;                    // last byte until the semaphore write is done
  Time start_latency;                 // semaphore until the first byte moves
  std::int64_t outstanding = 0;       // descriptors in flight per engine
  double inline_compute_rate = 0;     // share of the copy rate while reducing or casting
  double sbuf_accumulate_rate = 0;    // read-add-write to SBUF (1.0 on v4)
};

// One HBM stack. Nanosecond timings stay when the pin rate changes.
// Timings that only a controller of single bursts tells apart.
struct HbmBurstSpec {
  Time t_rc;      // activate to activate of a bank
  Time t_ccd_r;   // column to column, other SID
  Time t_wtr_s;   // write data to read, other bank group
  Time t_rref_d;  // per-bank refresh to the next command of its kind
  std::int64_t postponed_refreshes = 0;  // most that a bank may owe
  // Write queue levels in percent of queue_depth at which writes begin and end to be served.
  std::int64_t write_high_percent = 0, write_low_percent = 0;
};

// Inline ECC: `check` more bursts with every `data` bursts.
struct HbmEccSpec {
  std::int64_t data = 0;
  std::int64_t check = 0;
};

struct HbmSpec {
  Bytes capacity;                 // of one stack
  Rate bandwidth;                 // raw peak of ALL stacks of the chip; sets the pin rate
  std::int64_t channels = 0;
  std::int64_t pseudo_channels = 0; // per channel
  std::int64_t sids = 0;
  std::int64_t bank_groups = 0;
  std::int64_t banks_per_group = 0;
  Bytes row;                      // per pseudo-channel
  Bytes burst;                    // bytes of one column command
  Bytes interleave;               // consecutive bytes in one pseudo-channel
  Time t_rcd_read, t_rcd_write, t_rp, t_ras, t_rrd_s, t_rrd_l, t_faw;
  Time t_ccd_l, t_wtr, t_rtw, t_wr, t_rtp, cl, cwl;
  Time t_refi;                    // all-bank interval; per-bank interval = this / banks
  Time t_rfc_all_bank, t_rfc_per_bank;
  std::string refresh;            // "per_bank" | "all_bank" | "none"
  Time controller_latency;        // controller and PHY, round trip
  double derate = 1.0;            // ECC, retraining and the like: share of time the bus is usable
  Bytes reserved;                 // HBM taken by micro-code, per core
  std::int64_t queue_depth = 0;   // bursts per channel that the controller can reorder
  std::string mode = "runs";         // "runs" | "exact"
  std::string page_policy = "open";  // "open" | "closed"; closed: exact mode only
  std::string mapping;               // address bits from the lowest up; empty: from `interleave`
  bool channel_hash = true;          // pseudo-channel XORed with a fold of the bits above
  HbmBurstSpec exact;                // t_rc 0: not given
  HbmEccSpec ecc;                    // data 0: none
};

// Paths inside the package: a ring of HBM stacks (clusters of cores) and a hub with the ports.
struct OnChipSpec {
  Rate stack_link;          // per direction, neighbouring stacks on one die
  Time stack_latency;
  double die_crossing_bandwidth = 1.0;  // share of stack_link left when a link crosses the dies
  Time die_crossing_latency;            // added when a link crosses the dies
  Rate port_link;           // per direction, stack to the chip's link ports
  Time port_latency;
};

struct CollectiveSpec {
  std::int64_t cores_used = 0;    // CC-cores per chip that run collectives
  std::int64_t streams = 0;       // concurrent streams per rank
  Time step_overhead;             // trigger and descriptor ring work of one algorithm step
  Time start_overhead;            // from trigger to first step
  Bytes mesh_limit;               // largest collective that all members exchange directly
  std::int64_t mesh_ranks = 0;    // most members of such a group
};

struct HostSpec {
  Rate pcie;           // per direction and chip
  Time pcie_latency;
  Rate storage;        // per instance
};

// Energy coefficients. Core-rail terms are at the nominal voltage.
struct EnergySpec {
  std::array<Energy, base::kDTypes> mac{};   // per MAC
  Energy sbuf_read, sbuf_write;              // per byte
  Energy psum_access;                        // per byte read or written
  Energy vector_op, transcendental_op, quantize_op, gpsimd_op;  // per element operation
  Energy hbm_activate;                       // one row activation and precharge
  Energy hbm_read_bit, hbm_write_bit, hbm_io_bit;
  Energy hbm_refresh_bank;                   // one per-bank refresh
  Energy hbm_phy_bit;
  Energy dma_bit;                            // HBM<->SBUF path on the die
  Energy die_crossing_bit;
  Energy link_bit;                           // NeuronLink, per direction
  Power hbm_background;                      // per stack
  Power hbm_phy_static;                      // per stack, on the compute die
  Power link_static;                         // per chip
  Power clock_core;                          // per core, engine clocks on
  double clock_gated_share = 0;              // share of clock_core that stays when idle
  Power clock_uncore;                        // per chip
  Power leakage;                             // compute dies at `leakage_temperature_c`
  double leakage_temperature_c = 85;
  double leakage_per_kelvin = 0;             // exponent
  double operating_temperature_c = 75;       // assumed die temperature without a thermal model
  Power host;                                // PCIe, PLL, management, CC-cores
  double regulator_efficiency = 1;
  Power tdp;
};

struct ChipSpec {
  std::string name;
  std::int64_t cores = 0;            // physical NeuronCores
  std::int64_t dies = 0;
  std::int64_t stacks = 0;           // HBM stacks
  std::int64_t logical_core_size = 0; // default LNC
  double headline_bf16_tflops = 0;   // quoted beside the geometry peak
  TensorSpec tensor;
  LaneEngineSpec vector, scalar, gpsimd;
  SbufSpec sbuf;
  PsumSpec psum;
  SyncSpec sync;
  DmaSpec dma;
  HbmSpec hbm;
  OnChipSpec on_chip;
  CollectiveSpec collectives;
  HostSpec host;
  EnergySpec energy;

  [[nodiscard]] std::int64_t cores_per_stack() const { return stacks > 0 ? cores / stacks : 0; }
  // 2 x PEs x clock x MACs per PE and cycle, FLOP/s of one core; 0 if unsupported.
  [[nodiscard]] double peak_flops_per_core(base::DType t) const {
    return 2.0 * static_cast<double>(tensor.rows * tensor.columns) *
           static_cast<double>(tensor.clock.count()) *
           tensor.macs_per_pe_cycle[static_cast<std::size_t>(t)];
  }
};

}  // namespace trn3sim::config
