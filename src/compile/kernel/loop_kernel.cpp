// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/loop_kernel.hpp"

#include <algorithm>
#include <numeric>

namespace trn3sim::compile {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

namespace {

constexpr std::int64_t kLanes = 128;

Engine engine_of(const std::string& name) {
  if (name == "sync") return Engine::Sync;
  if (name == "gpsimd") return Engine::Gpsimd;
  return name == "scalar" ? Engine::Scalar : Engine::Vector;
}

Instruction instruction(Opcode op, base::DType dtype, std::int64_t rows, std::int64_t elements) {
  Instruction i;
  i.op = op;
  i.dtype = dtype;
  i.rows = static_cast<std::int16_t>(rows);
  i.elements = static_cast<std::int32_t>(elements);
  return i;
}

}  // namespace

std::int64_t transfer_bytes(const GemmOperand& operand, const config::OperandMapping& map,
                            std::int64_t pack) {
  return ceil_divide(ceil_divide(map.transfer_k, pack), kLanes) *
         operand.sbuf_bytes(map.transfer_width * pack);
}

LoopCore::LoopCore(const KernelSpec& spec, const config::ChipSpec& chip,
                   const config::LoopMapping& map, models::TileProgram& program,
                   models::CoreProgram& core)
    : spec_(spec),
      chip_(chip),
      map_(map),
      build_(program, core),
      pack_(contraction_pack(spec, chip)),
      stationary_a_(map.stationary == "a") {
  sides_[0].kind = kLoadA;
  sides_[0].free = kM;
  sides_[0].map = &map.a;
  sides_[1].kind = kLoadB;
  sides_[1].free = kN;
  sides_[1].map = &map.b;
  for (Side& s : sides_) s.operand = operand_of(spec, s.kind == kLoadA);
}

Engine LoopCore::evictor(std::size_t path) const {
  if (map_.c.evict == "both") return path == 0 ? Engine::Vector : Engine::Scalar;
  return engine_of(map_.c.evict);
}

void LoopCore::write(const GemmShape& shape) {
  nest_ = make_nest(map_, shape);
  for (Side& s : sides_) s.plan = plan_loads(nest_, s.kind, *s.map);
  tiles_ = plan_accumulations(nest_, shape.k);
  opens_.assign(nest_.matmuls.size(), -1);
  closes_.assign(nest_.matmuls.size(), -1);
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    opens_[tiles_[t].first] = static_cast<std::int32_t>(t);
    closes_[tiles_[t].last] = static_cast<std::int32_t>(t);
  }
  make_semaphores();
  loads();
  matmuls();
  evict();
  store();
}

void LoopCore::make_semaphores() {
  for (Side& s : sides_) {
    for (std::int64_t q = 0; q < s.map->queues; ++q) s.loaded.push_back(build_.semaphore());
    s.room = build_.semaphore(s.map->buffers * s.plan.most());
    if (s.operand.transpose) s.ready = build_.semaphore();
    s.ready_room =
        s.operand.transpose ? build_.semaphore(s.map->buffers * most_squares(s)) : s.room;
  }
  if (map_.pool > 0) share_pool();
  if (sides_[0].operand.transpose || sides_[1].operand.transpose) {
    transposed_ = build_.semaphore();
    transposed_free_ = build_.semaphore(map_.transpose.psum_buffers);
  }
  // Tiles that accumulate at once, at the most.
  std::int64_t most = 0, here = 0;
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    const auto& region = nest_.region_of[kAccumulate];
    here = t > 0 && region[tiles_[t].first] == region[tiles_[t - 1].first] ? here + 1 : 1;
    most = std::max(most, here);
  }
  const std::int64_t banks = most * map_.c.psum_buffers;
  paths_ = map_.c.evict == "both" && banks > 1 && tiles_.size() > 1 ? 2 : 1;
  for (std::size_t p = 0; p < paths_; ++p) {
    psum_full_[p] = build_.semaphore();
    psum_free_[p] = build_.semaphore(paths_ == 1 ? banks : (banks + (p == 0 ? 1 : 0)) / 2);
    out_full_[p] = build_.semaphore();
    out_free_[p] = build_.semaphore(map_.c.buffers);
  }
}

// One semaphore counts the free bytes of a partition, in units that both operands' transfers are
// multiples of.
void LoopCore::share_pool() {
  std::array<std::int64_t, 2> bytes{};
  for (std::size_t i = 0; i < 2; ++i)
    bytes[i] = transfer_bytes(sides_[i].operand, *sides_[i].map, pack_);
  const std::int64_t unit = std::gcd(bytes[0], bytes[1]);
  const Semaphore pool = build_.semaphore(map_.pool / unit);
  for (std::size_t i = 0; i < 2; ++i) {
    sides_[i].tokens = bytes[i] / unit;
    sides_[i].room = sides_[i].ready_room = pool;
  }
}

// Squares of 128 x 128 that a region of a transposed operand has, at the most.
std::int64_t LoopCore::most_squares(const Side& s) const {
  std::int64_t most = 0, here = 0;
  for (std::size_t i = 0; i < nest_.matmuls.size(); ++i) {
    if (s.plan.first[i]) here = 0;
    if (s.plan.new_tile[i]) here += squares(s, i);
    most = std::max(most, here);
  }
  return most;
}

std::int64_t LoopCore::squares(const Side& s, std::size_t matmul) const {
  return ceil_divide(nest_.matmuls[matmul].size[s.free], kLanes);
}

void LoopCore::loads() {
  for (std::size_t i = 0; i < nest_.matmuls.size(); ++i)
    for (Side& s : sides_)
      if (s.plan.first[i]) load_region(s, i);
}

// All transfers of the region that begins with `matmul`, in the order of their first use.
void LoopCore::load_region(Side& s, std::size_t matmul) {
  const auto region = static_cast<std::size_t>(nest_.region_of[s.kind][matmul]);
  for (const LoadPlan::Transfer& part : s.plan.regions[region]) {
    DmaTransfer t;
    t.operand = s.kind == kLoadA ? 0 : 1;
    const GemmOperand& o = s.operand;
    t.rows = static_cast<std::int32_t>(o.transpose ? part.width : ceil_divide(part.k, pack_));
    t.row_bytes = static_cast<std::int32_t>(o.hbm_bytes(o.transpose ? part.k : part.width * pack_));
    t.scale_bytes = static_cast<std::int32_t>(o.scale_bytes(part.k * part.width));
    const std::int64_t ring = s.started++ % s.map->queues;
    t.queue = static_cast<std::int16_t>(s.map->queue + ring);
    add_signal(t, s.loaded[static_cast<std::size_t>(ring)]);
    build_.start(engine_of(s.map->engine), t, {{s.room, s.tokens}});
  }
}

void LoopCore::wait_for_loads(Side& s, std::int64_t count, Instruction& in) {
  const std::int64_t rings = s.map->queues;
  for (std::int64_t i = 0; i < std::min(count, rings); ++i) {
    const Semaphore ring = s.loaded[static_cast<std::size_t>((s.awaited + i) % rings)];
    const std::int64_t of_ring = (count - i + rings - 1) / rings;
    if (i == 0) {
      add_wait(in, ring, of_ring);
      continue;
    }
    Instruction wait;
    add_wait(wait, ring, of_ring);
    build_.emit(Engine::Tensor, wait);
  }
  s.awaited += count;
}

void LoopCore::matmuls() {
  const std::size_t count = nest_.matmuls.size();
  const auto ahead = static_cast<std::size_t>(map_.transpose.ahead);
  for (std::size_t i = 0; i < std::min(ahead, count); ++i) transpose_tiles(i);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) transpose_tiles(i + ahead);
    multiply(i);
  }
}

// Tiles of 128 x 128 at most, through PSUM.
void LoopCore::transpose_tiles(std::size_t matmul) {
  const Box& box = nest_.matmuls[matmul];
  for (Side& s : sides_) {
    if (!s.operand.transpose || !s.plan.new_tile[matmul]) continue;
    const std::int64_t width = box.size[s.free], k = box.size[kK];
    bool begun = false;
    for (std::int64_t w = 0; w < width; w += kLanes) {
      Instruction t = instruction(Opcode::Transpose, s.operand.hbm, std::min(kLanes, width - w),
                                  std::min(kLanes, k));
      t.destination = Space::Psum;
      if (!begun) wait_for_loads(s, s.plan.fresh[matmul], t);
      add_wait(t, transposed_free_);
      add_signal(t, transposed_);
      begun = true;
      if (w + kLanes >= width && s.plan.taken[matmul] > 0)
        add_signal(t, s.room, s.plan.taken[matmul]);
      build_.emit(Engine::Tensor, t);
    }
  }
}

// The stationary tile is dead once it is in the array, the moving one after the pass.
void LoopCore::multiply(std::size_t i) {
  const Box& box = nest_.matmuls[i];
  Side& stationary = sides_[stationary_a_ ? 0 : 1];
  Side& moving = sides_[stationary_a_ ? 1 : 0];
  const auto use = [&](Instruction& in, Side& s) {
    const bool transposed = s.operand.transpose;
    const std::int64_t freed =
        transposed ? (s.plan.dead_tile[i] ? squares(s, i) : 0) : std::int64_t{s.plan.freed[i]};
    if (!transposed)
      wait_for_loads(s, s.plan.fresh[i], in);
    else if (s.plan.new_tile[i])
      add_wait(in, s.ready, squares(s, i));
    if (freed > 0) add_signal(in, s.ready_room, freed * s.tokens);
  };
  const std::int64_t columns = box.size[stationary.free];
  Instruction weights =
      instruction(Opcode::LoadStationary, stationary.operand.array, box.size[kK], columns);
  weights.columns = static_cast<std::int16_t>(columns);
  use(weights, stationary);
  build_.emit(Engine::Tensor, weights);
  Instruction mm =
      instruction(Opcode::MultiplyMoving, spec_.in, box.size[kK], box.size[moving.free]);
  mm.columns = static_cast<std::int16_t>(columns);
  mm.destination = Space::Psum;
  use(mm, moving);
  if (opens_[i] >= 0) add_wait(mm, psum_free_[path_of(static_cast<std::size_t>(opens_[i]))]);
  if (closes_[i] >= 0) add_signal(mm, psum_full_[path_of(static_cast<std::size_t>(closes_[i]))]);
  build_.emit(Engine::Tensor, mm);
}

// The copies of a matmul's transposed tiles to SBUF.
void LoopCore::copy_transposed(std::size_t matmul) {
  const Box& box = nest_.matmuls[matmul];
  for (const Side& s : sides_) {
    if (!s.operand.transpose || !s.plan.new_tile[matmul]) continue;
    for (std::int64_t w = 0; w < box.size[s.free]; w += kLanes) {
      Instruction copy =
          instruction(Opcode::TensorCopy, s.operand.hbm, std::min(kLanes, box.size[kK]),
                      std::min(kLanes, box.size[s.free] - w));
      copy.source = Space::Psum;
      add_wait(copy, transposed_);
      add_wait(copy, s.ready_room);
      add_signal(copy, transposed_free_);
      add_signal(copy, s.ready);
      build_.emit(engine_of(map_.transpose.evict), copy);
    }
  }
}

// In the order in which TensorE makes things.
void LoopCore::evict() {
  std::array<std::int32_t, 2> opened{-1, -1};  // region of stores, by path
  const std::size_t count = nest_.matmuls.size();
  const auto ahead = static_cast<std::size_t>(map_.transpose.ahead);
  for (std::size_t i = 0; i < std::min(ahead, count); ++i) copy_transposed(i);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) copy_transposed(i + ahead);
    if (closes_[i] < 0) continue;
    const auto t = static_cast<std::size_t>(closes_[i]);
    const std::size_t path = path_of(t);
    const bool opens = tiles_[t].store != opened[path];
    opened[path] = tiles_[t].store;
    evict_tile(tiles_[t], path, opens);
  }
}

void LoopCore::evict_tile(const Accumulation& tile, std::size_t path, bool opens_store) {
  Instruction i =
      instruction(tile.adds ? Opcode::TensorTensor : Opcode::TensorCopy, base::DType::Fp32,
                  tile.box.size[stationary_a_ ? kM : kN], tile.box.size[stationary_a_ ? kN : kM]);
  i.source = Space::Psum;
  add_wait(i, psum_full_[path]);
  if (opens_store) add_wait(i, out_free_[path]);
  add_signal(i, psum_free_[path]);
  if (tile.final) add_signal(i, out_full_[path]);
  build_.emit(evictor(path), i);
}

}  // namespace trn3sim::compile
