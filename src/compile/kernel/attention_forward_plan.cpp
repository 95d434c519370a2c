// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/attention_forward_plan.hpp"

#include <algorithm>
#include <numeric>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

constexpr std::int64_t kLanes = 128;

std::int64_t picoseconds(const std::vector<Instruction>& list, Engine engine,
                         const config::ChipSpec& chip) {
  std::int64_t cycles = 0;
  for (const Instruction& i : list) cycles += models::instruction_cost(i, engine, chip).cycles;
  return base::cycles_time(cycles, models::engine_clock(chip, engine)).count() / 1000;
}

// Time per tile of the busiest of the engines.
std::int64_t bound_of(const Balance& b, const KernelSpec& spec, const config::ChipSpec& chip,
                      std::int64_t width) {
  const std::int64_t scalar_width = width * b.scalar_eighths / 8;
  std::array<std::int64_t, models::kEngines> load{};
  const auto add = [&](Engine e, const std::vector<Instruction>& list) {
    load[static_cast<std::size_t>(e)] += picoseconds(list, e, chip);
  };
  Instruction running = running_maximum(kLanes);
  running.first_of_chain = b.maximum == Engine::Vector && !b.vector_interleaves();
  add(Engine::Vector, {running});
  add(b.maximum,
      {b.maximum == Engine::Scalar ? copy_maximum(kLanes, width) : row_maximum_of(kLanes, width)});
  if (b.scalar_eighths == 0) add(Engine::Vector, {rescale_factor(kLanes)});
  if (b.scalar_eighths < 8) {
    Instruction exponentials = vector_exponentials(b, kLanes, width - scalar_width);
    exponentials.first_of_chain = b.maximum == Engine::Vector || !b.vector_interleaves();
    add(Engine::Vector, {exponentials});
  }
  add(Engine::Scalar, scalar_exponentials(kLanes, scalar_width));
  add(b.copier, {lane(Opcode::TensorCopy, Space::Psum, base::DType::Bf16, kLanes, width)});
  add(b.rescaler, {lane(Opcode::ScalarTensorTensor, Space::Psum, base::DType::Fp32, kLanes, spec.d),
                   running_sum(kLanes)});
  return *std::ranges::max_element(load);
}

// Whether a core has so few tiles that the way of one through the engines counts, not their load.
bool few_tiles(const KernelSpec& spec, std::int64_t width) {
  std::int64_t most = 0;
  for (const AttentionShare& s : divide_attention(spec, true)) {
    std::int64_t items = 0;
    for (const QueryTile& t : s.tiles) items += (t.keys + width - 1) / width;
    most =
        std::max(most, items * std::accumulate(s.groups.begin(), s.groups.end(), std::int64_t{0}));
  }
  return most <= kAhead;
}

// The division of work that loads the busiest engine least.
Balance balance_of(const KernelSpec& spec, const config::ChipSpec& chip, std::int64_t width) {
  const bool fast =
      spec.fast_exponential && chip.vector.exponential_speedup > 0 && !few_tiles(spec, width);
  Balance best;
  const auto consider = [&](Balance b) {
    for (const Engine copier : {Engine::Scalar, Engine::Gpsimd, Engine::Vector}) {
      for (const Engine rescaler : {Engine::Vector, Engine::Gpsimd}) {
        b.copier = copier;
        b.rescaler = rescaler;
        b.bound_ps = bound_of(b, spec, chip, width);
        if (best.bound_ps == 0 || b.bound_ps < best.bound_ps) best = b;
      }
    }
  };
  Balance b;
  consider(b);
  if (!fast) return best;
  for (const std::int64_t eighths : {6, 4, 2, 0}) {
    b.scalar_eighths = eighths;
    consider(b);
  }
  b.maximum = Engine::Scalar;
  consider(b);
  return best;
}

}  // namespace

std::vector<models::Instruction> scalar_exponentials(std::int64_t rows, std::int64_t width) {
  if (width == 0) return {};
  Instruction exponentials =
      lane(Opcode::ActivationReduce, Space::Psum, base::DType::Fp32, rows, width);
  exponentials.transcendental = true;
  Instruction scale = lane(Opcode::Activation, Space::Sbuf, base::DType::Fp32, rows, 1);
  scale.transcendental = true;
  return {scale, exponentials};
}

models::Instruction row_maximum_of(std::int64_t rows, std::int64_t width) {
  return lane(Opcode::TensorReduce, Space::Psum, base::DType::Fp32, rows, width);
}

models::Instruction running_maximum(std::int64_t rows) {
  Instruction running = lane(Opcode::TensorTensor, Space::Sbuf, base::DType::Fp32, rows, 1);
  running.two_inputs_sbuf = true;
  return running;
}

models::Instruction running_sum(std::int64_t rows) {
  return lane(Opcode::ScalarTensorTensor, Space::Sbuf, base::DType::Fp32, rows, 1);
}

models::Instruction rescale_factor(std::int64_t rows) {
  return lane(Opcode::Exponential, Space::Sbuf, base::DType::Fp32, rows, 1);
}

models::Instruction copy_maximum(std::int64_t rows, std::int64_t width) {
  return lane(Opcode::ActivationReduce, Space::Psum, base::DType::Fp32, rows, width);
}

models::Instruction vector_exponentials(const Balance& balance, std::int64_t rows,
                                        std::int64_t width) {
  const Space source = balance.maximum == Engine::Scalar ? Space::Sbuf : Space::Psum;
  return lane(Opcode::Exponential, source, base::DType::Fp32, rows, width);
}

ForwardPlan plan_forward(const KernelSpec& spec, const config::ChipSpec& chip) {
  ForwardPlan plan;
  plan.key_tile = chip.tensor.moving_max;
  plan.ahead = spec.double_accumulators ? kAhead : 1;
  plan.balance = balance_of(spec, chip, plan.key_tile);
  if (spec.d > plan.key_tile) {
    throw base::UserError(spec.label(),
                          fmt::format("head size {} exceeds {}", spec.d, plan.key_tile));
  }
  std::int64_t keys = 0, tiles = 0;
  for (const AttentionShare& s : divide_attention(spec, true)) {
    keys = std::max(keys, s.keys);
    tiles = std::max(tiles, static_cast<std::int64_t>(s.tiles.size()));
  }
  const auto bytes = [&](std::int64_t elements) { return base::storage_bytes(spec.in, elements); };
  const std::int64_t depth = (spec.d + kLanes - 1) / kLanes;  // partition tiles of a head
  const std::int64_t key_bytes = bytes(keys * depth) + bytes((keys + kLanes - 1) / kLanes * spec.d);
  const std::int64_t rest =
      kQueryRing * bytes(std::min(kQueryChunk, tiles) * kQueryTile * depth) +
      kAhead * plan.key_tile * 2 + 2 * plan.key_tile * 2 +  // P, its transposes
      (plan.balance.maximum == Engine::Scalar ? kAhead * plan.key_tile * 4 : 0) +  // scores
      2 * spec.d * 4 + kOutputs * base::storage_bytes(spec.out, spec.d) + 2 * tiles * 4;
  // Scores run kAhead tiles ahead of P V: with few tiles per group that reaches into later groups,
  // whose keys must not wait for values that are still in use.
  std::int64_t least = 1;
  for (const AttentionShare& s : divide_attention(spec, true)) {
    std::int64_t items = 0;
    for (const QueryTile& t : s.tiles) items += (t.keys + plan.key_tile - 1) / plan.key_tile;
    for (const std::int64_t heads : s.groups) {
      if (items * heads < kAhead)
        least = std::max(least, 1 + (kAhead + items * heads - 1) / (items * heads));
    }
  }
  for (const std::int64_t buffers : {std::max<std::int64_t>(2, least), least}) {
    plan.key_buffers = buffers;
    plan.sbuf = buffers * key_bytes + rest;
    if (plan.sbuf <= chip.sbuf.usable_per_partition.count()) return plan;
  }
  throw base::UserError(spec.label(),
                        fmt::format("keys and values of a head need {} bytes per SBUF "
                                    "partition; {} are usable",
                                    plan.sbuf, chip.sbuf.usable_per_partition.count()));
}

std::vector<ForwardItem> items_of(const AttentionShare& share, const ForwardPlan& plan,
                                  std::int64_t heads) {
  std::vector<ForwardItem> items;
  std::int64_t chunks_seen = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::size_t t = 0; t < share.tiles.size(); ++t) {
      const QueryTile& tile = share.tiles[t];
      const bool chunk_end = (t + 1) % kQueryChunk == 0 || t + 1 == share.tiles.size();
      for (std::int64_t k = 0; k < tile.keys; k += plan.key_tile) {
        ForwardItem item;
        item.rows = tile.rows;
        item.width = std::min(plan.key_tile, tile.keys - k);
        item.first = k == 0;
        item.last = k + plan.key_tile >= tile.keys;
        item.masked = tile.masked && item.last;
        item.wait_query = item.first && t % kQueryChunk == 0;
        item.free_query = item.last && chunk_end;
        if (k / kKeyChunk >= chunks_seen) {
          item.wait_keys = true;
          ++chunks_seen;
        }
        item.head_end = item.last && t + 1 == share.tiles.size();
        items.push_back(item);
      }
    }
  }
  items.back().free_keys = true;
  return items;
}

}  // namespace trn3sim::compile
