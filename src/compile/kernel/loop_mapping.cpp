// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Explicit loop nests: what a kernel and a chip take, and their programs.
#include <algorithm>
#include <numeric>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "compile/kernel/dry_run.hpp"
#include "compile/kernel/loop_kernel.hpp"
#include "compile/kernel/mapping_file.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kMostMatmuls = 1 << 21;
constexpr std::int64_t kMostTransfers = 128;  // of one matmul and operand
constexpr std::int64_t kMostTokens = 65535;   // of a semaphore in one instruction

class LoopCheck {
 public:
  LoopCheck(const KernelSpec& spec, const config::ChipSpec& chip,
            const config::MappingSpec& mapping, const std::vector<GemmShape>& shapes)
      : spec_(spec),
        chip_(chip),
        mapping_(mapping),
        map_(mapping.loops),
        shape_(shapes.front()),
        pack_(contraction_pack(spec, chip)) {}

  // Throws if the mapping cannot be; sizes are those of the largest share.
  void run() {
    kernel();
    loops();
    if (problems_.empty()) depths();
    if (problems_.empty()) {
      engines();
      counts();
      pool();
      space();
    }
    problems_.throw_if_any();
  }
  [[nodiscard]] std::int64_t sbuf() const { return sbuf_; }
  [[nodiscard]] std::int64_t banks() const { return banks_; }

 private:
  void wrong(const std::string& key, std::string what) {
    problems_.add(fmt::format("{}: /loops/{}", mapping_.file, key), std::move(what));
  }

  // What no nest of loops has.
  void kernel() {
    const auto refuse = [&](bool there, const char* what) {
      if (there)
        problems_.add(mapping_.file,
                      fmt::format("a mapping of type loops has no {}; use type panels", what));
    };
    refuse(!spec_.epilogues.empty(), "epilogue (--fuse)");
    refuse(spec_.accumulate, "accumulation onto C (--accumulate)");
    refuse(spec_.sparse_block > 0, "compressed weights (--sparsity)");
    refuse(operand_of(spec_, true).convert || operand_of(spec_, false).convert,
           "conversion of operands (--a-format, --b-format)");
    refuse(spec_.out == base::DType::Mxfp8 || spec_.out == base::DType::Mxfp4, "MX results");
  }

  [[nodiscard]] std::int64_t last_step(const std::string& over) const {
    std::int64_t step = 0;
    for (const config::LoopLevel& l : map_.loops)
      if (l.over == over) step = l.step;
    return step;
  }

  void loops() {
    const bool transposed = spec_.a_transposed || spec_.b_transposed;
    const std::int64_t k_most = transposed ? kLanes : kLanes * pack_;
    const bool a = map_.stationary == "a";
    const std::array<std::pair<std::string, std::int64_t>, 3> most = {
        {{"m", a ? kLanes : chip_.tensor.moving_max},
         {"n", a ? chip_.tensor.moving_max : kLanes},
         {"k", k_most}}};
    double matmuls = static_cast<double>(shape_.batch);
    for (const auto& [over, limit] : most) {
      const std::int64_t tile = last_step(over);
      if (tile == 0) {
        wrong("loops", fmt::format("no loop over {}", over));
        continue;
      }
      if (tile > limit)
        wrong("loops", fmt::format("the last step of {} is {}; a tile has at most {} there", over,
                                   tile, limit));
      const std::int64_t size = over == "m" ? shape_.m : over == "n" ? shape_.n : shape_.k;
      matmuls *= static_cast<double>(ceil_divide(size, tile));
    }
    for (std::size_t i = 0; i < map_.loops.size(); ++i)
      for (std::size_t j = i + 1; j < map_.loops.size(); ++j)
        if (map_.loops[i].over == map_.loops[j].over &&
            map_.loops[i].step % map_.loops[j].step != 0)
          wrong(fmt::format("loops/{}/step", i),
                fmt::format("is {}; expected a multiple of the step {} further in",
                            map_.loops[i].step, map_.loops[j].step));
    if (matmuls > static_cast<double>(kMostMatmuls))
      wrong("loops",
            fmt::format("{:.3g} matmuls; at most {} can be written out", matmuls, kMostMatmuls));
  }

  void depths() {
    const auto most = static_cast<std::int64_t>(map_.loops.size());
    const std::array<std::pair<const char*, std::int64_t>, 4> depth = {
        {{"a/inside", map_.a.inside},
         {"b/inside", map_.b.inside},
         {"c/psum_inside", map_.c.psum_inside},
         {"c/store_inside", map_.c.store_inside}}};
    for (const auto& [key, value] : depth)
      if (value > most) wrong(key, fmt::format("is {}; there are {} loops", value, most));
    if (!problems_.empty()) return;
    if (map_.c.store_inside > map_.c.psum_inside)
      wrong("c/store_inside", fmt::format("is {}; stores come after the accumulators, at most {}",
                                          map_.c.store_inside, map_.c.psum_inside));
    if (inside(map_.c.store_inside)[kK] < shape_.k)
      wrong("c/store_inside", "a loop over k lies around the stores, so sums would be incomplete");
    if (partial() && map_.c.evict != "vector")
      wrong("c/evict",
            fmt::format("is \"{}\"; partial sums are added by \"vector\"", map_.c.evict));
    queues("a/queue", map_.a.queue, map_.a.queues);
    queues("b/queue", map_.b.queue, map_.b.queues);
    queues("c/queue", map_.c.queue, 1);
  }

  void queues(const char* key, std::int64_t first, std::int64_t count) {
    const std::int64_t there = chip_.dma.queues_per_engine;
    if (first + count <= there) return;
    wrong(key, fmt::format("is {}{}; {} has queues 0 to {}", first,
                           count > 1 ? fmt::format(" with queues {}", count) : std::string(),
                           chip_.name, there - 1));
  }

  // Tokens of a semaphore that one instruction takes or gives are few.
  void counts() {
    for (const bool a : {true, false}) {
      const config::OperandMapping& o = a ? map_.a : map_.b;
      const std::int64_t parts = ceil_divide(last_step("k"), o.transfer_k) *
                                 ceil_divide(last_step(a ? "m" : "n"), o.transfer_width);
      if (parts > kMostTransfers)
        wrong(a ? "a/transfer_width" : "b/transfer_width",
              fmt::format("is {} with transfer_k {}: {} transfers for one matmul, at most {}",
                          o.transfer_width, o.transfer_k, parts, kMostTransfers));
    }
    const auto box = inside(map_.c.store_inside);
    const std::int64_t tiles =
        ceil_divide(box[kM], last_step("m")) * ceil_divide(box[kN], last_step("n"));
    if (tiles > kMostTokens)
      wrong("c/store_inside", fmt::format("is {}: {} tiles are stored at once, at most {}",
                                          map_.c.store_inside, tiles, kMostTokens));
  }

  // What A and B share a pool for.
  void pool() {
    if (map_.pool == 0) return;
    if (map_.a.engine != map_.b.engine)
      wrong("b/engine",
            fmt::format("is \"{}\"; operands that share a pool are loaded by one engine, "
                        "\"{}\"",
                        map_.b.engine, map_.a.engine));
    if (spec_.a_transposed || spec_.b_transposed)
      wrong("pool", "transposed operands have buffers of their own; expected 0");
    const std::int64_t a_bytes = transfer_bytes(operand_of(spec_, true), map_.a, pack_);
    const std::int64_t b_bytes = transfer_bytes(operand_of(spec_, false), map_.b, pack_);
    const std::int64_t larger = std::max(a_bytes, b_bytes);
    if (larger > map_.pool)
      wrong("pool", fmt::format("is {}; one transfer of {} takes {}", map_.pool,
                                a_bytes == larger ? "A" : "B", larger));
    if (larger / std::gcd(a_bytes, b_bytes) > kMostTransfers)
      wrong("pool",
            fmt::format("transfers of A take {} bytes and those of B {}; expected sizes that "
                        "have a large common divisor",
                        a_bytes, b_bytes));
  }

  // A stream is in order: what starts loads runs ahead of what empties PSUM, and that of stores.
  void engines() {
    const auto apart = [&](const char* key, const std::string& one, const char* other_key,
                           const std::string& other) {
      if (one == other || (other == "both" && (one == "vector" || one == "scalar")))
        wrong(key, fmt::format("is \"{}\", which {} takes too; one engine cannot do both", one,
                               other_key));
    };
    for (const auto& [key, engine] :
         {std::pair{"a/engine", map_.a.engine}, {"b/engine", map_.b.engine}}) {
      apart(key, engine, "c/engine", map_.c.engine);
      apart(key, engine, "c/evict", map_.c.evict);
      if (spec_.a_transposed || spec_.b_transposed)
        apart(key, engine, "transpose/evict", map_.transpose.evict);
    }
    apart("c/engine", map_.c.engine, "c/evict", map_.c.evict);
    if (spec_.a_transposed || spec_.b_transposed)
      apart("c/engine", map_.c.engine, "transpose/evict", map_.transpose.evict);
  }

  [[nodiscard]] std::array<std::int64_t, 3> inside(std::int64_t depth) const {
    return extent_inside(map_, shape_, depth);
  }
  [[nodiscard]] bool partial() const { return inside(map_.c.psum_inside)[kK] < shape_.k; }

  // Bytes per partition of an operand's buffers.
  std::int64_t operand_bytes(bool a) const {
    const config::OperandMapping& o = a ? map_.a : map_.b;
    const GemmOperand operand = operand_of(spec_, a);
    const auto box = inside(o.inside);
    const std::int64_t width = box[a ? kM : kN], k = box[kK];
    std::int64_t bytes =
        o.buffers * ceil_divide(ceil_divide(k, pack_), kLanes) * operand.sbuf_bytes(width * pack_);
    if (operand.transpose) bytes += o.buffers * ceil_divide(width, kLanes) * operand.hbm_bytes(k);
    return bytes;
  }

  void space() {
    const bool a = map_.stationary == "a";
    const auto box = inside(map_.c.store_inside);
    const std::int64_t rows = ceil_divide(box[a ? kM : kN], last_step(a ? "m" : "n"));
    const std::int64_t width = box[a ? kN : kM];
    const std::int64_t a_bytes = map_.pool > 0 ? map_.pool : operand_bytes(true);
    const std::int64_t b_bytes = map_.pool > 0 ? 0 : operand_bytes(false);
    const std::int64_t c_bytes =
        rows *
        (map_.c.buffers * base::storage_bytes(spec_.out, width) +
         (partial() && map_.c.sums == "fp32" && spec_.out != base::DType::Fp32 ? width * 4 : 0));
    sbuf_ = a_bytes + b_bytes + c_bytes;
    const std::int64_t there = chip_.sbuf.usable_per_partition.count();
    if (sbuf_ > there) {
      const char* const largest = a_bytes >= b_bytes && a_bytes >= c_bytes ? "a"
                                  : b_bytes >= c_bytes                     ? "b"
                                                                           : "c";
      wrong(
          map_.pool > 0 && largest[0] != 'c' ? std::string("pool")
                                             : fmt::format("{}/buffers", largest),
          fmt::format("SBUF needs {} bytes per partition (A {}, B {}, C {}); {} has {}. Load less "
                      "at once (inside) or use fewer buffers",
                      sbuf_, a_bytes, b_bytes, c_bytes, chip_.name, there));
    }
    const auto group = inside(map_.c.psum_inside);
    const std::int64_t tiles =
        ceil_divide(group[kM], last_step("m")) * ceil_divide(group[kN], last_step("n"));
    banks_ = tiles * map_.c.psum_buffers;
    if (spec_.a_transposed || spec_.b_transposed) banks_ += map_.transpose.psum_buffers;
    if (banks_ > chip_.psum.banks)
      wrong(
          "c/psum_buffers",
          fmt::format("PSUM needs {} banks ({} tiles x {} buffers{}); {} has {}. Accumulate fewer "
                      "tiles at once (psum_inside) or use fewer buffers",
                      banks_, tiles, map_.c.psum_buffers,
                      spec_.a_transposed || spec_.b_transposed ? " + transposes" : "", chip_.name,
                      chip_.psum.banks));
  }

  const KernelSpec& spec_;
  const config::ChipSpec& chip_;
  const config::MappingSpec& mapping_;
  const config::LoopMapping& map_;
  GemmShape shape_;
  std::int64_t pack_;
  std::int64_t sbuf_ = 0, banks_ = 0;
  base::Problems problems_;
};

std::string plural(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string loads_in_words(const char* name, const config::OperandMapping& o, bool pool) {
  return fmt::format("{} loaded inside {} by {} in transfers of {} k x {}{}", name,
                     plural(o.inside, "loop"), o.engine, o.transfer_k, o.transfer_width,
                     pool ? std::string() : ", " + plural(o.buffers, "buffer"));
}

}  // namespace

models::TileProgram compile_loops(const KernelSpec& spec, const config::ChipSpec& chip,
                                  const config::MappingSpec& mapping) {
  const std::vector<GemmShape> shapes =
      split_shapes(spec, mapping.loops.split, mapping.file + ": /loops/split");
  LoopCheck check(spec, chip, mapping, shapes);
  check.run();
  models::TileProgram program;
  program.operands = {
      {"a", operand_of(spec, true).hbm_bytes(spec.m * spec.k * spec.batch), spec.a_weight},
      {"b", operand_of(spec, false).hbm_bytes(spec.k * spec.n * spec.batch), spec.b_weight},
      {"c", base::storage_bytes(spec.out, spec.m * spec.n * spec.batch), false}};
  program.cores.resize(shapes.size());
  for (std::size_t c = 0; c < shapes.size(); ++c) {
    const GemmShape& shape = shapes[c];
    if (c > 0 && shape == shapes[c - 1])
      program.cores[c] = program.cores[c - 1];
    else if (shape.m * shape.n * shape.batch > 0)
      LoopCore(spec, chip, mapping.loops, program, program.cores[c]).write(shape);
  }
  program.sbuf_bytes_per_partition = check.sbuf();
  program.psum_banks = check.banks();
  if (const std::string stuck = deadlock_of(program); !stuck.empty())
    throw base::UserError(mapping.file + ": /loops",
                          fmt::format("the kernel would never end: {}. More buffers, or transposes "
                                      "less far ahead, can mend it",
                                      stuck));
  return program;
}

std::string describe_loops(const KernelSpec& spec, const config::ChipSpec&,
                           const config::MappingSpec& mapping) {
  const config::LoopMapping& map = mapping.loops;
  std::string text = fmt::format("{}: loops", spec.label());
  for (const config::LoopLevel& l : map.loops) text += fmt::format(" {} by {}", l.over, l.step);
  text += fmt::format("; {} stationary; {}; {}", map.stationary == "a" ? "A" : "B",
                      loads_in_words("A", map.a, map.pool > 0),
                      loads_in_words("B", map.b, map.pool > 0));
  text += fmt::format(
      "; accumulators opened inside {}, {}, emptied by {}; stores inside {} in rows of {}, {}",
      plural(map.c.psum_inside, "loop"), plural(map.c.psum_buffers, "buffer"), map.c.evict,
      plural(map.c.store_inside, "loop"), map.c.store_width, plural(map.c.buffers, "buffer"));
  if (map.pool > 0) text += fmt::format("; A and B share {} bytes of SBUF per partition", map.pool);
  if (spec.a_transposed || spec.b_transposed)
    text += fmt::format("; transposed {} matmuls ahead, copied by {}", map.transpose.ahead,
                        map.transpose.evict);
  return text;
}

}  // namespace trn3sim::compile
