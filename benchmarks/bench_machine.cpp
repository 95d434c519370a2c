// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the machine level: items_per_second counts traversals of a link, or operations of ranks
// that are replayed. simulated_us says how much time one run simulates.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"
#include "trn3sim/modules/link.hpp"
#include "trn3sim/sim/simulation.hpp"
#include "trn3sim/topology/graph.hpp"
#include "trn3sim/trace/program.hpp"

#include "systemc_main.hpp"
#include <fmt/format.h>
#include <unistd.h>

namespace trn3sim::benchmarks {
namespace {

constexpr std::uint32_t kLinks = 8, kMessages = 1000;
constexpr int kOps = 5000;

// Links in a row.
topology::Graph row() {
  topology::Graph g;
  for (std::uint32_t i = 0; i <= kLinks; ++i) {
    topology::Node n;
    n.name = fmt::format("{}", i);
    g.add_node(n);
  }
  for (std::uint32_t i = 0; i < kLinks; ++i)
    g.add_link({topology::LinkKind::OnDie, fmt::format("row{}", i), topology::NodeId{i},
                topology::NodeId{i + 1}, base::Rate(256'000'000'000), base::nanoseconds(20)});
  return g;
}

struct Arrivals : modules::MessageSink {
  void delivered(const modules::Message& /*m*/) override { ++count; }
  std::int64_t count = 0;
};

struct LinkSetup {
  topology::Graph graph = row();
  modules::Context context;
  modules::Fabric fabric{graph, context};
  std::vector<topology::Route> routes;  // from each node to the end of the row
  Arrivals arrivals;

  LinkSetup() {
    std::vector<std::size_t> order(graph.links().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    fabric.elaborate(order);
    for (std::uint32_t first = 0; first < kLinks; ++first) {
      topology::Route route;
      for (std::uint32_t i = first; i < kLinks; ++i) route.push_back(topology::LinkId{i});
      routes.push_back(route);
    }
  }
};

// One rank per core of a chip: additions, small matmuls and all-reduces, all written out, so that
// no loop can be skipped.
std::string workload() {
  std::string text =
      R"({"trace":"trn3sim","v":1,"name":"bench","rank_unit":"core","mesh":[["tp",8]],)"
      R"("defaults":{"dtype":"bf16"},"tokens_per_step":1,"memory":[]})"
      "\n";
  for (int i = 0; i < kOps; ++i) {
    const char* op = i % 3 == 0 ? R"("op":"vec","fn":"add","elems":65536)"
                     : i % 3 == 1
                         ? R"("op":"gemm","m":256,"n":256,"k":256)"
                         : R"("op":"coll","kind":"all_reduce","group":"tp","in":65536,"out":65536)";
    text += fmt::format("{{\"id\":\"o{}\",{}}}\n", i, op);
  }
  return text;
}

trace::Program read(const std::string& text) {
  std::string name = "/tmp/bench_machine_XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) throw std::runtime_error("no temporary file in /tmp");
  ::close(file);
  std::ofstream(name) << text;
  trace::Program program = trace::read(name);
  std::remove(name.c_str());
  return program;
}

struct MachineSetup {
  config::RunSpec run =
      config::load_run(std::string(TRN3SIM_SOURCE_DIR) + "/configs/chip1.json", {});
  topology::Graph graph = topology::build(run.system);
  trace::Program program = read(workload());
  compile::Plan plan = compile::place(program, graph, run);
  sim::Simulation machine{run, graph, program, plan};
};

std::unique_ptr<LinkSetup> links;
std::unique_ptr<MachineSetup> machine;

// All messages share the last link of the row.
void link_traversals(benchmark::State& state) {
  std::int64_t hops = 0;
  for (auto _ : state) {
    links->context.restart();
    hops = 0;
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      const topology::Route& route = links->routes[i % links->routes.size()];
      hops += static_cast<std::int64_t>(route.size());
      modules::Message m;
      m.order = i;
      m.route = &route;
      m.bytes = base::Bytes(65536);
      m.sink = &links->arrivals;
      links->fabric.send(m);
    }
    sc_core::sc_start();
  }
  state.SetItemsProcessed(state.iterations() * hops);
  state.counters["simulated_us"] = base::to_seconds(links->context.now()) * 1e6;
}

// Runs once: a machine does. Kernels are profiled before and not counted.
void replayed_ops(benchmark::State& state) {
  for (auto _ : state) {
    const stats::Results results = machine->machine.run();
    state.SetIterationTime(machine->machine.info().simulate_wall_s);
    state.counters["simulated_us"] = static_cast<double>(results.step_fs) * 1e-9;
  }
  state.SetItemsProcessed(machine->machine.info().rank_ops);
}

BENCHMARK(link_traversals)->Unit(benchmark::kMillisecond);
BENCHMARK(replayed_ops)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

void setup() {
  links = std::make_unique<LinkSetup>();
  machine = std::make_unique<MachineSetup>();
}

}  // namespace trn3sim::benchmarks
