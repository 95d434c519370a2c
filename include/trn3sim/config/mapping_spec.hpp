// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// An explicit mapping of a matrix product: what `--mapping FILE` reads and `--dump-mapping` writes.
// Two types. `panels` is the family that the compiler searches: panels of the full contraction, a
// block of one operand resident while panels of the other stream by. `loops` is any nest of loops
// over m, n and k with the places in it where operands are loaded, accumulators opened and results
// stored, as kernel authors write them. All sizes are elements, of one core.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trn3sim::config {

inline constexpr std::array<std::string_view, 2> kMappingTypes = {"panels", "loops"};
inline constexpr std::array<std::string_view, 4> kSplits = {"none", "m", "n", "batch"};
inline constexpr std::array<std::string_view, 2> kOperands = {"a", "b"};
inline constexpr std::array<std::string_view, 3> kDimensions = {"m", "n", "k"};
inline constexpr std::array<std::string_view, 3> kEvictors = {"vector", "scalar", "both"};
inline constexpr std::array<std::string_view, 2> kSumFormats = {"fp32", "out"};
inline constexpr std::array<std::string_view, 4> kTransferEngines = {"sync", "gpsimd", "scalar",
                                                                     "vector"};

struct PanelMapping {
  std::string split = "none", stationary = "a", outer = "a";
  bool outer_resident = true;
  std::int64_t outer_block = 128, inner_block = 128;
  std::int64_t psum_stationary_tiles = 1, psum_moving_tiles = 1;
  std::int64_t chunk_tiles = 1, outer_buffers = 2, inner_buffers = 2, raw_buffers = 0;
  std::int64_t output_buffers = 4;
  bool merge_stores = false;
};

struct LoopLevel {
  std::string over = "m";
  std::int64_t step = 128;
};

struct OperandMapping {
  std::int64_t inside = 0;
  std::int64_t transfer_k = 128, transfer_width = 128;
  std::int64_t buffers = 2;
  std::string engine = "sync";
  std::int64_t queue = 0, queues = 1;
};

struct ResultMapping {
  std::int64_t psum_inside = 0, psum_buffers = 2;
  std::string evict = "both", sums = "fp32";
  std::int64_t store_inside = 0, store_width = 512, buffers = 2;
  std::string engine = "gpsimd";
  std::int64_t queue = 3;
};

struct TransposeMapping {
  std::int64_t ahead = 0, psum_buffers = 2;
  std::string evict = "scalar";
};

struct LoopMapping {
  std::string split = "none", stationary = "a";
  std::vector<LoopLevel> loops;
  std::int64_t pool = 0;
  OperandMapping a, b;
  ResultMapping c;
  TransposeMapping transpose;
};

struct MappingSpec {
  std::string type = "panels";
  std::string note;
  PanelMapping panels;
  LoopMapping loops;
  std::string file;  // for messages
  [[nodiscard]] bool is_loops() const { return type == "loops"; }
};

template <class V>
void describe(V& v, PanelMapping& s) {
  v.choice("split", s.split, kSplits, "along which dimension the cores share the work");
  v.choice("stationary", s.stationary, kOperands, "operand whose tiles are loaded into the array");
  v.choice("outer", s.outer, kOperands, "operand of which a block stays while panels of the other pass");
  v.flag("outer_resident", s.outer_resident, "false: the outer block is loaded again for each panel");
  v.count("outer_block", s.outer_block, 1, 1 << 20, "elements of the outer operand's free dimension");
  v.count("inner_block", s.inner_block, 1, 1 << 20, "elements of the inner operand's free dimension");
  v.count("psum_stationary_tiles", s.psum_stationary_tiles, 1, 64, "PSUM tiles of a sub-block");
  v.count("psum_moving_tiles", s.psum_moving_tiles, 1, 64, "PSUM tiles of a sub-block");
  v.count("chunk_tiles", s.chunk_tiles, 1, 1024, "contraction tiles of one load");
  v.count("outer_buffers", s.outer_buffers, 1, 65535, "SBUF buffers of the outer operand, loads");
  v.count("inner_buffers", s.inner_buffers, 1, 65535, "SBUF buffers of the inner operand, loads");
  v.count("raw_buffers", s.raw_buffers, 0, 65535, "SBUF buffers before a transpose or conversion");
  v.count("output_buffers", s.output_buffers, 1, 65535, "SBUF buffers of rows of results");
  v.flag("merge_stores", s.merge_stores, "one store for all rows of a sub-block");
}

template <class V>
void describe(V& v, LoopLevel& s) {
  v.choice("over", s.over, kDimensions, "dimension");
  v.count("step", s.step, 1, 1 << 24, "elements per iteration; the last one may be smaller");
}

template <class V>
void describe(V& v, OperandMapping& s) {
  v.count("inside", s.inside, 0, 16, "loops around its loads: 0 loads all of it at once");
  v.count("transfer_k", s.transfer_k, 1, 1 << 20, "of one DMA transfer, along the contraction");
  v.count("transfer_width", s.transfer_width, 1, 1 << 20, "of one DMA transfer, along m or n: its row");
  v.count("buffers", s.buffers, 1, 1024, "SBUF buffers of what is loaded at once");
  v.choice("engine", s.engine, kTransferEngines, "engine that starts the transfers");
  v.count("queue", s.queue, 0, 63, "first DMA ring");
  v.count("queues", s.queues, 1, 64, "rings that the transfers take in turn");
}

template <class V>
void describe(V& v, ResultMapping& s) {
  v.count("psum_inside", s.psum_inside, 0, 16,
          "loops around the accumulators: k loops further out make partial sums, added in SBUF");
  v.count("psum_buffers", s.psum_buffers, 1, 64, "PSUM buffers of what accumulates at once");
  v.choice("evict", s.evict, kEvictors, "engine that empties PSUM");
  v.choice("sums", s.sums, kSumFormats, "format of partial sums in SBUF: fp32, or that of C");
  v.count("store_inside", s.store_inside, 0, 16, "loops around the stores");
  v.count("store_width", s.store_width, 1, 1 << 20, "row of one DMA transfer");
  v.count("buffers", s.buffers, 1, 1024, "SBUF buffers of what is stored at once");
  v.choice("engine", s.engine, kTransferEngines, "engine that starts the transfers");
  v.count("queue", s.queue, 0, 63, "DMA ring");
}

template <class V>
void describe(V& v, TransposeMapping& s) {
  v.count("ahead", s.ahead, 0, 4096, "matmuls between a tile's transpose and its first use");
  v.count("psum_buffers", s.psum_buffers, 1, 64, "PSUM banks of transposed tiles");
  v.choice("evict", s.evict, std::span(kEvictors).first(2), "engine that copies them to SBUF");
}

template <class V>
void describe(V& v, LoopMapping& s) {
  v.choice("split", s.split, kSplits, "along which dimension the cores share the work");
  v.choice("stationary", s.stationary, kOperands, "operand whose tiles are loaded into the array");
  v.list("loops", s.loops, 16, "outermost first; the last step of m, n and k is the tile");
  v.count("pool", s.pool, 0, 1 << 24,
          "SBUF bytes per partition that loads of A and B share; 0: each has its own buffers");
  v.section("a", s.a, "loads of A");
  v.section("b", s.b, "loads of B");
  v.section("c", s.c, "accumulators and stores");
  v.section("transpose", s.transpose, "of operands that lie transposed in HBM");
}

template <class V>
void describe(V& v, MappingSpec& s) {
  v.choice("type", s.type, kMappingTypes, "panels or loops");
  v.option_text("note", s.note, "for people");
  if (s.is_loops())
    v.section("loops", s.loops, "an explicit nest of loops");
  else
    v.section("panels", s.panels, "blocks of the compiler's family");
}

// Reads a mapping file. Throws base::UserError with all problems.
MappingSpec load_mapping(const std::filesystem::path& file);
// The file's text; reading it gives the same mapping.
std::string mapping_text(const MappingSpec& mapping);

}  // namespace trn3sim::config
