// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the HBM models. items_per_second counts 256 B blocks, or bursts for `exact`;
// share_of_peak is the simulated bandwidth, so that a speed-up that changes the model shows.
#include <algorithm>
#include <vector>

#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/hbm_drive.hpp"

#include "support/test_chip.hpp"
#include <benchmark/benchmark.h>

namespace {

using namespace trn3sim;  // NOLINT: a program of one file
using base::Time;

config::HbmSpec hbm3e() {
  config::HbmSpec spec;
  test::set_test_hbm(spec);
  return spec;
}

enum class Pattern { Stream, Random, Mixed };

// `window` accesses of `bytes` in flight, the oldest replaced first.
void run(benchmark::State& state, Pattern pattern) {
  const std::int64_t bytes = state.range(0);
  const auto window = static_cast<std::size_t>(state.range(1));
  const config::HbmSpec spec = hbm3e();
  models::HbmStack stack(spec, 4);
  std::vector<Time> ends(window);
  std::size_t slot = 0;
  std::int64_t address = 0;
  std::uint64_t random = 88172645463325252ULL;
  const auto slots = static_cast<std::uint64_t>(spec.capacity.count() / bytes);
  Time now;
  for (auto _ : state) {
    bool write = false;
    if (pattern == Pattern::Random) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      address = static_cast<std::int64_t>(random % slots) * bytes;
    } else {
      address += bytes;
      write = pattern == Pattern::Mixed && (address / bytes) % 3 == 0;
    }
    now = std::max(now, ends[slot]);
    ends[slot] = stack.access(now, address, bytes, write);
    slot = slot + 1 == window ? 0 : slot + 1;
  }
  state.SetItemsProcessed(state.iterations() * ((bytes + 255) / 256));
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["share_of_peak"] =
      static_cast<double>(state.iterations()) * static_cast<double>(bytes) /
      std::max(base::to_seconds(now), 1e-15) / static_cast<double>(stack.peak().count());
}

void stream(benchmark::State& state) {
  run(state, Pattern::Stream);
}
void random_blocks(benchmark::State& state) {
  run(state, Pattern::Random);
}
void mixed(benchmark::State& state) {
  run(state, Pattern::Mixed);
}

// Every burst of one channel: a stream, or random blocks of `range(0)` bytes.
void exact(benchmark::State& state) {
  config::HbmSpec spec = hbm3e();
  spec.mode = "exact";
  spec.exact = {base::Time(45'000'000),
                base::Time(1'250'000),
                base::Time(4'375'000),
                base::Time(8'000'000),
                8,
                80,
                20};
  models::HbmPattern pattern;
  pattern.random = state.range(0) > 0;
  if (pattern.random) pattern.block = state.range(0);
  double share = 0;
  for (auto _ : state) share = models::drive_hbm(spec, 4, 1, pattern).share;
  state.SetItemsProcessed(state.iterations() * pattern.bursts);
  state.counters["share_of_peak"] = share;
}

BENCHMARK(exact)->Arg(0)->Arg(256)->Arg(4096);
BENCHMARK(stream)->Args({256, 2048})->Args({4096, 512});
BENCHMARK(random_blocks)->Args({256, 2048})->Args({4096, 512});
BENCHMARK(mixed)->Args({4096, 512});

}  // namespace
