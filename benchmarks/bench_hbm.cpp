// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the HBM stack model. items_per_second counts 256 B blocks; share_of_peak is the
// simulated bandwidth, so that a speed-up that changes the model shows.
#include <algorithm>
#include <vector>

#include "support/test_chip.hpp"
#include "trn3sim/models/hbm.hpp"

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

BENCHMARK(stream)->Args({256, 2048})->Args({4096, 512});
BENCHMARK(random_blocks)->Args({256, 2048})->Args({4096, 512});
BENCHMARK(mixed)->Args({4096, 512});

}  // namespace
