// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys, ranges and meanings of a system file and of the run options. See chip_describe.hpp for
// what a visitor offers.
#pragma once

#include <array>
#include <string_view>

#include "trn3sim/config/chip_describe.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/config/system_spec.hpp"

namespace trn3sim::config {

inline constexpr std::array<std::string_view, 2> kFabricTypes = {"none", "paired_planes"};
inline constexpr std::array<std::string_view, 3> kCompileLevels = {"stock", "tuned", "ideal"};

inline constexpr std::array<std::string_view, 7> kMatmulFormats = {
    "trace", "bf16", "fp16", "fp8", "mxfp8", "mxfp4", "fp32"};
inline constexpr std::array<std::string_view, 8> kSparsities = {"none", "4:16", "4:12", "4:8",
                                                                "2:8",  "2:4",  "1:4",  "1:2"};

// Sets the switches to those of `spec.level`, which must be one of kCompileLevels.
inline void apply_level(CompileSpec& spec) {
  const bool on = spec.level != "stock";
  spec.fusion = on;
  spec.flash_attention = true;
  spec.prefetch = on;
  spec.fast_exponential = on;
}

template <class V>
void describe(V& v, LinkSpec& s) {
  v.positive("bandwidth", s.bandwidth, "per direction");
  v.positive("latency", s.latency, "per traversal");
}

template <class V>
void describe(V& v, FabricSpec& s) {
  v.choice("type", s.type, kFabricTypes, "shape of the fabric");
  if (s.type != "paired_planes") return;
  v.count("servers", s.servers, 1, 4096, "servers");
  v.count("chips_per_server", s.chips_per_server, 1, 1024, "chips of one server");
  v.count("servers_per_rack", s.servers_per_rack, 1, 4096,
          "servers that share the switches of a rack");
  v.section("pair", s.pair, "direct link of pair partners");
  v.section("switched", s.switched, "chip to its switch plane");
  v.positive("switch_latency", s.switch_latency, "through one switch plane");
  if (s.servers > s.servers_per_rack)
    v.section("cross_rack", s.cross_rack, "direct link from rack to rack");
  else
    v.optional_section("cross_rack", s.cross_rack, s.cross_rack.bandwidth.count() > 0,
                       "not used with one rack");
}

// The switches follow the level; each can be set on its own.
template <class V>
void describe(V& v, CompileSpec& s) {
  v.option_choice("level", s.level, kCompileLevels, "named set of switches");
  if constexpr (V::kReads) apply_level(s);
  v.option_flag("fusion", s.fusion, "epilogues run on the results in PSUM or SBUF");
  v.option_flag("flash_attention", s.flash_attention, "attention as one kernel");
  v.option_flag("prefetch", s.prefetch, "weights of the next kernel load while one computes");
  v.option_flag("fast_exponential", s.fast_exponential, "VectorE `exponential` in attention");
}

template <class V>
void describe(V& v, PrecisionSpec& s) {
  v.option_choice("matmul", s.matmul, kMatmulFormats, "format of matrix products");
  v.option_choice("sparsity", s.sparsity, kSparsities, "values kept of each block of a weight");
}

// The options of a run that are no part of the machine.
struct RunOptions {
  std::uint64_t seed = 1;
  std::uint64_t shuffle = 0;
};

template <class V>
void describe(V& v, RunOptions& s) {
  v.option_number("seed", s.seed, "seed of every random stream");
  v.option_number("shuffle", s.shuffle, "permutes construction and profiling order");
}

}  // namespace trn3sim::config
