// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One run: a resolved system, run options and where each assumed number stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/system_spec.hpp"

namespace trn3sim::config {

// compile.level is a named set of switches; each can be set on its own after the level.
struct CompileSpec {
  std::string level = "tuned";  // stock | tuned | ideal
  bool fusion = true;           // epilogue vec ops run on the gemm's results in PSUM/SBUF
  bool flash_attention = true;  // attention as one kernel, scores never leave the core
  bool memory_reuse = true;     // intermediates of vector ops stay in SBUF, also for the next op
  bool double_accumulators = true;   // results leave PSUM while the next ones accumulate
  bool streaming_loads = true;       // a buffer loads while another one is worked on
  bool prefetch = true;              // loads of the next kernel start while the running one computes
  bool fast_exponential = true;      // v4 VectorE `exponential` in attention where the chip has it
  bool merge_gathers = true;         // neighbouring all-gathers of a group are one
  bool overlap_collectives = false;  // tensor-parallel collectives run beside the gemm in chunks
};

// The format of the ops of one name, which beats PrecisionSpec::matmul and the trace.
struct OpFormat {
  std::string op;      // "block.op", or "op" in whatever block
  std::string matmul;  // one of kMatmulFormats
};

// Formats of the matrix products; docs/precision.md. An explicit dtype of an op beats `matmul`.
struct PrecisionSpec {
  std::string matmul = "trace";     // what the trace says, or a format
  std::string sparsity = "none";    // of weights: "4:16" keeps 4 of each 16 values
  std::string ops;                  // "head=bf16,layer_fwd.qkv=mxfp8" as written
  std::string parts = "all";        // of what `matmul` changes: rate | rate_bytes | all
  std::vector<OpFormat> formats{};  // `ops` read, in its order
};

// Reads PrecisionSpec::ops. Adds a problem (at `place`) for each item that is no NAME=FORMAT, for
// unknown formats and for names that stand twice.
std::vector<OpFormat> parse_op_formats(const std::string& text, const std::string& place,
                                       base::Problems& problems);

// How the members of a group exchange data; docs/modelling.md, "Collectives".
struct CollectiveOptions {
  std::string algorithm = "auto";  // by size; or ring, mesh for every size
  std::uint64_t rings = 4;         // most link-disjoint rings of a group at once
};

// One number of the configuration that no source gives.
struct AssumedNumber {
  std::string path;    // "chip.on_chip.stack_link"
  std::string value;   // as written
  std::string reason;  // the file's source text
};

struct RunSpec {
  SystemSpec system;
  CompileSpec compile;
  PrecisionSpec precision;
  CollectiveOptions collectives;
  std::uint64_t seed = 1;
  std::vector<std::int64_t> detailed_chips;  // ascending; their cores run every instruction
  bool fast_forward = true;    // sleep through loops that repeat exactly; false: simulate everything
  std::uint64_t shuffle = 0;   // test hook: permutes construction and profiling order
  std::filesystem::path config_file;
  std::vector<AssumedNumber> assumed;  // sorted by path
  std::string resolved_json;           // canonical dump of the resolved configuration

  [[nodiscard]] bool is_detailed(std::int64_t chip) const {
    return std::binary_search(detailed_chips.begin(), detailed_chips.end(), chip);
  }
};

// Loads a system file (and the chip file it names), applies overrides in order, checks everything.
//
// `config` resolves as given, then in each directory of TRN3SIM_CONFIG_PATH (colon-separated), then
// in the installed or source `configs/`. Overrides are "dotted.path=value" with the roots `chip`,
// `fabric`, `name`, `compile`, `precision`, `collectives`, `run`. Throws base::UserError with all problems at once.
RunSpec load_run(const std::string& config, const std::vector<std::string>& overrides);

// Chooses the chips that run in full detail: all, or those of `chips`. Throws base::UserError for
// chips that the system does not have.
void choose_detailed_chips(RunSpec& run, bool all, std::vector<std::int64_t> chips);

// The paths among `overrides` that no model reads, in their order: changing them changes no number.
std::vector<std::string> overrides_without_effect(const std::vector<std::string>& overrides);

// Resolves a trace name: as given, then `traces/` and the directory itself under each config
// directory. Throws base::UserError that lists where it looked.
std::filesystem::path find_trace(const std::string& name);

}  // namespace trn3sim::config
