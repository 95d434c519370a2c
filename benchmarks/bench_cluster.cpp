// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the detailed model of one stack with its cores. items_per_second counts instructions of
// the engines, bytes_per_second what DMA moves; simulated_us says how much time one run simulates,
// so that a speed-up that changes the model shows.
#include <memory>

#include "trn3sim/compile/kernel.hpp"
#include "trn3sim/sim/bench.hpp"

#include "support/test_chip.hpp"
#include "support/tile_builder.hpp"
#include "systemc_main.hpp"

namespace trn3sim::benchmarks {
namespace {

using models::Engine;
using models::Instruction;

struct Setup {
  config::ChipSpec chip = test::test_chip();
  modules::Context context;
  sim::KernelBench bench{"bench", chip, context};
};
std::unique_ptr<Setup> all;

void run(benchmark::State& state, const models::TileProgram& program, base::Rate cap) {
  modules::ClusterRun r;
  for (auto _ : state) r = all->bench.run(program, cap);
  state.SetItemsProcessed(state.iterations() * r.instructions);
  state.SetBytesProcessed(state.iterations() * (r.hbm_read_bytes + r.hbm_write_bytes));
  state.counters["simulated_us"] = base::to_seconds(r.duration) * 1e6;
}

// One engine, nothing to wait for.
void matmul_loop(benchmark::State& state) {
  test::TileBuilder t;
  t.loop(Engine::Tensor, 100'000, [&] {
    t.add(Engine::Tensor, test::load_stationary(128, 128));
    t.add(Engine::Tensor, test::multiply(128, 128, 512));
  });
  run(state, t.program(), base::Rate(0));
}

// Two engines that wait for each other after every instruction.
void ping_pong(benchmark::State& state) {
  test::TileBuilder t;
  const auto ping = t.semaphore(1), pong = t.semaphore(0);
  const auto side = [&](Engine engine, Instruction i, std::uint16_t wait, std::uint16_t signal) {
    i.waits[0] = {wait, 1};
    i.signals[0] = {signal, 1};
    t.loop(engine, 50'000, [&] { t.add(engine, i); });
  };
  side(Engine::Tensor, test::multiply(128, 128, 512), ping, pong);
  side(Engine::Vector, test::lane(models::Opcode::TensorCopy, 512), pong, ping);
  run(state, t.program(), base::Rate(0));
}

compile::KernelSpec gemm() {
  compile::KernelSpec s;
  s.m = s.n = s.k = 2048;
  s.cores = 2;
  return s;
}

compile::KernelSpec stream() {
  compile::KernelSpec s;
  s.kind = compile::KernelKind::Vector;
  s.fn = "add";
  s.elems = 1 << 22;
  s.rd = 4 * s.elems;
  s.wr = 2 * s.elems;
  s.cores = 2;
  return s;
}

// A compiled kernel; argument: limit in GB/s, which replaces the HBM stack, 0 = none.
void kernel(benchmark::State& state, const compile::KernelSpec& spec) {
  const models::TileProgram program = compile::compile_kernel(spec, all->chip);
  run(state, program, base::Rate(state.range(0) * 1'000'000'000));
}

BENCHMARK(matmul_loop)->Unit(benchmark::kMillisecond);
BENCHMARK(ping_pong)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(kernel, gemm, gemm())->Arg(0)->Arg(400)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(kernel, add, stream())->Arg(0)->Arg(400)->Unit(benchmark::kMillisecond);

}  // namespace

void setup() {
  all = std::make_unique<Setup>();
}

}  // namespace trn3sim::benchmarks
