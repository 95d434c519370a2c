// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/gemm_prepare.hpp"

#include <algorithm>

#include "compile/kernel/attention_plan.hpp"
#include "compile/kernel/gemm_core.hpp"

namespace trn3sim::compile {

using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

namespace {
constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kGroupTiles = 4;
}  // namespace

std::vector<PreparePart> parts_of(const Block& block, const Sizes& chunks, const GemmOperand& outer,
                                  const GemmOperand& inner) {
  std::vector<PreparePart> parts;
  for (const std::int64_t k : chunks) {
    for (const bool is_outer : {true, false}) {
      const GemmOperand& o = is_outer ? outer : inner;
      if (!o.prepared() || (is_outer && !block.load_outer)) continue;
      PreparePart part{is_outer, k, is_outer ? block.outer : block.inner, {}};
      if (o.transpose) {
        for (const std::int64_t rows : chop(part.width, kLanes)) {
          for (const std::int64_t columns : chop(k, kGroupTiles * kLanes)) {
            part.groups.push_back({is_outer, rows, columns, false, false});
          }
        }
        part.groups.front().first = part.groups.back().last = true;
      }
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::vector<PrepareSlot> spread(const std::vector<PreparePart>& parts, std::size_t subs,
                                std::size_t chunks, const GemmOperand& outer,
                                const GemmOperand& inner) {
  std::vector<PrepareSlot> slots(subs);
  std::vector<TransposeGroup> groups;
  for (const PreparePart& p : parts) groups.insert(groups.end(), p.groups.begin(), p.groups.end());
  const std::size_t cells = subs * chunks;
  for (std::size_t s = 0; s < subs; ++s) {
    if (groups.empty()) break;
    for (std::size_t c = 0; c < chunks; ++c)
      slots[s].groups.push_back(slice(groups, s * chunks + c, cells));
  }
  const std::size_t each = std::max<std::size_t>(1, (groups.size() + cells - 1) / cells);
  std::size_t passed = 0;  // groups
  for (std::size_t i = 0; i < parts.size(); ++i) {
    passed += parts[i].groups.size();
    if (!(parts[i].outer ? outer : inner).convert) continue;
    const std::size_t slot = passed > 0 ? (passed - 1) / each / chunks : i * subs / parts.size();
    slots[slot].converted.push_back(parts[i]);
  }
  return slots;
}

PrepareSlot streamed(const std::optional<Block>& next, const std::optional<Block>& current,
                     const Sizes& chunks, const GemmOperand& outer, const GemmOperand& inner) {
  PrepareSlot slot;
  const auto take = [&](const Block& block, const Sizes& ks) {
    for (const std::int64_t k : ks) {
      slot.groups.emplace_back();
      for (PreparePart& part : parts_of(block, {k}, outer, inner)) {
        slot.groups.back().insert(slot.groups.back().end(), part.groups.begin(), part.groups.end());
        if ((part.outer ? outer : inner).convert) slot.converted.push_back(std::move(part));
      }
    }
  };
  const auto ahead = chunks.begin() + kStreamAhead;
  if (current) take(*current, {ahead, chunks.end()});
  if (next) take(*next, {chunks.begin(), ahead});
  if (current) slot.groups.resize(chunks.size());
  return slot;
}

void GemmCore::write_prepared(std::int64_t batch) {
  std::vector<Block> blocks;
  for (const auto& step : outer_steps_) blocks.insert(blocks.end(), step.begin(), step.end());
  const bool streams =
      std::min(map_.outer_ring, map_.inner_ring) < static_cast<std::int64_t>(chunks_.size()) &&
      chunks_.size() > kStreamAhead && std::ranges::all_of(blocks, [](const Block& b) {
        return b.load_outer && b.subs.size() == 1;
      });
  struct SubStep {
    SubBlock sub;
    PrepareSlot slot;
    bool operator==(const SubStep&) const = default;
  };
  for (const Engine engine : {Engine::Tensor, Engine::Scalar, Engine::Vector}) {
    const auto prepare = [&](const PrepareSlot& slot) {
      for (const auto& groups : slot.groups) {
        if (engine == Engine::Tensor) prepare_tensor(groups);
        if (engine == Engine::Scalar) prepare_scalar(groups);
      }
      if (engine == Engine::Vector) prepare_vector(slot.converted);
    };
    const auto emit = [&](const std::array<std::optional<Block>, 2>& step) {
      if (streams) {
        const PrepareSlot slot =
            streamed(step[0], step[1], chunks_, outer_operand_, inner_operand_);
        if (!step[1]) return prepare(slot);
        const SubBlock& sub = step[1]->subs.front();
        if (engine == Engine::Tensor) return multiply(sub, slot.groups);
        prepare(slot);
        return evict_rows(engine, sub);
      }
      std::vector<PreparePart> parts;
      if (step[0]) parts = parts_of(*step[0], chunks_, outer_operand_, inner_operand_);
      const std::size_t subs = step[1] ? step[1]->subs.size() : 1;
      const auto slots = spread(parts, subs, chunks_.size(), outer_operand_, inner_operand_);
      if (!step[1]) return prepare(slots.front());
      std::vector<SubStep> list;
      for (std::size_t i = 0; i < subs; ++i) list.push_back({step[1]->subs[i], slots[i]});
      build_.runs(engine, list, [&](const SubStep& s) {
        if (engine == Engine::Tensor) return multiply(s.sub, s.slot.groups);
        prepare(s.slot);
        evict_rows(engine, s.sub);
      });
    };
    pipeline_steps<Block, 2>(build_, engine, blocks, batch, {1, 0}, emit);
  }
}

void GemmCore::prepare_tensor(const std::vector<TransposeGroup>& groups) {
  build_.runs(Engine::Tensor, groups, [&](const TransposeGroup& g) {
    const GemmOperand& o = g.outer ? outer_operand_ : inner_operand_;
    const Sizes tiles = chop(g.k, kLanes);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      Instruction t = lane(Opcode::Transpose, Space::Sbuf, o.hbm, g.rows, tiles[i]);
      t.destination = Space::Psum;
      if (i == 0) {
        if (g.first) add_wait(t, raw_full_[g.outer]);
        add_wait(t, transposed_free_);
      }
      if (i + 1 == tiles.size()) {
        add_signal(t, transposed_full_);
        if (g.last) add_signal(t, raw_free_[g.outer]);
      }
      build_.emit(Engine::Tensor, t);
    }
  });
}

void GemmCore::prepare_scalar(const std::vector<TransposeGroup>& groups) {
  build_.runs(Engine::Scalar, groups, [&](const TransposeGroup& g) {
    const GemmOperand& o = g.outer ? outer_operand_ : inner_operand_;
    Instruction copy = lane(Opcode::TensorCopy, Space::Psum, o.hbm, std::min(kLanes, g.k),
                            ceil_divide(g.k, kLanes) * g.rows);
    add_wait(copy, transposed_full_);
    const Semaphore free = g.outer ? outer_free_ : inner_free_;
    if (g.first) add_wait(copy, o.convert ? middle_free_[g.outer] : free);
    add_signal(copy, transposed_free_);
    const Semaphore full = g.outer ? outer_full_ : inner_full_;
    if (g.last) add_signal(copy, o.convert ? middle_full_[g.outer] : full);
    build_.emit(Engine::Scalar, copy);
  });
}

void GemmCore::prepare_vector(const std::vector<PreparePart>& parts) {
  build_.runs(Engine::Vector, parts, [&](const PreparePart& p) {
    const GemmOperand& o = p.outer ? outer_operand_ : inner_operand_;
    const bool mx = o.array == base::DType::Mxfp8;
    // A cast runs at the speed of the wider side.
    const base::DType widest =
        base::element_bits(o.array) > base::element_bits(o.hbm) ? o.array : o.hbm;
    const Sizes tiles = chop(ceil_divide(p.k, pack_), kLanes);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      Instruction c;
      if (spec_.conversion == Conversion::Charged)
        c = lane(mx ? Opcode::QuantizeMx : Opcode::TensorCopy, Space::Sbuf, mx ? o.hbm : widest,
                 tiles[i], p.width * pack_);
      if (i == 0) {
        add_wait(c, o.transpose ? middle_full_[p.outer] : raw_full_[p.outer]);
        add_wait(c, p.outer ? outer_free_ : inner_free_);
      }
      if (i + 1 == tiles.size()) {
        add_signal(c, p.outer ? outer_full_ : inner_full_);
        add_signal(c, o.transpose ? middle_free_[p.outer] : raw_free_[p.outer]);
      }
      build_.emit(Engine::Vector, c);
    }
  });
}

}  // namespace trn3sim::compile
