// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys, ranges and meanings of a chip file. One describe() per spec drives the reader and the
// dump of the resolved configuration, so they cannot drift. A visitor V offers
//   section(key, spec, doc)             an object, described by describe(V&, spec)
//   optional_section(key, spec, present, doc)  the same, may be missing
//   count(key, int64, low, high, doc)   a whole number
//   number(key, double, low, high, doc) a ratio or temperature
//   share(key, double, doc)             a ratio in (0, 1]
//   positive(key, quantity, doc), non_negative(key, quantity, doc)
//   counts(key, vector<int64>, low, high, most, doc)  a list of 1 to `most` whole numbers
//   list(key, vector<spec>, most, doc)  a list of objects, at least one
//   optional_list(key, vector<spec>, most, doc)  the same, may be missing or empty
//   flag(key, bool, doc), text(key, string, doc), choice(key, string, names, doc)
// and for run options, which have defaults: option_flag, option_text,
// option_choice, option_number.
#pragma once

#include <array>
#include <string_view>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::config {

inline constexpr std::array<std::string_view, 3> kRefreshModes = {"per_bank", "all_bank", "none"};
inline constexpr std::array<std::string_view, 3> kSbufPorts = {"exclusive", "fast_modes", "none"};
inline constexpr std::array<std::string_view, 2> kPsumPorts = {"exclusive", "none"};
inline constexpr std::array<std::string_view, 2> kHbmModes = {"runs", "exact"};
inline constexpr std::array<std::string_view, 2> kPagePolicies = {"open", "closed"};

// One value per number format, keyed by its name.
template <class T>
struct DTypeTable {
  std::array<T, base::kDTypes>& values;
};

template <class V>
void describe(V& v, DTypeTable<double>& s) {
  for (std::size_t i = 0; i < base::kDTypes; ++i)
    v.number(base::name(static_cast<base::DType>(i)), s.values[i], 0.0, 64.0, "0 = not supported");
}

template <class V>
void describe(V& v, DTypeTable<Energy>& s) {
  for (std::size_t i = 0; i < base::kDTypes; ++i)
    v.non_negative(base::name(static_cast<base::DType>(i)), s.values[i], "energy of one MAC");
}

template <class V>
void describe(V& v, ThrottleSpec& s) {
  v.share("start_share", s.start_share, "of the full rate when work begins; 1: no limit");
  v.positive("ramp", s.ramp, "from the start of work until the full rate");
  v.positive("window", s.window, "in which utilisation is judged");
  v.share("rearm_share", s.rearm_share, "utilisation of a window below which the limit is back");
}

template <class V>
void describe(V& v, TensorSpec& s) {
  // Kernels are made of tiles of 128 x 128.
  v.count("rows", s.rows, 128, 4096, "contraction positions of the array");
  v.count("columns", s.columns, 128, 4096, "output columns of the array");
  v.positive("clock", s.clock, "clock of the array");
  DTypeTable<double> macs{s.macs_per_pe_cycle};
  v.section("macs_per_pe_cycle", macs, "MACs per PE and cycle by format");
  v.count("moving_max", s.moving_max, 1, 65536, "columns of one MultiplyMoving");
  v.count("min_interval_cycles", s.min_interval_cycles, 0, 4096,
          "shortest interval between two MultiplyMoving");
  v.count("matmul_overhead_cycles", s.matmul_overhead_cycles, 0, 4096,
          "array cycles lost between two MultiplyMoving");
  v.count("load_speedup", s.load_speedup, 1, 64,
          "LoadStationary against a matmul of the same size");
  v.count("fill_cycles", s.fill_cycles, 0, 65536,
          "from the first moving column to the first result");
  v.flag("sparse_weights", s.sparse_weights, "stationary weights may be compressed");
  v.flag("background_transpose", s.background_transpose, "PE transposes hide behind matmuls");
  v.optional_section("throttle", s.throttle, s.throttle.ramp.count() > 0,
                     "limiter of the array's current after idling; missing: none");
}

template <class V>
void describe(V& v, LaneEngineSpec& s) {
  v.positive("clock", s.clock, "clock of the engine");
  v.count("lanes", s.lanes, 1, 4096, "elements per cycle at base rate");
  v.count("min_interval_cycles", s.min_interval_cycles, 0, 4096, "shortest instruction");
  v.count("access_cycles", s.access_cycles, 0, 65536,
          "overhead of an instruction that is not pipelined");
  v.count("max_speedup_16bit", s.max_speedup_16bit, 1, 16, "fastest mode for 2-byte data in SBUF");
  v.flag("fast_8bit", s.fast_8bit, "8-bit data run in the modes of 2-byte data");
  v.count("exponential_speedup", s.exponential_speedup, 0, 16,
          "`exponential` elements per lane and cycle; 0 = none");
  v.count("quantize_speedup", s.quantize_speedup, 0, 16,
          "`quantize_mx` elements per lane and cycle; 0 = none");
}

template <class V>
void describe(V& v, SbufSpec& s) {
  v.positive("capacity", s.capacity, "SBUF of one core");
  v.count("partitions", s.partitions, 1, 4096, "partitions");
  v.positive("usable_per_partition", s.usable_per_partition, "what a kernel may use");
  v.share("strided_rate", s.strided_rate,
          "rate of an engine if its innermost stride is 16 B or more");
  v.choice("shared_port", s.shared_port, kSbufPorts,
           "instructions that VectorE and GpSimdE run one at a time: all on SBUF, or those of "
           "GpSimdE and VectorE's in a fast mode");
}

template <class V>
void describe(V& v, PsumSpec& s) {
  v.positive("capacity", s.capacity, "PSUM of one core");
  v.count("banks", s.banks, 1, 1024, "banks");
  v.positive("bank_bytes_per_partition", s.bank_bytes_per_partition,
             "bytes of one bank in a partition");
  v.choice("shared_port", s.shared_port, kPsumPorts,
           "instructions on PSUM that VectorE and ScalarE run one at a time: all, or none");
}

template <class V>
void describe(V& v, SyncSpec& s) {
  v.count("semaphores", s.semaphores, 1, 65536, "semaphores per core");
  v.non_negative("dma_to_engine", s.dma_to_engine, "DMA completion until a waiting engine starts");
  v.count("engine_cycles", s.engine_cycles, 0, 65536,
          "engine-to-engine semaphore in cycles of the waiting engine");
}

template <class V>
void describe(V& v, DmaSpec& s) {
  v.count("engines", s.engines, 1, 1024, "DMA engines per core");
  // Kernels use five; an engine tracks its busy ones in 64 bits.
  v.count("queues_per_engine", s.queues_per_engine, 5, 64, "rings per engine");
  v.count("priority_classes", s.priority_classes, 1, 4,
          "classes of strict priority; 1: all rings are served round robin");
  v.positive("bus_rate", s.bus_rate, "raw rate of one engine");
  v.positive("plateau_rate", s.plateau_rate, "achievable rate of one engine with 4 KiB packets");
  v.positive("packet", s.packet, "arbitration granule of compute traffic");
  v.positive("collective_packet", s.collective_packet, "arbitration granule of collectives");
  v.non_negative("issue_interval", s.issue_interval, "between two transfers of one queue");
  v.non_negative("completion", s.completion, "last byte until the semaphore write is done");
  v.non_negative("start_latency", s.start_latency, "semaphore until the first byte moves");
  v.count("outstanding", s.outstanding, 1, 65536, "descriptors in flight per engine");
  v.share("inline_compute_rate", s.inline_compute_rate,
          "share of the copy rate while reducing or casting");
  v.share("sbuf_accumulate_rate", s.sbuf_accumulate_rate,
          "share of the copy rate of read-add-write to SBUF");
}

template <class V>
void describe_hbm_timings(V& v, HbmSpec& s) {
  v.positive("t_rcd_read", s.t_rcd_read, "activate to read");
  v.positive("t_rcd_write", s.t_rcd_write, "activate to write");
  v.positive("t_rp", s.t_rp, "precharge to activate");
  v.positive("t_ras", s.t_ras, "activate to precharge");
  v.positive("t_rrd_s", s.t_rrd_s, "activate to activate, other bank group");
  v.positive("t_rrd_l", s.t_rrd_l, "activate to activate, same bank group");
  v.positive("t_faw", s.t_faw, "window of four activates");
  v.positive("t_ccd_l", s.t_ccd_l, "column to column, same bank group");
  v.positive("t_wtr", s.t_wtr, "write data to read");
  v.positive("t_rtw", s.t_rtw, "read to write");
  v.positive("t_wr", s.t_wr, "write data to precharge");
  v.positive("t_rtp", s.t_rtp, "read to precharge");
  v.positive("cl", s.cl, "read to data");
  v.positive("cwl", s.cwl, "write to data");
  v.positive("t_refi", s.t_refi, "all-bank refresh interval; per-bank interval = this / banks");
  v.positive("t_rfc_all_bank", s.t_rfc_all_bank, "all-bank refresh");
  v.positive("t_rfc_per_bank", s.t_rfc_per_bank, "per-bank refresh");
}

template <class V>
void describe(V& v, HbmBurstSpec& s) {
  v.positive("t_rc", s.t_rc, "activate to activate, same bank");
  v.positive("t_ccd_r", s.t_ccd_r, "column to column, other SID");
  v.positive("t_wtr_s", s.t_wtr_s, "write data to read, other bank group");
  v.positive("t_rref_d", s.t_rref_d, "per-bank refresh to refresh or activate, other bank");
  v.count("postponed_refreshes", s.postponed_refreshes, 0, 64, "most refreshes that a bank may owe");
  v.count("write_high_percent", s.write_high_percent, 1, 100,
          "of queue_depth: fill of the write queue at which writes go first");
  v.count("write_low_percent", s.write_low_percent, 0, 99,
          "of queue_depth: fill of the write queue at which reads go first again");
}

template <class V>
void describe(V& v, HbmEccSpec& s) {
  v.count("data", s.data, 1, 4096, "data bursts that share check bursts");
  v.count("check", s.check, 1, 4096, "check bursts on the same bus");
}

template <class V>
void describe(V& v, HbmSpec& s) {
  v.positive("capacity", s.capacity, "capacity of one stack");
  v.positive("bandwidth", s.bandwidth, "raw peak of all stacks of the chip; sets the pin rate");
  v.count("channels", s.channels, 1, 256, "channels of one stack");
  v.count("pseudo_channels", s.pseudo_channels, 1, 8, "pseudo-channels per channel");
  v.count("sids", s.sids, 1, 16, "stack ids (ranks)");
  v.count("bank_groups", s.bank_groups, 1, 64, "bank groups per SID");
  v.count("banks_per_group", s.banks_per_group, 1, 64, "banks per group");
  v.positive("row", s.row, "row of one pseudo-channel");
  v.positive("burst", s.burst, "bytes of one column command");
  v.positive("interleave", s.interleave, "consecutive bytes in one pseudo-channel");
  describe_hbm_timings(v, s);
  v.choice("refresh", s.refresh, kRefreshModes, "refresh mode");
  v.non_negative("controller_latency", s.controller_latency, "controller and PHY, round trip");
  v.share("derate", s.derate, "share of time the bus is usable");
  v.non_negative("reserved", s.reserved, "taken by micro-code, per core");
  v.count("queue_depth", s.queue_depth, 1, 65536,
          "bursts per channel that the controller can reorder");
  v.option_choice("mode", s.mode, kHbmModes, "runs of columns, or every burst");
  v.option_choice("page_policy", s.page_policy, kPagePolicies,
                  "closed: a row without requests is closed; mode exact only");
  v.option_text("mapping", s.mapping,
                "address fields from the lowest bit up, see docs/modelling.md; empty: interleave");
  v.option_flag("channel_hash", s.channel_hash,
                "pseudo-channel XORed with a fold of the address bits above");
  v.optional_section("exact", s.exact, s.exact.t_rc.count() > 0,
                     "what mode exact needs beside the timings above");
  v.optional_section("ecc", s.ecc, s.ecc.data > 0, "check bursts on the data bus; missing: none");
}

template <class V>
void describe(V& v, OnChipSpec& s) {
  v.positive("stack_link", s.stack_link, "per direction, neighbouring stacks of one die");
  v.positive("stack_latency", s.stack_latency, "per traversal");
  v.share("die_crossing_bandwidth", s.die_crossing_bandwidth,
          "share of stack_link left across dies");
  v.non_negative("die_crossing_latency", s.die_crossing_latency, "added across dies");
  v.positive("port_link", s.port_link, "per direction, stack to the link ports");
  v.positive("port_latency", s.port_latency, "per traversal");
}

template <class V>
void describe(V& v, CollectiveSpec& s) {
  v.count("cores_used", s.cores_used, 1, 1024, "CC-cores per chip that run collectives");
  v.count("streams", s.streams, 1, 64, "concurrent streams per rank");
  v.non_negative("step_overhead", s.step_overhead, "trigger and ring work of one step");
  v.non_negative("start_overhead", s.start_overhead, "from trigger to first step");
  v.non_negative("mesh_limit", s.mesh_limit,
                 "largest collective (larger of input and output) for the mesh algorithm");
  v.count("mesh_ranks", s.mesh_ranks, 1, 1024, "most ranks of a group for the mesh algorithm");
}

template <class V>
void describe(V& v, HostSpec& s) {
  v.positive("pcie", s.pcie, "per direction and chip");
  v.non_negative("pcie_latency", s.pcie_latency, "per transfer");
  v.positive("storage", s.storage, "per instance");
}

template <class V>
void describe(V& v, EnergySpec& s) {
  DTypeTable<Energy> mac{s.mac};
  v.section("mac", mac, "energy of one MAC by format");
  v.positive("sbuf_read", s.sbuf_read, "per byte");
  v.positive("sbuf_write", s.sbuf_write, "per byte");
  v.positive("psum_access", s.psum_access, "per byte read or written");
  v.positive("vector_op", s.vector_op, "per element operation");
  v.positive("transcendental_op", s.transcendental_op, "per element operation");
  v.positive("quantize_op", s.quantize_op, "per element");
  v.positive("gpsimd_op", s.gpsimd_op, "per element operation");
  v.positive("hbm_activate", s.hbm_activate, "one row activation and precharge");
  v.positive("hbm_read_bit", s.hbm_read_bit, "per bit, array to base die");
  v.positive("hbm_write_bit", s.hbm_write_bit, "per bit, base die to array");
  v.positive("hbm_io_bit", s.hbm_io_bit, "per bit, DRAM side");
  v.positive("hbm_refresh_bank", s.hbm_refresh_bank, "one per-bank refresh");
  v.positive("hbm_phy_bit", s.hbm_phy_bit, "per bit, PHY and controller of the compute die");
  v.positive("dma_bit", s.dma_bit, "per bit, HBM to SBUF on the die");
  v.positive("die_crossing_bit", s.die_crossing_bit, "per bit");
  v.positive("link_bit", s.link_bit, "NeuronLink, per bit and direction");
  v.non_negative("hbm_background", s.hbm_background, "per stack");
  v.non_negative("hbm_phy_static", s.hbm_phy_static, "per stack, compute die");
  v.non_negative("link_static", s.link_static, "per chip");
  v.non_negative("clock_core", s.clock_core, "per core with its engine clocks on");
  v.number("clock_gated_share", s.clock_gated_share, 0.0, 1.0,
           "share of clock_core that stays when idle");
  v.non_negative("clock_uncore", s.clock_uncore, "per chip");
  v.non_negative("leakage", s.leakage, "compute dies at leakage_temperature_c");
  v.number("leakage_temperature_c", s.leakage_temperature_c, -55.0, 150.0, "degrees Celsius");
  v.number("leakage_per_kelvin", s.leakage_per_kelvin, 0.0, 1.0, "exponent of the leakage");
  v.number("operating_temperature_c", s.operating_temperature_c, -55.0, 150.0,
           "die temperature without a thermal model");
  v.non_negative("host", s.host, "PCIe, PLL, management and CC-cores");
  v.share("regulator_efficiency", s.regulator_efficiency, "chip to board");
  v.positive("tdp", s.tdp, "design power of the package");
}

template <class V>
void describe(V& v, ChipSpec& s) {
  v.text("name", s.name, "name in reports");
  v.count("cores", s.cores, 1, 1024, "physical NeuronCores");
  v.count("dies", s.dies, 1, 64, "compute dies");
  v.count("stacks", s.stacks, 1, 64, "HBM stacks");
  v.count("logical_core_size", s.logical_core_size, 1, 2, "default cores of a logical NeuronCore");
  v.number("headline_bf16_tflops", s.headline_bf16_tflops, 0.0, 1e6, "headline peak, quoted only");
  v.section("tensor", s.tensor, "systolic array");
  v.section("vector", s.vector, "VectorE");
  v.section("scalar", s.scalar, "ScalarE");
  v.section("gpsimd", s.gpsimd, "GpSimdE");
  v.section("sbuf", s.sbuf, "state buffer");
  v.section("psum", s.psum, "accumulation buffer");
  v.section("sync", s.sync, "semaphores");
  v.section("dma", s.dma, "DMA engines");
  v.section("hbm", s.hbm, "HBM stacks");
  v.section("on_chip", s.on_chip, "paths inside the package");
  v.section("collectives", s.collectives, "collective cores");
  v.section("host", s.host, "host link and storage");
  v.section("energy", s.energy, "energy coefficients");
}

}  // namespace trn3sim::config
