// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the HBM stack model. items_per_second counts 256 B blocks; share_of_peak is the
// simulated bandwidth, so that a speed-up that changes the model shows.
#include <algorithm>
#include <vector>

#include "trn3sim/models/hbm.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace trn3sim;  // NOLINT: a program of one file
using base::Bytes;
using base::nanoseconds;
using base::Rate;
using base::Time;

// Four 12-high HBM3e stacks at 9.6 Gb/s.
config::HbmSpec hbm3e() {
  config::HbmSpec s;
  s.capacity = Bytes(std::int64_t{36} << 30);
  s.bandwidth = Rate(4'915'200'000'000);
  s.channels = 16;
  s.pseudo_channels = 2;
  s.sids = 3;
  s.bank_groups = 4;
  s.banks_per_group = 4;
  s.row = Bytes(1024);
  s.burst = Bytes(32);
  s.interleave = Bytes(256);
  s.t_rcd_read = Time(19'375'000);
  s.t_rcd_write = Time(9'375'000);
  s.t_rp = Time(16'250'000);
  s.t_ras = Time(28'125'000);
  s.t_rrd_s = Time(2'500'000);
  s.t_rrd_l = Time(3'125'000);
  s.t_faw = nanoseconds(15);
  s.t_ccd_l = Time(2'500'000);
  s.t_wtr = Time(6'250'000);
  s.t_rtw = Time(12'500'000);
  s.t_wr = Time(20'625'000);
  s.t_rtp = Time(5'625'000);
  s.cl = Time(12'500'000);
  s.cwl = Time(6'250'000);
  s.t_refi = nanoseconds(3900);
  s.t_rfc_all_bank = nanoseconds(550);
  s.t_rfc_per_bank = nanoseconds(200);
  s.refresh = "per_bank";
  s.controller_latency = nanoseconds(40);
  s.derate = 0.93;
  s.queue_depth = 128;
  return s;
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
