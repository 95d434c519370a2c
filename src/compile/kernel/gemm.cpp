// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The tile program of a GEMM. Streams: SyncE loads, TensorE multiplies, ScalarE and VectorE evict,
// GpSimdE starts the stores (so that a store that waits does not hold up loads).
#include <algorithm>
#include <array>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"

#include "compile/kernel/gemm_blocks.hpp"
#include "compile/kernel/gemm_mapping.hpp"
#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

constexpr std::int64_t kLanes = 128;
enum Queue : std::int16_t { kOuterQueue, kInnerQueue, kExtraQueue, kStoreQueue };
enum OperandIndex : std::int32_t { kA, kB, kC, kFirstExtra };

class GemmCore {
 public:
  GemmCore(const KernelSpec& spec, const config::ChipSpec& chip, const GemmMapping& map,
           models::TileProgram& program, models::CoreProgram& core)
      : spec_(spec), chip_(chip), map_(map), eviction_(eviction_of(spec)), build_(program, core) {
    pack_ = contraction_pack(spec.in, chip);
  }

  void write(const GemmShape& shape) {
    chunks_ = chop(shape.k, map_.chunk_tiles * kLanes * pack_);
    outer_steps_ = plan_blocks(shape, map_, chip_);
    make_semaphores();
    const auto each = [&](Engine engine, auto&& leaf) {
      build_.loop(engine, shape.batch, [&] {
        build_.runs(engine, outer_steps_,
                    [&](const std::vector<Block>& blocks) { build_.runs(engine, blocks, leaf); });
      });
    };
    each(Engine::Sync, [&](const Block& b) { load(b); });
    each(Engine::Tensor, [&](const Block& b) {
      build_.runs(Engine::Tensor, b.subs, [&](const SubBlock& s) { multiply(s); });
    });
    const auto rows = [&](Engine engine, auto&& leaf) {
      each(engine, [&](const Block& b) {
        build_.runs(engine, b.subs,
                    [&](const SubBlock& s) { build_.runs(engine, rows_of(s), leaf); });
      });
    };
    if (eviction_.staged()) {
      if (!eviction_.scalar.empty()) rows(Engine::Scalar, [&](const Row& r) { stage_scalar(r); });
      rows(Engine::Vector, [&](const Row& r) { stage_vector(r); });
    } else {
      rows(Engine::Scalar, [&](const Row& r) { copy_out(Engine::Scalar, 0, r); });
      rows(Engine::Vector, [&](const Row& r) { copy_out(Engine::Vector, 1, r); });
    }
    each(Engine::Gpsimd, [&](const Block& b) {
      build_.runs(Engine::Gpsimd, b.subs, [&](const SubBlock& s) { store(s); });
    });
  }

 private:
  // PSUM tiles of a sub-block that go to one eviction path.
  [[nodiscard]] std::int64_t tiles_of(const SubBlock& sub, std::size_t path) const {
    std::int64_t count = 0;
    for (const Row& row : rows_of(sub)) {
      count += eviction_.staged() ? (path == 0 ? static_cast<std::int64_t>(row.moving.size()) : 0)
                                  : row.tiles_of(path);
    }
    return count;
  }

  void make_semaphores() {
    outer_full_ = build_.semaphore();
    outer_free_ = build_.semaphore(map_.outer_ring);
    inner_full_ = build_.semaphore();
    inner_free_ = build_.semaphore(map_.inner_ring);
    for (std::size_t path = 0; path < 2; ++path) {
      std::int64_t most = 0;
      for (const auto& blocks : outer_steps_) {
        for (const Block& b : blocks) {
          for (const SubBlock& s : b.subs) most = std::max(most, tiles_of(s, path));
        }
      }
      if (most == 0) continue;
      psum_full_[path] = build_.semaphore();
      psum_free_[path] = build_.semaphore(2 * most);
      out_full_[path] = build_.semaphore();
      out_free_[path] = build_.semaphore(map_.output_ring);
    }
    if (!eviction_.scalar.empty()) mid_full_ = build_.semaphore();
    if (!eviction_.extras.empty()) {
      extra_full_ = build_.semaphore();
      extra_free_ = build_.semaphore(map_.extra_ring);
    }
  }

  [[nodiscard]] DmaTransfer panel(bool outer, std::int64_t k, std::int64_t width) const {
    DmaTransfer t;
    const bool is_a = outer == (map_.stationary_a == map_.outer_stationary);
    t.operand = is_a ? kA : kB;
    const std::int64_t together =
        rows_together(width, is_a ? spec_.m : spec_.n, map_.chunk_tiles, k, pack_);
    t.rows = static_cast<std::int32_t>(ceil_divide(k, pack_) / together);
    t.row_bytes =
        static_cast<std::int32_t>(base::storage_bytes(spec_.in, width * pack_) * together);
    t.queue = outer ? kOuterQueue : kInnerQueue;
    add_signal(t, outer ? outer_full_ : inner_full_);
    return t;
  }

  void load(const Block& b) {
    build_.runs(Engine::Sync, chunks_, [&](std::int64_t rows) {
      if (b.load_outer) build_.start(Engine::Sync, panel(true, rows, b.outer), {outer_free_});
      build_.start(Engine::Sync, panel(false, rows, b.inner), {inner_free_});
    });
    if (eviction_.extras.empty()) return;
    build_.runs(Engine::Sync, b.subs, [&](const SubBlock& sub) {
      build_.runs(Engine::Sync, rows_of(sub), [&](const Row& row) { load_extras(row); });
    });
  }

  void load_extras(const Row& row) {
    for (std::size_t i = 0; i < eviction_.extras.size(); ++i) {
      const auto& x = eviction_.extras[i];
      DmaTransfer t;
      t.operand = spec_.accumulate && i == 0
                      ? std::int32_t{kC}
                      : kFirstExtra + static_cast<std::int32_t>(i) - (spec_.accumulate ? 1 : 0);
      t.rows = static_cast<std::int32_t>(row.stationary);
      t.row_bytes = static_cast<std::int32_t>(
          base::storage_bytes(x.dtype, scaled(sum(row.moving), x.num, x.den)));
      t.queue = kExtraQueue;
      if (i + 1 == eviction_.extras.size()) add_signal(t, extra_full_);
      build_.start(Engine::Sync, t, {i == 0 ? extra_free_ : Semaphore{}});
    }
  }

  [[nodiscard]] Instruction array_op(Opcode op, std::int64_t rows, std::int64_t columns,
                                     std::int64_t elements) const {
    Instruction i;
    i.op = op;
    i.dtype = spec_.in;
    i.destination = op == Opcode::LoadStationary ? Space::Sbuf : Space::Psum;
    i.rows = static_cast<std::int16_t>(rows);
    i.columns = static_cast<std::int16_t>(columns);
    i.elements = static_cast<std::int32_t>(elements);
    return i;
  }

  void multiply(const SubBlock& sub) {
    Instruction begin;
    for (std::size_t path = 0; path < 2; ++path) {
      if (const std::int64_t tiles = tiles_of(sub, path)) add_wait(begin, psum_free_[path], tiles);
    }
    build_.emit(Engine::Tensor, begin);
    struct Chunk {
      std::int64_t rows;
      bool done;
      bool operator==(const Chunk&) const = default;
    };
    std::vector<Chunk> chunks;
    for (const std::int64_t rows : chunks_) chunks.push_back({rows, false});
    chunks.back().done = true;
    build_.runs(Engine::Tensor, chunks, [&](const Chunk& c) {
      if (sub.wait_outer || sub.wait_inner) {
        Instruction wait;
        if (sub.wait_outer) add_wait(wait, outer_full_);
        if (sub.wait_inner) add_wait(wait, inner_full_);
        build_.emit(Engine::Tensor, wait);
      }
      multiply_chunk(sub, c.rows, c.done);
    });
  }

  // `done`: the last chunk, which completes the tiles.
  void multiply_chunk(const SubBlock& sub, std::int64_t k_rows, bool done) {
    struct Step {
      Row row;
      bool done, last;
      bool operator==(const Step&) const = default;
    };
    std::vector<Step> steps;
    for (const Row& row : rows_of(sub)) {
      steps.push_back({row, done, false});
      if (!done) steps.back().row.parity = 0;
    }
    steps.back().last = sub.free_outer || sub.free_inner;
    struct Pass {
      std::int64_t rows;
      bool last;
      bool operator==(const Pass&) const = default;
    };
    build_.runs(Engine::Tensor, steps, [&](const Step& step) {
      std::vector<Pass> passes;
      for (const std::int64_t rows : chop(k_rows, kLanes * pack_)) passes.push_back({rows, false});
      passes.back().last = step.done || step.last;
      build_.runs(Engine::Tensor, passes, [&](const Pass& pass) {
        multiply_tiles(sub, step.row, pass.rows, pass.last && step.done, pass.last && step.last);
      });
    });
  }

  // One stationary tile against the moving tiles. The stationary chunk is dead when its last tile
  // is in the array, the moving chunk when its last column has passed.
  void multiply_tiles(const SubBlock& sub, const Row& row, std::int64_t k_rows, bool done,
                      bool free) {
    const bool free_stationary = free && (map_.outer_stationary ? sub.free_outer : sub.free_inner);
    const bool free_moving = free && (map_.outer_stationary ? sub.free_inner : sub.free_outer);
    Instruction weights = array_op(Opcode::LoadStationary, k_rows, row.stationary, row.stationary);
    if (free_stationary) add_signal(weights, map_.outer_stationary ? outer_free_ : inner_free_);
    build_.emit(Engine::Tensor, weights);
    for (std::size_t i = 0; i < row.moving.size(); ++i) {
      Instruction mm = array_op(Opcode::MultiplyMoving, k_rows, row.stationary, row.moving[i]);
      if (done) add_signal(mm, psum_full_[eviction_.staged() ? 0 : row.evictor(i)]);
      if (free_moving && i + 1 == row.moving.size()) {
        add_signal(mm, map_.outer_stationary ? inner_free_ : outer_free_);
      }
      build_.emit(Engine::Tensor, mm);
    }
  }

  [[nodiscard]] Instruction evict(Opcode op, Space source, const Row& row,
                                  std::int64_t width) const {
    Instruction i;
    i.op = op;
    i.source = source;
    i.dtype = source == Space::Psum || spec_.out == base::DType::Fp32 ? base::DType::Fp32
                                                                      : base::DType::Bf16;
    i.two_inputs_sbuf = source == Space::Sbuf && op == Opcode::TensorTensor;
    i.rows = static_cast<std::int16_t>(row.stationary);
    i.elements = static_cast<std::int32_t>(width);
    return i;
  }

  // Results need no epilogue: two engines copy alternate tiles.
  void copy_out(Engine engine, std::size_t path, const Row& row) {
    const std::int64_t tiles = row.tiles_of(path);
    std::int64_t done = 0;
    for (std::size_t t = 0; t < row.moving.size(); ++t) {
      if (row.evictor(t) != path) continue;
      Instruction i = evict(Opcode::TensorCopy, Space::Psum, row, row.moving[t]);
      add_wait(i, psum_full_[path]);
      if (done == 0) add_wait(i, out_free_[path]);
      add_signal(i, psum_free_[path]);
      if (++done == tiles) add_signal(i, out_full_[path]);
      build_.emit(engine, i);
    }
  }

  // ScalarE's passes of an epilogue. Its SBUF results need no `free`: there is one buffer per PSUM
  // bank, and VectorE frees the bank when it has used both.
  void stage_scalar(const Row& row) {
    for (const std::int64_t width : row.moving) {
      for (std::size_t p = 0; p < eviction_.scalar.size(); ++p) {
        Instruction i = evict(eviction_.scalar[p].op, p == 0 ? Space::Psum : Space::Sbuf, row,
                              pass_width(p, width));
        i.transcendental = eviction_.scalar[p].transcendental;
        if (p == 0) add_wait(i, psum_full_[0]);
        if (p + 1 == eviction_.scalar.size()) add_signal(i, mid_full_);
        build_.emit(Engine::Scalar, i);
      }
    }
  }

  void stage_vector(const Row& row) {
    const std::size_t first = eviction_.scalar.size();
    for (std::size_t t = 0; t < row.moving.size(); ++t) {
      for (std::size_t p = 0; p < eviction_.vector.size(); ++p) {
        const Opcode op = eviction_.vector[p].op;
        const bool psum = p == 0 && op != Opcode::QuantizeMx;
        Instruction i =
            evict(op, psum ? Space::Psum : Space::Sbuf, row, pass_width(first + p, row.moving[t]));
        if (p == 0) {
          add_wait(i, mid_full_ ? mid_full_ : psum_full_[0]);
          if (t == 0) {
            add_wait(i, out_free_[0]);
            add_wait(i, extra_full_);
          }
        }
        if (p + 1 == eviction_.vector.size()) {
          add_signal(i, psum_free_[0]);
          if (t + 1 == row.moving.size()) add_signal(i, out_full_[0]);
        }
        build_.emit(Engine::Vector, i);
      }
    }
  }

  [[nodiscard]] std::int64_t pass_width(std::size_t pass, std::int64_t width) const {
    return std::max<std::int64_t>(
        1, scaled(width, eviction_.pass_width_num[pass], eviction_.pass_width_den[pass]));
  }

  void store(const SubBlock& sub) {
    const std::vector<Row> rows = rows_of(sub);
    if (map_.merge_stores) {
      store_rows(rows);
    } else {
      build_.runs(Engine::Gpsimd, rows, [&](const Row& row) { store_rows({row}); });
    }
  }

  // One store per output tensor. The extra operands of the rows are dead once they are stored.
  void store_rows(const std::vector<Row>& rows) {
    std::array<std::int64_t, 2> used{};  // rows by eviction path
    std::int64_t lanes = 0;
    for (const Row& row : rows) {
      lanes += row.stationary;
      for (std::size_t path = 0; path < 2; ++path) {
        used[path] += eviction_.staged() ? (path == 0 ? 1 : 0) : (row.tiles_of(path) > 0 ? 1 : 0);
      }
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    for (std::size_t i = 0; i < eviction_.stores.size(); ++i) {
      const Eviction::Store& tensor = eviction_.stores[i];
      DmaTransfer t;
      t.direction = DmaDirection::SbufToHbm;
      t.operand = kC;
      t.rows = static_cast<std::int32_t>(lanes);
      t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(
          spec_.out, scaled(sum(rows.front().moving), tensor.num, tensor.den)));
      t.queue = kStoreQueue;
      std::vector<Wait> waits;
      for (std::size_t path = 0; path < 2; ++path) {
        if (used[path] == 0) continue;
        if (i == 0) waits.push_back({out_full_[path], used[path]});
        if (i + 1 == eviction_.stores.size()) add_signal(t, out_free_[path], used[path]);
      }
      if (i + 1 == eviction_.stores.size()) add_signal(t, extra_free_, count);
      build_.start(Engine::Gpsimd, t, waits);
    }
  }

  const KernelSpec& spec_;
  const config::ChipSpec& chip_;
  const GemmMapping& map_;
  Eviction eviction_;
  CoreBuilder build_;
  std::int64_t pack_ = 1;
  Sizes chunks_;  // of the contraction
  std::vector<std::vector<Block>> outer_steps_;
  Semaphore outer_full_, outer_free_, inner_full_, inner_free_, mid_full_, extra_full_, extra_free_;
  std::array<Semaphore, 2> psum_full_, psum_free_, out_full_, out_free_;
};

const char* name_of(GemmSplit split) {
  switch (split) {
    case GemmSplit::None:
      return "one core";
    case GemmSplit::M:
      return "cores along m";
    case GemmSplit::N:
      return "cores along n";
    case GemmSplit::Batch:
      return "cores along the batch";
  }
  return "";
}

}  // namespace

models::TileProgram compile_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  const GemmMapping map = map_gemm(spec, chip);
  const Eviction eviction = eviction_of(spec);
  models::TileProgram program;
  program.operands = {
      {"a", base::storage_bytes(spec.in, spec.m * spec.k * spec.batch), spec.a_weight},
      {"b", base::storage_bytes(spec.in, spec.k * spec.n * spec.batch), spec.b_weight},
      {"c", eviction.stored_bytes(spec.out, spec.m * spec.n * spec.batch), false}};
  for (std::size_t i = spec.accumulate ? 1 : 0; i < eviction.extras.size(); ++i) {
    const auto& x = eviction.extras[i];
    program.operands.push_back(
        {fmt::format("epilogue{}", i),
         base::storage_bytes(x.dtype, scaled(spec.m * spec.n * spec.batch, x.num, x.den)), false});
  }
  program.cores.resize(map.shapes.size());
  for (std::size_t c = 0; c < map.shapes.size(); ++c) {
    const GemmShape& shape = map.shapes[c];
    if (c > 0 && shape == map.shapes[c - 1]) {
      program.cores[c] = program.cores[c - 1];
    } else if (shape.m * shape.n * shape.batch > 0) {
      GemmCore(spec, chip, map, program, program.cores[c]).write(shape);
    }
  }
  program.sbuf_bytes_per_partition = map.sbuf_bytes_per_partition;
  program.psum_banks = std::min(chip.psum.banks, 2 * map.sub_stationary * map.sub_moving);
  return program;
}

std::string describe_gemm(const KernelSpec& spec, const config::ChipSpec& chip) {
  const GemmMapping map = map_gemm(spec, chip);
  const auto ns = [](double t) {
    return base::format_time(base::nanoseconds(static_cast<std::int64_t>(t)));
  };
  const bool outer_a = map.stationary_a == map.outer_stationary;
  return fmt::format(
      "{}: {}; {} stationary; blocks of {} {} of {} {}, panels of {} {} of {} in chunks of {} k; "
      "PSUM {}x{} tiles; SBUF {} of {} B per partition; HBM traffic {}; "
      "predicted tensor {}, DMA {}, eviction {}, total {}",
      spec.label(), name_of(map.split), map.stationary_a ? "A" : "B", map.outer_block,
      outer_a ? "m" : "n", outer_a ? "A" : "B", map.outer_resident ? "resident" : "streamed",
      map.inner_block, outer_a ? "n" : "m", outer_a ? "B" : "A",
      map.chunk_tiles * kLanes * contraction_pack(spec.in, chip), map.sub_stationary,
      map.sub_moving, map.sbuf_bytes_per_partition, chip.sbuf.usable_per_partition.count(),
      base::format_bytes(base::Bytes(map.traffic_bytes)), ns(map.tensor_ns), ns(map.dma_ns),
      ns(map.evict_ns), ns(map.total_ns));
}

}  // namespace trn3sim::compile
