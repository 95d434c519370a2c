// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <numeric>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/hbm.hpp"

#include <fmt/format.h>

namespace trn3sim::sim {
namespace {

constexpr std::size_t kDeadlockLines = 8;  // ranks named in a deadlock report

}  // namespace

std::vector<std::size_t> construction_order(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (seed == 0) return order;
  std::uint64_t x = seed;
  for (std::size_t i = n; i > 1; --i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX LCG
    std::swap(order[i - 1], order[(x >> 33) % i]);
  }
  return order;
}

Machine::Machine(const config::RunSpec& run, const topology::Graph& graph,
                 const trace::Program& program, const compile::Plan& plan) {
  state_.run = &run;
  state_.graph = &graph;
  state_.program = &program;
  state_.plan = &plan;
  state_.profiles.resize(plan.kernels.size());
  prepare_tables();
  prepare_opaque();
  fabric_ = std::make_unique<modules::Fabric>(graph, state_.context);
  fabric_->elaborate(construction_order(graph.links().size(), run.shuffle));
  const config::ChipSpec& chip = run.system.chip;
  make_shares(
      construction_order(static_cast<std::size_t>(graph.chips() * chip.stacks), run.shuffle));
  make_host_links();
  make_ranks(construction_order(plan.places.size(), run.shuffle));
  if (run.fast_forward) {
    skipper_ = std::make_unique<LoopSkipper>("loop_skipper", *this);
    state_.skipper = skipper_.get();
  }
}

void Machine::prepare_tables() {
  const config::ChipSpec& chip = state_.run->system.chip;
  state_.tables = make_tables(*state_.program, *state_.plan, chip.collectives.streams);
  state_.labels.resize(state_.plan->labels.size());
  modules::CcNetwork& net = state_.network;
  net.chip = &chip;
  net.plan = state_.plan;
  net.graph = state_.graph;
  net.context = &state_.context;
  for (const compile::GroupSet& set : state_.plan->group_sets)
    state_.chains.emplace_back(set.groups.size());
}

// Work without a shape: the larger of FLOP at the format's peak, bytes at what the rank's DMA
// engines and the stack move after the start of a transfer, and the given time.
void Machine::prepare_opaque() {
  const config::ChipSpec& chip = state_.run->system.chip;
  const compile::RankPlace& place = state_.plan->places.front();
  const std::int64_t dma =
      chip.dma.plateau_rate.count() * chip.dma.engines * chip.cores_per_stack();
  stack_capacity_ = std::min(models::streaming_rate(chip.hbm, chip.stacks), base::Rate(dma));
  for (std::size_t b = 0; b < state_.program->blocks.size(); ++b) {
    const trace::Block& block = state_.program->blocks[b];
    for (std::size_t i = 0; i < block.ops.size(); ++i) {
      const auto* o = std::get_if<trace::Opaque>(&block.ops[i].body);
      if (o == nullptr) continue;
      const base::DType t = o->dtype.value_or(state_.program->header.dtype);
      const double peak =
          chip.peak_flops_per_core(t) * static_cast<double>(place.cores * place.stacks);
      models::KernelProfile p;
      p.compute_active =
          base::Time(static_cast<std::int64_t>(static_cast<double>(o->flop) / peak * 1e15));
      p.tensor_ideal = p.compute_active;
      p.engine_busy[static_cast<std::size_t>(models::Engine::Tensor)] = p.compute_active;
      const base::Bytes bytes((o->bytes + place.stacks - 1) / place.stacks);
      const base::Rate engines(chip.dma.plateau_rate.count() * chip.dma.engines *
                               std::min(place.cores, chip.cores_per_stack()));
      p.dma_busy = base::transfer_time(bytes, std::min(stack_capacity_, engines));
      p.lead_in = bytes.count() > 0 ? chip.dma.start_latency : base::Time(0);
      const base::Time memory = p.lead_in + p.dma_busy;
      p.duration = std::max({p.compute_active, memory, base::nanoseconds(o->ns), base::Time(1)});
      p.counts.hbm_read_bytes = p.counts.dma_bytes = bytes.count();
      p.counts.macs[static_cast<std::size_t>(t)] = o->flop / 2 / place.stacks;
      if (bytes.count() > 0) p.curve = {{base::average_rate(bytes, p.duration), p.duration}};
      state_.opaque.emplace(std::pair(static_cast<std::int32_t>(b), static_cast<std::int32_t>(i)),
                            p);
    }
  }
}

// What the DMA engines of one rank move on a stack; 0 where they are all of the stack's.
base::Rate Machine::group_engines() const {
  const config::ChipSpec& chip = state_.run->system.chip;
  const std::int64_t cores = state_.plan->places.front().cores;
  if (cores >= chip.cores_per_stack()) return base::Rate(0);
  return base::Rate(chip.dma.plateau_rate.count() * chip.dma.engines * cores);
}

void Machine::make_shares(const std::vector<std::size_t>& order) {
  const std::int64_t stacks = state_.run->system.chip.stacks;
  shares_.resize(order.size());
  detailed_.resize(order.size() / static_cast<std::size_t>(stacks));
  for (std::size_t i : order) {
    const auto index = static_cast<std::int64_t>(i);
    if (state_.run->is_detailed(index / stacks)) {
      auto& chip = detailed_[i / static_cast<std::size_t>(stacks)];
      if (chip) continue;
      chip = std::make_unique<modules::DetailedChip>(fmt::format("chip{}", index / stacks).c_str(),
                                                     state_.run->system.chip, state_.context);
      continue;
    }
    const std::string name = fmt::format("chip{}_stack{}_share", index / stacks, index % stacks);
    shares_[i] = std::make_unique<modules::HbmShare>(name.c_str(), stack_capacity_, group_engines(),
                                                     state_.context);
  }
}

// Per chip: PCIe in and out; per instance: its storage. Per rank the routes over them.
void Machine::make_host_links() {
  const config::SystemSpec& system = state_.run->system;
  const config::HostSpec& host = system.chip.host;
  bool used = false;
  for (const trace::Block& block : state_.program->blocks)
    for (const trace::Op& op : block.ops)
      used = used || std::holds_alternative<trace::Memory>(op.body);
  state_.host_routes.resize(state_.plan->places.size());
  if (!used) return;
  std::vector<std::array<topology::LinkId, 2>> pcie;
  for (std::int64_t c = 0; c < system.chips(); ++c) {
    topology::Link link;
    link.kind = topology::LinkKind::PortLink;
    link.bandwidth = host.pcie;
    link.latency = host.pcie_latency;
    link.name = fmt::format("host->chip{}.pcie", c);
    const topology::LinkId in = fabric_->add(link);
    link.name = fmt::format("chip{}.pcie->host", c);
    pcie.push_back({in, fabric_->add(link)});
  }
  std::vector<topology::LinkId> storage;
  for (std::int64_t s = 0; s < system.fabric.servers; ++s) {
    topology::Link link;
    link.kind = topology::LinkKind::PortLink;
    link.bandwidth = host.storage;
    link.latency = host.pcie_latency;
    link.name = fmt::format("server{}.storage", s);
    storage.push_back(fabric_->add(link));
  }
  for (std::size_t r = 0; r < state_.plan->places.size(); ++r) {
    const auto chip = static_cast<std::size_t>(state_.plan->places[r].chip);
    const topology::LinkId disk =
        storage[chip / static_cast<std::size_t>(system.fabric.chips_per_server)];
    topology::Link hbm;  // the rank's DMA engines to its own stack
    hbm.kind = topology::LinkKind::OnDie;
    hbm.name = fmt::format("rank{}.hbm", r);
    hbm.bandwidth =
        std::min(stack_capacity_, compile::dma_rate(system.chip, state_.plan->places[r], false));
    state_.host_routes[r] = {{pcie[chip][0]},
                             {pcie[chip][1]},
                             {disk, pcie[chip][0]},
                             {pcie[chip][1], disk},
                             {fabric_->add(hbm)}};
  }
}

// The rank's cores and where its messages meet memory.
void Machine::make_stack_units(std::size_t r) {
  const compile::RankPlace& place = state_.plan->places[r];
  const config::ChipSpec& chip = state_.run->system.chip;
  const std::string name = fmt::format("rank{}_player", r);
  modules::StackPort& port = state_.network.ports[r];
  // Ranks of part of a stack lie one after another.
  if (place.stacks == 1 && place.cores < chip.cores_per_stack())
    port.first_core = static_cast<std::int64_t>(r) * place.cores % chip.cores_per_stack();
  modules::DetailedChip* detailed = detailed_[static_cast<std::size_t>(place.chip)].get();
  if (detailed == nullptr) {
    std::vector<modules::HbmShare*> shares;
    for (std::int64_t s = 0; s < place.stacks; ++s)
      shares.push_back(
          shares_[static_cast<std::size_t>(place.chip * chip.stacks + place.first_stack + s)]
              .get());
    port.share = shares.front();
    players_[r] = std::make_unique<modules::KernelPlayer>(
        name.c_str(), shares, static_cast<std::int32_t>(port.first_core), *runners_[r],
        chip.tensor.throttle);
    return;
  }
  std::vector<modules::StackCluster*> stacks;
  for (std::int64_t s = 0; s < place.stacks; ++s)
    stacks.push_back(&detailed->stack(static_cast<std::size_t>(place.first_stack + s)));
  port.traffic = stacks.front();
  players_[r] = std::make_unique<modules::DetailedPlayer>(
      name.c_str(), stacks, port.first_core, place.cores, state_.context, *runners_[r]);
}

void Machine::make_ranks(const std::vector<std::size_t>& order) {
  const std::size_t ranks = order.size();
  runners_.resize(ranks);
  players_.resize(ranks);
  cc_cores_.resize(ranks);
  hosts_.resize(ranks);
  modules::CcNetwork& net = state_.network;
  net.fabric = fabric_.get();
  net.cores.resize(ranks);
  net.ports.resize(ranks);
  net.join = &join_;
  net.local.resize(ranks);
  for (std::size_t r : order) {
    const compile::RankPlace& place = state_.plan->places[r];
    runners_[r] = std::make_unique<RankRunner>(state_, static_cast<std::int64_t>(r));
    make_stack_units(r);
    cc_cores_[r] = std::make_unique<modules::CcCore>(
        fmt::format("rank{}_cc", r).c_str(), static_cast<std::int64_t>(r), net, *runners_[r]);
    net.cores[r] = cc_cores_[r].get();
    hosts_[r] = std::make_unique<modules::HostPort>(fmt::format("rank{}_host", r).c_str(),
                                                    state_.context, *runners_[r]);
    runners_[r]->attach(*players_[r], *cc_cores_[r], *hosts_[r]);
    if (state_.program->header.rank_unit != base::RankUnit::Core) continue;
    // Ranks that share a stack copy through its HBM.
    topology::Link copy;
    copy.kind = topology::LinkKind::OnDie;
    copy.name = fmt::format("rank{}.local", r);
    copy.bandwidth = compile::dma_rate(state_.run->system.chip, place, false);
    net.local[r] = {fabric_->add(copy)};
  }
}

// Once the kernels have profiles.
void Machine::prepare_weights() {
  const config::ChipSpec& chip = state_.run->system.chip;
  const models::ShareWeights weights(chip, stack_capacity_);
  for (std::size_t touches = 1; touches < state_.network.flow_weights.size(); ++touches)
    state_.network.flow_weights[touches] = weights.of_flow(static_cast<std::int64_t>(touches));
  for (auto& share : shares_)
    if (share) share->use_mix(weights.mix());
  state_.weights.clear();
  state_.loads.clear();
  for (std::size_t i = 0; i < state_.profiles.size(); ++i) {
    const base::Rate engines(chip.dma.plateau_rate.count() * chip.dma.engines *
                             state_.plan->kernels[i].cores);
    state_.weights.push_back(weights.of(state_.profiles[i], engines));
    state_.loads.push_back(models::ahead_profile(state_.profiles[i].ahead));
  }
}

void Machine::run() {
  prepare_weights();
  state_.context.restart();
  state_.unfinished = static_cast<std::int64_t>(runners_.size());
  for (auto& runner : runners_) runner->start();
  if (state_.unfinished > 0) sc_core::sc_start();
  if (state_.unfinished > 0) {
    base::Problems problems;
    for (std::size_t r = 0; r < runners_.size() && problems.size() < kDeadlockLines; ++r)
      if (!runners_[r]->sequencer().finished())
        problems.add(state_.program->file.string(),
                     fmt::format("deadlock at {} ns: {}", state_.context.now().count() / 1'000'000,
                                 runners_[r]->waiting()));
    problems.throw_if_any();
  }
  for (auto& runner : runners_) runner->close(state_.end);
}

std::int64_t Machine::events() const {
  std::int64_t n = 0;
  for (const auto& s : shares_)
    if (s) n += s->events();
  for (std::size_t i = 0; i < fabric_->size(); ++i) n += fabric_->link(i).events();
  return n;
}

}  // namespace trn3sim::sim
