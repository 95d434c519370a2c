// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_core.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::compile {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

namespace {
constexpr std::int64_t kLanes = 128;
}  // namespace

void GemmCore::write(const GemmShape& shape) {
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
  if (prepared()) {
    write_prepared(shape.batch);
  } else {
    each(Engine::Tensor, [&](const Block& b) {
      build_.runs(Engine::Tensor, b.subs, [&](const SubBlock& s) { multiply(s, {}); });
    });
    for (const Engine engine : {Engine::Scalar, Engine::Vector}) {
      each(engine, [&](const Block& b) {
        build_.runs(engine, b.subs, [&](const SubBlock& s) { evict_rows(engine, s); });
      });
    }
  }
  each(Engine::Gpsimd, [&](const Block& b) {
    build_.runs(Engine::Gpsimd, b.subs, [&](const SubBlock& s) { store(s); });
  });
}

void GemmCore::evict_rows(Engine engine, const SubBlock& sub) {
  build_.runs(engine, rows_of(sub), [&](const Row& row) {
    if (!eviction_.staged()) return copy_out(engine, engine == Engine::Scalar ? 0 : 1, row);
    if (engine == Engine::Vector) return stage_vector(row);
    if (!eviction_.scalar.empty()) stage_scalar(row);
  });
}

// PSUM tiles of a sub-block that go to one eviction path.
std::int64_t GemmCore::tiles_of(const SubBlock& sub, std::size_t path) const {
  std::int64_t count = 0;
  for (const Row& row : rows_of(sub)) {
    count += eviction_.staged() ? (path == 0 ? static_cast<std::int64_t>(row.moving.size()) : 0)
                                : row.tiles_of(path);
  }
  return count;
}

void GemmCore::make_semaphores() {
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
    psum_free_[path] = build_.semaphore((spec_.double_accumulators ? 2 : 1) * most);
    out_full_[path] = build_.semaphore();
    out_free_[path] = build_.semaphore(map_.output_ring);
  }
  for (const bool outer : {false, true}) {
    const GemmOperand& o = outer ? outer_operand_ : inner_operand_;
    if (!o.prepared()) continue;
    raw_full_[outer] = build_.semaphore();
    raw_free_[outer] = build_.semaphore(map_.raw_ring);
    if (!o.transpose || !o.convert) continue;
    middle_full_[outer] = build_.semaphore();
    middle_free_[outer] = build_.semaphore(2);
  }
  if (outer_operand_.transpose || inner_operand_.transpose) {
    transposed_full_ = build_.semaphore();
    transposed_free_ = build_.semaphore(map_.transpose_banks);
  }
  if (!eviction_.scalar.empty()) mid_full_ = build_.semaphore();
  if (!eviction_.extras.empty()) {
    extra_full_ = build_.semaphore();
    extra_free_ = build_.semaphore(map_.extra_ring);
  }
}

DmaTransfer GemmCore::panel(bool outer, std::int64_t k, std::int64_t width) const {
  DmaTransfer t;
  const bool is_a = outer == (map_.stationary_a == map_.outer_stationary);
  t.operand = is_a ? kA : kB;
  const GemmOperand& o = outer ? outer_operand_ : inner_operand_;
  if (o.transpose) {
    t.rows = static_cast<std::int32_t>(width);
    t.row_bytes = static_cast<std::int32_t>(o.hbm_bytes(k));
  } else {
    const std::int64_t together =
        rows_together(width, is_a ? spec_.m : spec_.n, map_.chunk_tiles, k, pack_);
    t.rows = static_cast<std::int32_t>(ceil_divide(k, pack_) / together);
    t.row_bytes = static_cast<std::int32_t>(o.hbm_bytes(width * pack_) * together);
  }
  t.scale_bytes = static_cast<std::int32_t>(o.scale_bytes(k * width));
  t.queue = outer ? kOuterQueue : kInnerQueue;
  add_signal(t, o.prepared() ? raw_full_[outer] : outer ? outer_full_ : inner_full_);
  return t;
}

void GemmCore::load(const Block& b) {
  build_.runs(Engine::Sync, chunks_, [&](std::int64_t rows) {
    if (b.load_outer) {
      build_.start(Engine::Sync, panel(true, rows, b.outer),
                   {outer_operand_.prepared() ? raw_free_[1] : outer_free_});
    }
    build_.start(Engine::Sync, panel(false, rows, b.inner),
                 {inner_operand_.prepared() ? raw_free_[0] : inner_free_});
  });
  if (eviction_.extras.empty()) return;
  build_.runs(Engine::Sync, b.subs, [&](const SubBlock& sub) {
    build_.runs(Engine::Sync, rows_of(sub), [&](const Row& row) { load_extras(row); });
  });
}

void GemmCore::load_extras(const Row& row) {
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

Instruction GemmCore::array_op(Opcode op, std::int64_t rows, std::int64_t columns,
                               std::int64_t elements) const {
  Instruction i;
  i.op = op;
  i.dtype = spec_.in;
  if (spec_.sparse_block > 0) {
    i.sparsity = static_cast<std::int8_t>(std::max(outer_operand_.block / outer_operand_.kept,
                                                   inner_operand_.block / inner_operand_.kept));
  }
  i.destination = op == Opcode::LoadStationary ? Space::Sbuf : Space::Psum;
  i.rows = static_cast<std::int16_t>(rows);
  i.columns = static_cast<std::int16_t>(columns);
  i.elements = static_cast<std::int32_t>(elements);
  return i;
}

void GemmCore::multiply(const SubBlock& sub,
                        const std::vector<std::vector<TransposeGroup>>& groups) {
  Instruction begin;
  for (std::size_t path = 0; path < 2; ++path) {
    if (const std::int64_t tiles = tiles_of(sub, path)) add_wait(begin, psum_free_[path], tiles);
  }
  build_.emit(Engine::Tensor, begin);
  // Without streaming a panel is one buffer: nothing is multiplied before all of it is there.
  const auto count = static_cast<std::int64_t>(chunks_.size());
  const bool whole =
      !spec_.streaming_loads && !prepared() && map_.outer_ring >= count && map_.inner_ring >= count;
  Instruction panels;
  if (sub.wait_outer && whole) add_wait(panels, outer_full_, count);
  if (sub.wait_inner && whole) add_wait(panels, inner_full_, count);
  if (panels.waits[0].count > 0) build_.emit(Engine::Tensor, panels);
  const bool wait_outer = sub.wait_outer && !whole;
  const bool wait_inner = sub.wait_inner && !whole;
  struct Chunk {
    std::int64_t rows;
    bool done;
    std::vector<TransposeGroup> groups;
    bool operator==(const Chunk&) const = default;
  };
  std::vector<Chunk> chunks;
  for (const std::int64_t rows : chunks_) {
    chunks.push_back({rows, false, {}});
    if (!groups.empty()) chunks.back().groups = groups[chunks.size() - 1];
  }
  chunks.back().done = true;
  build_.runs(Engine::Tensor, chunks, [&](const Chunk& c) {
    if (wait_outer || wait_inner) {
      Instruction wait;
      if (wait_outer) add_wait(wait, outer_full_);
      if (wait_inner) add_wait(wait, inner_full_);
      build_.emit(Engine::Tensor, wait);
    }
    multiply_chunk(sub, c.rows, c.done, c.groups);
  });
}

// `done`: the last chunk, which completes the tiles.
void GemmCore::multiply_chunk(const SubBlock& sub, std::int64_t k_rows, bool done,
                              const std::vector<TransposeGroup>& groups) {
  struct Step {
    Row row;
    bool done, last;
    std::int64_t index;  // 0 if there is nothing to transpose
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;
  for (const Row& row : rows_of(sub)) {
    steps.push_back({row, done, false, 0});
    if (!done) steps.back().row.parity = 0;
  }
  steps.back().last = sub.free_outer || sub.free_inner;
  struct KTile {
    std::int64_t rows;
    bool last;
    std::vector<TransposeGroup> groups;
    bool operator==(const KTile&) const = default;
  };
  const Sizes tiles = chop(k_rows, kLanes * pack_);
  if (!groups.empty()) {
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i].index = static_cast<std::int64_t>(i);
  }
  build_.runs(Engine::Tensor, steps, [&](const Step& step) {
    std::vector<KTile> passes;
    for (const std::int64_t rows : tiles) {
      passes.push_back({rows, false, {}});
      if (groups.empty()) continue;
      const std::size_t index =
          static_cast<std::size_t>(step.index) * tiles.size() + passes.size() - 1;
      passes.back().groups = slice(groups, index, steps.size() * tiles.size());
    }
    passes.back().last = step.done || step.last;
    build_.runs(Engine::Tensor, passes, [&](const KTile& pass) {
      prepare_tensor(pass.groups);
      multiply_tiles(sub, step.row, pass.rows, pass.last && step.done, pass.last && step.last);
    });
  });
}

// One stationary tile against the moving tiles. The stationary chunk is dead when its last tile
// is in the array, the moving chunk when its last column has passed.
void GemmCore::multiply_tiles(const SubBlock& sub, const Row& row, std::int64_t k_rows, bool done,
                              bool free) {
  const bool free_stationary = free && (map_.outer_stationary ? sub.free_outer : sub.free_inner);
  const bool free_moving = free && (map_.outer_stationary ? sub.free_inner : sub.free_outer);
  Instruction weights = array_op(Opcode::LoadStationary, k_rows, row.stationary, row.stationary);
  weights.dtype = map_.outer_stationary ? outer_operand_.array : inner_operand_.array;
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

}  // namespace trn3sim::compile
