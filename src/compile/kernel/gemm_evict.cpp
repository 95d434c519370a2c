// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/gemm_core.hpp"

namespace trn3sim::compile {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

Instruction GemmCore::evict(Opcode op, Space source, const Row& row, std::int64_t width) const {
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
void GemmCore::copy_out(Engine engine, std::size_t path, const Row& row) {
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
void GemmCore::stage_scalar(const Row& row) {
  for (const std::int64_t width : row.moving) {
    for (std::size_t p = 0; p < eviction_.scalar.size(); ++p) {
      Instruction i = evict(eviction_.scalar[p].op, p == 0 ? Space::Psum : Space::Sbuf, row,
                            pass_width(p, width));
      i.transcendental = eviction_.scalar[p].transcendental;
      i.first_of_chain = p > 0;
      if (p == 0) add_wait(i, psum_full_[0]);
      if (p + 1 == eviction_.scalar.size()) add_signal(i, mid_full_);
      build_.emit(Engine::Scalar, i);
    }
  }
}

void GemmCore::stage_vector(const Row& row) {
  const std::size_t first = eviction_.scalar.size();
  for (std::size_t t = 0; t < row.moving.size(); ++t) {
    for (std::size_t p = 0; p < eviction_.vector.size(); ++p) {
      const Opcode op = eviction_.vector[p].op;
      const bool psum = p == 0 && op != Opcode::QuantizeMx;
      Instruction i =
          evict(op, psum ? Space::Psum : Space::Sbuf, row, pass_width(first + p, row.moving[t]));
      i.first_of_chain = p > 0;
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

std::int64_t GemmCore::pass_width(std::size_t pass, std::int64_t width) const {
  return std::max<std::int64_t>(
      1, scaled(width, eviction_.pass_width_num[pass], eviction_.pass_width_den[pass]));
}

void GemmCore::store(const SubBlock& sub) {
  const std::vector<Row> rows = rows_of(sub);
  if (map_.merge_stores) {
    store_rows(rows);
  } else {
    build_.runs(Engine::Gpsimd, rows, [&](const Row& row) { store_rows({row}); });
  }
}

// One store per output tensor. The extra operands of the rows are dead once they are stored.
void GemmCore::store_rows(const std::vector<Row>& rows) {
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
    t.row_bytes = static_cast<std::int32_t>(
        base::storage_bytes(spec_.out, scaled(sum(rows.front().moving), tensor.num, tensor.den)));
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

}  // namespace trn3sim::compile
