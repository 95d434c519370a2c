// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The one list of the fields of Results, from which results.json is both written and read.
//
// A visitor V provides
//   v.field(key, value)         a string, bool, int64 or double (FLOP counts only)
//   v.table(key, names, array)  an object with one int64 per name
//   v.object(key, value)        a described struct
//   v.list(key, vector)         an array of described structs
//   v.energy(key, accounts)     nanojoules per account and their total
// Keys end in the unit: _fs, _bytes, _bytes_per_s, _nj, _flop, _flop_per_s; others are counts.
#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "trn3sim/stats/results.hpp"

namespace trn3sim::stats {

// Keys of Results::engine_busy_fs, in the order of models::Engine.
inline constexpr std::array<std::string_view, 5> kEngineNames = {"tensor", "vector", "scalar",
                                                                 "gpsimd", "sync"};

// Self is the struct or its const form, so that one body serves the reader and the writer.
template <class Self, class Struct>
concept MaybeConst = std::same_as<std::remove_const_t<Self>, Struct>;

template <MaybeConst<Breakdown> Self, class V>
void describe(Self& r, V& v) {
  v.table("mean_fs", kTimeClassNames, r.mean_fs);
}

template <MaybeConst<LowerBounds> Self, class V>
void describe(Self& r, V& v) {
  v.field("compute_fs", r.compute_fs);
  v.field("dma_fs", r.dma_fs);
  v.field("hbm_fs", r.hbm_fs);
  v.field("link_fs", r.link_fs);
  v.field("critical_path_fs", r.critical_path_fs);
}

template <MaybeConst<PhaseResult> Self, class V>
void describe(Self& r, V& v) {
  v.field("phase", r.phase);
  v.field("busy_fs", r.busy_fs);
  v.field("model_flop", r.model_flop);
}

template <MaybeConst<KernelResult> Self, class V>
void describe(Self& r, V& v) {
  v.field("label", r.label);
  v.field("count", r.count);
  v.field("total_fs", r.total_fs);
  v.field("alone_fs", r.alone_fs);
  v.field("tensor_ideal_fs", r.tensor_ideal_fs);
  v.field("hbm_bytes", r.hbm_bytes);
  v.field("bound", r.bound);
}

template <MaybeConst<CollectiveResult> Self, class V>
void describe(Self& r, V& v) {
  v.field("label", r.label);
  v.field("count", r.count);
  v.field("total_fs", r.total_fs);
  v.field("in_bytes", r.in_bytes);
  v.field("out_bytes", r.out_bytes);
  v.field("ranks", r.ranks);
  v.field("bus_bytes_per_s", r.bus_rate);
  v.field("algorithm", r.algorithm);
  v.field("worst_link", r.worst_link);
}

template <MaybeConst<LinkResult> Self, class V>
void describe(Self& r, V& v) {
  v.field("name", r.name);
  v.field("bytes", r.bytes);
  v.field("busy_fs", r.busy_fs);
  v.field("queue_fs", r.queue_fs);
}

template <MaybeConst<AssumedUse> Self, class V>
void describe(Self& r, V& v) {
  v.field("path", r.path);
  v.field("value", r.value);
  v.field("reason", r.reason);
}

template <MaybeConst<CheckResult> Self, class V>
void describe(Self& r, V& v) {
  v.field("name", r.name);
  v.field("passed", r.passed);
  v.field("detail", r.detail);
}

template <MaybeConst<Results> Self, class V>
void describe(Self& r, V& v) {
  v.field("config_name", r.config_name);
  v.field("trace_name", r.trace_name);
  v.field("trace_sha256", r.trace_sha256);
  v.field("compile_level", r.compile_level);
  v.field("model_version", r.model_version);
  v.field("chips", r.chips);
  v.field("ranks", r.ranks);
  v.field("cores_used", r.cores_used);
  v.field("tokens_per_step", r.tokens_per_step);
  v.field("step_fs", r.step_fs);
  v.field("model_flop", r.model_flop);
  v.field("model_causal_flop", r.model_flop_causal);
  v.field("hardware_flop", r.hardware_flop);
  v.field("peak_geometry_flop_per_s", r.peak_geometry_flops);
  v.field("peak_headline_flop_per_s", r.peak_headline_flops);
  v.field("peak_dtype_flop_per_s", r.peak_dtype_flops);
  v.field("tensor_ideal_fs", r.tensor_ideal_fs);
  v.field("hbm_read_bytes", r.hbm_read_bytes);
  v.field("hbm_write_bytes", r.hbm_write_bytes);
  v.field("hbm_scale_bytes", r.hbm_scale_bytes);
  v.field("spill_save_bytes", r.spill_save_bytes);
  v.field("spill_reload_bytes", r.spill_reload_bytes);
  v.field("hbm_peak_bytes_per_s", r.hbm_peak_rate);
  v.field("dma_bytes", r.dma_bytes);
  v.field("peak_memory_bytes", r.peak_memory_bytes);
  v.field("memory_capacity_bytes", r.memory_capacity_bytes);
  v.table("engine_busy_fs", kEngineNames, r.engine_busy_fs);
  v.object("breakdown", r.breakdown);
  v.list("phases", r.phases);
  v.list("kernels", r.kernels);
  v.list("collectives", r.collectives);
  v.list("links", r.links);
  v.object("lower_bounds", r.bounds);
  v.energy("energy_nj", r.energy);
  v.field("bytes_sent", r.bytes_sent);
  v.field("bytes_received", r.bytes_received);
  v.list("assumed", r.assumed);
  v.list("checks", r.checks);
}

}  // namespace trn3sim::stats
