// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// A traced workload: one SPMD program for all ranks. Blocks hold ops in issue order; `call` and
// `repeat` ops nest them, so a training step of millions of operations is a few dozen lines. All
// sizes are bytes per rank, counts are elements or FLOP, times are nanoseconds. Format:
// docs/trace_format.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/mesh.hpp"

namespace trn3sim::trace {

using base::DType;

// Dependency on the entry of the enclosing block ("^" in the file).
inline constexpr std::int32_t kEntry = -1;

enum class Role : std::uint8_t { Activation, Weight, Gradient };

// C[m,n] (+)= A[m,k] B[k,n], `batch` times. 2 batch m n k FLOP.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::optional<DType> dtype;  // of A and B; explicit beats the run's policy
  std::optional<DType> out;    // of C; default: as A
  bool accumulate = false;     // C is read and added to (gradient accumulation)
  Role a = Role::Activation, b = Role::Weight;
};

// Attention of `b` sequences: q [heads, sq, d], k and v [kv_heads, skv, d].
struct Attention {
  std::int64_t b = 1, heads = 0, kv_heads = 0, sq = 0, skv = 0, d = 0;
  bool causal = false;
  bool backward = false;  // dQ, dK, dV with the scores recomputed
  std::optional<DType> dtype;
};

// Vector work `fn` over `elems` elements. `rd` and `wr` are HBM bytes when it runs alone; absent:
// derived from the function's operands and dtype.
struct Vec {
  std::string fn;
  std::int64_t elems = 0;  // output elements (input, if nothing is written)
  std::optional<std::int64_t> rd, wr;
  std::optional<DType> dtype;
  std::int32_t fuse = -1;  // index of the gemm in this block whose epilogue it is, or -1
};

// Selective scan of a state-space model: h = exp(delta A) h + delta u B along `seq`, y = sum over
// the states of C h, for `b` sequences of `channels`. delta, u and y [b, channels, seq], A
// [channels, state], B and C [b, state, seq].
struct Scan {
  std::int64_t b = 1, channels = 0, state = 0, seq = 0;
  std::optional<DType> dtype;
};

enum class CollectiveKind : std::uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  Barrier
};

// "all_reduce", "all_gather", ...: the names of the file.
std::string_view collective_name(CollectiveKind kind);

// `in` and `out` are bytes per rank. `group` names mesh axes in mesh order, e.g. "tp" or
// "dp+tp".
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string group;
  std::vector<int> axes;  // of the mesh, ascending
  std::int64_t in = 0, out = 0;
  std::optional<DType> dtype;  // of the reduction
};

// Point to point along an axis: peer is the rank whose coordinate on `axis` is ours + `offset`
// (no wrap). A send completes locally; a recv when the bytes have arrived.
struct PointToPoint {
  bool send = true;
  int axis = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t tag = 0;
};

enum class MemorySpace : std::uint8_t { Hbm, Host, Storage };

struct Memory {
  bool store = false;
  MemorySpace space = MemorySpace::Host;
  std::int64_t bytes = 0;
};

struct Delay {
  std::int64_t ns = 0;
};

// Imported work without a shape: the larger of flop/peak and bytes/served rate, and at least ns.
struct Opaque {
  std::int64_t flop = 0, bytes = 0, ns = 0;
  std::optional<DType> dtype;
};

struct Call {
  std::int32_t block = -1;
};

// `times` iterations; iteration i starts when iteration i-1's `out` ops are done.
struct Repeat {
  std::int32_t block = -1;
  std::int64_t times = 1;
};

using Body = std::variant<Gemm, Attention, Vec, Scan, Collective, PointToPoint, Memory, Delay,
                          Opaque, Call, Repeat>;

struct Op {
  std::string id;
  std::string whole;  // id of the op that this is a piece of; empty: it is no piece
  Body body;
  std::vector<std::int32_t> deps;    // indices of earlier ops of the block, or kEntry
  std::int64_t alloc = 0, free = 0;  // HBM bytes that live from here / end here (activations)
  bool recompute = false;            // counts for HFU, not for MFU
  std::vector<std::pair<int, std::int64_t>> when;  // mesh axis, coordinate: runs only there
  std::uint32_t line = 0;
};

struct Block {
  std::string id;
  std::string phase;  // "forward" | "backward" | "optimizer" | ""; inherited by calls
  std::vector<Op> ops;
  std::vector<std::int32_t> out;  // ops whose completion completes the block (all if empty)
  std::uint32_t line = 0;
};

struct MemoryEntry {
  std::string kind;  // "weights" | "grads" | "optimizer" | other
  std::int64_t bytes = 0;
  std::string live = "always";  // always | step | optimizer
};

struct Header {
  std::string name;
  base::RankUnit rank_unit = base::RankUnit::LogicalCore;
  base::Mesh mesh;
  DType dtype = DType::Bf16;
  std::int64_t tokens_per_step = 0;
  std::vector<MemoryEntry> memory;
};

// Block 0 is the implicit top level.
struct Program {
  std::filesystem::path file;
  std::string content_sha256;  // of the decompressed text, hex
  Header header;
  std::vector<Block> blocks;
};

// Reads and checks a native trace (plain, gzip or zstd by content). Throws base::UserError naming
// file and line: unknown op, field, function or dtype; dangling or forward deps; groups that are no
// axes; sizes that do not divide; lines over 16 MiB; truncated compression; empty file.
Program read(const std::filesystem::path& file);

// Totals of one rank (the rank given; `when` conditions apply), loops multiplied out.
struct PhaseTotals {
  std::string phase;  // "" = outside any phase
  std::int64_t ops = 0;
  double model_flop = 0;         // full attention, without recompute
  double model_flop_causal = 0;  // causal attention counted as half
  double recompute_flop = 0;
};
struct GroupTotals {
  std::string kind, group;
  std::int64_t count = 0, in_bytes = 0, out_bytes = 0;
  std::string phase;
};
struct Totals {
  std::int64_t ops = 0;  // leaf ops executed by the rank
  double model_flop = 0, model_flop_causal = 0, recompute_flop = 0;
  std::int64_t activation_peak_bytes = 0;
  std::vector<PhaseTotals> phases;
  std::vector<GroupTotals> collectives;
  std::vector<std::pair<std::string, std::int64_t>> ops_by_kind;
};
Totals scan(const Program& program, std::int64_t rank);

// FLOP of one op: model work with full attention, and with causal attention as half. Gemms,
// attention (forward 2, backward 4 products of the scores' size) and opaque work count; vector work
// does not, nor does an op marked `recompute`.
double flop_full(const Op& op);
double flop_causal(const Op& op);
// Work done again: all of an op marked `recompute`, and the scores of an attention backward pass
// (1 product, full attention).
double flop_recompute(const Op& op);

// Sum of `cost(block, op)` over the leaf ops of a rank, loops multiplied out; each block is summed
// once. A negative rank stands for the ops of all ranks.
double sum_over_ops(const Program& program, std::int64_t rank,
                    const std::function<double(std::int32_t block, std::int32_t op)>& cost);

// Peak HBM bytes of a rank: header entries plus live activations.
std::int64_t peak_memory_bytes(const Program& program, std::int64_t rank);

// A vector function known to the format.
struct VecFunction {
  std::string_view name;
  int inputs = 1;   // tensors of `elems` read from HBM when it runs alone
  int outputs = 1;  // tensors of `elems` written
  int flop_per_element = 1;
};
// nullptr if unknown.
const VecFunction* vec_function(std::string_view name);
std::vector<std::string> vec_function_names();

// Walks one rank's ops in program order with loops unrolled, O(depth) memory.
class Cursor {
 public:
  enum class Event : std::uint8_t { Op, Enter, Leave, End };
  struct Step {
    Event event = Event::End;
    std::int32_t block = -1;  // block of the op (Op), or block entered/left
    std::int32_t op =
        -1;  // index in its block (Op); of the call/repeat op (Enter/Leave: in the parent)
    std::int64_t iteration = 0;  // of the block entered or left
  };
  Cursor(const Program& program, std::int64_t rank);
  Step next();

 private:
  struct Frame {
    std::int32_t block;
    std::int32_t position;
    std::int64_t iteration;
  };
  [[nodiscard]] bool runs_here(const Op& op) const;
  const Program* program_;
  std::int64_t rank_;
  std::vector<Frame> stack_;
};

// True if `op` runs on `rank` (its `when` holds).
bool runs_on(const Program& program, const Op& op, std::int64_t rank);

}  // namespace trn3sim::trace
