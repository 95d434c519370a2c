// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Division of flash attention over cores, heads and tiles, and software pipelines over tiles.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trn3sim/compile/kernel.hpp"

#include "compile/kernel/program_builder.hpp"

namespace trn3sim::compile {

inline constexpr std::int64_t kQueryTile = 128;  // rows
inline constexpr std::int64_t kQueryChunk = 16;  // query tiles per load
inline constexpr std::int64_t kKeyChunk = 2048;  // keys per load

struct QueryTile {
  std::int64_t rows = 0;
  std::int64_t keys = 0;  // visible to its last row
  bool masked = false;    // the last 128 keys are partly masked
  bool operator==(const QueryTile&) const = default;
};

// The work of one core: groups of query heads that share a key/value head.
struct AttentionShare {
  std::vector<QueryTile> tiles;      // of each head
  std::vector<std::int64_t> groups;  // query heads per key/value head
  std::int64_t keys = 0;             // most that a tile sees
  bool shared_group = false;         // a key/value head has query heads on several cores
  auto operator<=>(const AttentionShare&) const = delete;
  bool operator==(const AttentionShare&) const = default;
};

// Heads are divided evenly; if they do not divide and `split_tiles`, every core takes every
// `cores`-th query tile of all heads instead.
std::vector<AttentionShare> divide_attention(const KernelSpec& spec, bool split_tiles);

// An instruction over [rows x width].
models::Instruction lane(models::Opcode op, models::Space source, base::DType dtype,
                         std::int64_t rows, std::int64_t width);

// A software pipeline on one stream: at step f stage s works on item f + offset_s, stages in order.
// The items repeat `repeats` times; runs of equal steps and whole repeats are loops. `work` emits
// one step: the items of all stages.
template <class Item, std::size_t Stages, class Work>
void pipeline_steps(CoreBuilder& build, models::Engine engine, const std::vector<Item>& items,
                    std::int64_t repeats, const std::array<std::int64_t, Stages>& offsets,
                    const Work& work) {
  using Step = std::array<std::optional<Item>, Stages>;
  const auto count = static_cast<std::int64_t>(items.size());
  const std::int64_t total = count * repeats;
  std::int64_t most = 0, least = 0;
  for (const std::int64_t o : offsets) {
    most = std::max(most, o);
    least = std::min(least, o);
  }
  const auto step = [&](std::int64_t f) {
    Step s;
    for (std::size_t i = 0; i < Stages; ++i) {
      const std::int64_t item = f + offsets[i];
      if (item >= 0 && item < total) s[i] = items[static_cast<std::size_t>(item % count)];
    }
    return s;
  };
  const auto emit = [&](std::int64_t begin, std::int64_t end) {
    std::vector<Step> steps;
    for (std::int64_t f = begin; f < end; ++f) steps.push_back(step(f));
    build.runs(engine, steps, work);
  };
  // Steps -most .. -least-1 fill the pipeline; whole repeats with all stages busy are a loop.
  const std::int64_t full_begin = -least, full_end = std::max(full_begin, total - most);
  const std::int64_t whole = (full_end - full_begin) / count;
  if (whole < 2) {
    emit(-most, total - least);
    return;
  }
  emit(-most, full_begin);
  build.loop(engine, whole, [&] { emit(full_begin, full_begin + count); });
  emit(full_begin + whole * count, total - least);
}

// The same with one function per stage, called in order.
template <class Item, std::size_t Stages>
void pipeline(CoreBuilder& build, models::Engine engine, const std::vector<Item>& items,
              std::int64_t repeats, const std::array<std::int64_t, Stages>& offsets,
              const std::array<std::function<void(const Item&)>, Stages>& stages) {
  pipeline_steps<Item, Stages>(build, engine, items, repeats, offsets,
                               [&](const std::array<std::optional<Item>, Stages>& step) {
                                 for (std::size_t i = 0; i < Stages; ++i) {
                                   if (step[i]) stages[i](*step[i]);
                                 }
                               });
}

// Calls f(value, times) for each run of equal values, in order.
template <class F>
void for_each_run(const std::vector<std::int64_t>& values, F&& f) {
  for (std::size_t i = 0; i < values.size();) {
    std::size_t j = i;
    while (j < values.size() && values[j] == values[i]) ++j;
    f(values[i], static_cast<std::int64_t>(j - i));
    i = j;
  }
}

}  // namespace trn3sim::compile
