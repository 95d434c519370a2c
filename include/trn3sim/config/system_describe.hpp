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

inline constexpr std::array<std::string_view, 7> kFabricTypes = {
    "none", "paired_planes", "ring", "torus", "switch", "fully_connected", "graph"};
inline constexpr std::int64_t kChipsMax = 4096;          // of a fabric without servers
inline constexpr std::int64_t kFullyConnectedMax = 256;  // links grow with the square
inline constexpr std::int64_t kTorusDimensionsMax = 6;
inline constexpr std::int64_t kGraphItemsMax = 1'000'000;  // links or switches written out
inline constexpr std::array<std::string_view, 3> kCompileLevels = {"stock", "tuned", "ideal"};

inline constexpr std::array<std::string_view, 7> kMatmulFormats = {"trace", "bf16",  "fp16", "fp8",
                                                                   "mxfp8", "mxfp4", "fp32"};
inline constexpr std::array<std::string_view, 8> kSparsities = {"none", "4:16", "4:12", "4:8",
                                                                "2:8",  "2:4",  "1:4",  "1:2"};

// Parts of the change that precision.matmul makes, each with those before it.
inline constexpr std::array<std::string_view, 3> kPrecisionParts = {"rate", "rate_bytes", "all"};

inline constexpr std::array<std::string_view, 3> kAlgorithms = {"auto", "ring", "mesh"};

// Sets the switches to those of `spec.level`, which must be one of kCompileLevels.
inline void apply_level(CompileSpec& spec) {
  const bool on = spec.level != "stock";
  spec.fusion = on;
  spec.flash_attention = on;
  spec.memory_reuse = on;
  spec.double_accumulators = true;
  spec.streaming_loads = true;
  spec.prefetch = on;
  spec.fast_exponential = on;
  spec.merge_gathers = on;
  spec.overlap_collectives = spec.level == "ideal";
}

template <class V>
void describe(V& v, LinkSpec& s) {
  v.positive("bandwidth", s.bandwidth, "per direction");
  v.positive("latency", s.latency, "per traversal");
}

template <class V>
void describe(V& v, SwitchSpec& s) {
  v.text("name", s.name, "name for the links; not \"chip...\"");
  v.non_negative("latency", s.latency, "through the switch");
}

template <class V>
void describe(V& v, GraphLinkSpec& s) {
  v.text("from", s.from, "\"chip0\", \"chip1\", ... or the name of a switch");
  v.text("to", s.to, "\"chip0\", \"chip1\", ... or the name of a switch");
  describe(v, s.link);
  v.option_flag("one_way", s.one_way, "only from `from` to `to`; otherwise both directions");
}

template <class V>
void describe_paired_planes(V& v, FabricSpec& s) {
  v.count("servers", s.servers, 1, 4096, "servers");
  v.count("chips_per_server", s.chips_per_server, 1, 1024, "chips of one server");
  v.count("servers_per_rack", s.servers_per_rack, 1, 4096,
          "servers that share the switches of a rack");
  v.section("pair", s.pair, "direct link of pair partners");
  v.section("switched", s.switched, "chip to its switch plane");
  v.positive("switch_latency", s.switch_latency, "through one switch plane");
  if (s.servers > s.servers_per_rack)
    v.section("cross_rack", s.cross_rack, "direct link from rack to rack; required with two racks");
  else
    v.optional_section("cross_rack", s.cross_rack, s.cross_rack.bandwidth.count() > 0,
                       "direct link from rack to rack; required with two racks");
}

// The chips of a torus: the product of its dimensions, saturated above kChipsMax.
inline std::int64_t torus_chips(const std::vector<std::int64_t>& dims) {
  std::int64_t chips = 1;
  for (const std::int64_t n : dims)
    if (chips <= kChipsMax) chips *= n;
  return chips;
}

template <class V>
void describe_graph(V& v, FabricSpec& s) {
  v.count("chips", s.chips_per_server, 1, kChipsMax, "chips, named chip0, chip1, ...");
  v.optional_list("switches", s.switches, kGraphItemsMax, "switches");
  v.list("links", s.links, kGraphItemsMax, "links between chips and switches");
}

template <class V>
void describe(V& v, FabricSpec& s) {
  v.choice("type", s.type, kFabricTypes, "shape of the fabric");
  if (s.type == "paired_planes") {
    describe_paired_planes(v, s);
  } else if (s.type == "ring") {
    v.count("chips", s.chips_per_server, 2, kChipsMax, "chips");
    v.section("link", s.link, "chip to the next chip");
  } else if (s.type == "torus") {
    v.counts("dims", s.dims, 1, kChipsMax, kTorusDimensionsMax,
             "chips along each dimension; the last one varies fastest with the chip number");
    if constexpr (V::kReads) s.chips_per_server = torus_chips(s.dims);
    v.section("link", s.link, "chip to its neighbour");
    v.optional_section("outer_link", s.outer_link, s.outer_link.bandwidth.count() > 0,
                       "chip to its neighbour along the first dimension; as link if left out");
  } else if (s.type == "switch") {
    v.count("chips", s.chips_per_server, 2, kChipsMax, "chips");
    v.section("link", s.link, "chip to the switch");
    v.non_negative("switch_latency", s.switch_latency, "through the switch");
  } else if (s.type == "fully_connected") {
    v.count("chips", s.chips_per_server, 2, kFullyConnectedMax, "chips");
    v.section("link", s.link, "chip to chip");
  } else if (s.type == "graph") {
    describe_graph(v, s);
  }
}

// The switches follow the level; each can be set on its own.
template <class V>
void describe(V& v, CompileSpec& s) {
  v.option_choice("level", s.level, kCompileLevels, "named set of switches");
  if constexpr (V::kReads) apply_level(s);
  v.option_flag("fusion", s.fusion, "epilogues run on the results in PSUM or SBUF");
  v.option_flag("flash_attention", s.flash_attention, "attention as one kernel");
  v.option_flag("memory_reuse", s.memory_reuse,
                "intermediates of vector ops stay in SBUF, also for the next op");
  v.option_flag("double_accumulators", s.double_accumulators,
                "results leave PSUM while the next ones accumulate");
  v.option_flag("streaming_loads", s.streaming_loads,
                "a buffer loads while another one is worked on");
  v.option_flag("prefetch", s.prefetch, "loads of the next kernel start while one computes");
  v.option_flag("fast_exponential", s.fast_exponential, "VectorE `exponential` in attention");
  v.option_flag("merge_gathers", s.merge_gathers, "neighbouring all-gathers of a group as one");
  v.option_flag("overlap_collectives", s.overlap_collectives,
                "all-gathers and reduce-scatters run in chunks beside the gemm");
}

template <class V>
void describe(V& v, PrecisionSpec& s) {
  v.option_choice("matmul", s.matmul, kMatmulFormats, "format of matrix products");
  v.option_choice("sparsity", s.sparsity, kSparsities, "values kept of each block of a weight");
  v.option_text("ops", s.ops,
                "formats of single GEMMs: NAME=FORMAT with commas; NAME is block.op or op");
  v.option_choice("parts", s.parts, kPrecisionParts,
                  "experiment: of `matmul`, rate: of the array only; rate_bytes: also bytes in HBM "
                  "and SBUF; all: also the conversions");
}

template <class V>
void describe(V& v, CollectiveOptions& s) {
  v.option_choice("algorithm", s.algorithm, kAlgorithms,
                  "auto: mesh up to chip.collectives.mesh_limit where it is no slower");
  v.option_number("rings", s.rings, "most link-disjoint rings of a group at once: 1, 2 or 4");
}

// The options of a run that are no part of the machine.
struct RunOptions {
  std::uint64_t seed = 1;
  std::uint64_t shuffle = 0;
  bool fast_forward = true;
};

template <class V>
void describe(V& v, RunOptions& s) {
  v.option_number("seed", s.seed, "seed of every random stream");
  v.option_number("shuffle", s.shuffle, "permutes construction and profiling order");
  v.option_flag("fast_forward", s.fast_forward, "sleep through loops that repeat exactly");
}

// What a system file holds besides "kind" and "chip".
struct SystemFile {
  std::string name;
  FabricSpec fabric;
  CompileSpec compile;
  PrecisionSpec precision;
  CollectiveOptions collectives;
  RunOptions run;
};

template <class V>
void describe(V& v, SystemFile& s) {
  v.text("name", s.name, "name in reports");
  v.section("fabric", s.fabric, "links between the chips");
  v.optional_section("compile", s.compile, true, "compilation switches");
  v.optional_section("precision", s.precision, true, "formats of matrix products");
  v.optional_section("collectives", s.collectives, true, "algorithms of collectives");
  v.optional_section("run", s.run, true, "run options");
}

// What a system file that gives this run would hold.
inline SystemFile system_file(const RunSpec& run) {
  return {run.system.name, run.system.fabric, run.compile,
          run.precision,   run.collectives,   {run.seed, run.shuffle, run.fast_forward}};
}

}  // namespace trn3sim::config
