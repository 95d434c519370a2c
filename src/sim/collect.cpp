// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "collect.hpp"

#include <algorithm>
#include <map>

#include "trn3sim/models/energy.hpp"
#include "trn3sim/models/hbm.hpp"

#include <fmt/format.h>

namespace trn3sim::sim {
namespace {

using models::EventCounts;

struct Collector {
  const Machine& machine;
  const MachineState& state;
  const config::ChipSpec& chip;
  stats::Results out;
  EventCounts counts;            // whole machine
  base::Energy dynamic_by_part;  // the same events, priced kernel by kernel and rank by rank
  Int128 core_busy = 0;          // femtoseconds, summed over cores
  base::Energy before_regulator;
  std::int64_t crossing_bytes = 0, neuron_link_bytes = 0, on_chip_bytes = 0;

  explicit Collector(const Machine& m)
      : machine(m), state(m.state()), chip(m.state().run->system.chip) {}

  [[nodiscard]] const models::KernelProfile& profile(std::size_t i) const {
    if (i < state.profiles.size()) return state.profiles[i];
    return std::next(state.opaque.begin(), static_cast<std::ptrdiff_t>(i - state.profiles.size()))
        ->second;
  }
  [[nodiscard]] std::size_t profiles() const { return state.profiles.size() + state.opaque.size(); }
  [[nodiscard]] std::string label(std::size_t i) const {
    if (i < state.profiles.size()) return state.plan->kernels[i].label();
    const auto it =
        std::next(state.opaque.begin(), static_cast<std::ptrdiff_t>(i - state.profiles.size()));
    return "opaque " + state.program->blocks[static_cast<std::size_t>(it->first.first)]
                           .ops[static_cast<std::size_t>(it->first.second)]
                           .id;
  }

  void names();
  void flops();
  void kernels();
  void breakdown();
  void collectives();
  void links();
  void transfers();
  void bounds();
  void energy();
  void assumed();
  void checks();
};

std::string bound_of(const models::KernelProfile& p) {
  static constexpr const char* kNames[] = {"tensor", "vector", "scalar", "gpsimd"};
  std::string name = "latency";
  std::int64_t most =
      p.duration.count() / 2;  // a resource busy less than half of the time binds nothing
  for (std::size_t e = 0; e < 4; ++e) {
    if (p.engine_busy[e].count() <= most) continue;
    most = p.engine_busy[e].count();
    name = kNames[e];
  }
  if (p.dma_busy.count() > most) name = "dma";
  return name;
}

void Collector::names() {
  out.config_name = state.run->config_file.filename().string();
  out.trace_name = state.program->file.filename().string();
  out.trace_sha256 = state.program->content_sha256;
  out.compile_level = state.run->compile.level;
  out.model_version = model_version();
  out.chips = state.graph->chips();
  out.ranks = static_cast<std::int64_t>(state.plan->places.size());
  for (const compile::RankPlace& p : state.plan->places) out.cores_used += p.stacks * p.cores;
  out.tokens_per_step = state.program->header.tokens_per_step;
  out.step_fs = state.end.count();
  out.memory_capacity_bytes = state.plan->memory_capacity;
  for (std::size_t r = 0; r < state.plan->places.size(); ++r) {
    out.peak_memory_bytes =
        std::max(out.peak_memory_bytes,
                 trace::peak_memory_bytes(*state.program, static_cast<std::int64_t>(r)));
  }
  out.hbm_peak_rate = chip.hbm.bandwidth.count() * out.chips;
}

void Collector::flops() {
  const auto cores = static_cast<double>(out.cores_used);
  out.peak_geometry_flops = chip.peak_flops_per_core(base::DType::Bf16) * cores;
  out.peak_headline_flops =
      chip.headline_bf16_tflops * 1e12 * cores / static_cast<double>(chip.cores);
  std::map<std::string, stats::PhaseResult> phases;
  for (std::int64_t r = 0; r < out.ranks; ++r) {
    const trace::Totals totals = trace::scan(*state.program, r);
    out.model_flop += totals.model_flop;
    out.model_flop_causal += totals.model_flop_causal;
    for (const trace::PhaseTotals& p : totals.phases) phases[p.phase].model_flop += p.model_flop;
  }
  for (std::size_t i = 0; i < state.tables.phases.size(); ++i) {
    std::int64_t sum = 0;
    for (const auto& rank : machine.ranks()) sum += rank->stats().phase_fs[i];
    phases[state.tables.phases[i]].busy_fs = sum / out.ranks;
  }
  for (auto& [name, result] : phases) {
    result.phase = name;
    if (result.busy_fs > 0 || result.model_flop > 0) out.phases.push_back(result);
  }
}

void Collector::kernels() {
  std::map<std::string, stats::KernelResult> results;
  Int128 ideal = 0;
  std::array<Int128, models::kEngines> busy{};
  for (std::size_t i = 0; i < profiles(); ++i) {
    const models::KernelProfile& p = profile(i);
    stats::KernelResult k;
    k.label = label(i);
    for (std::size_t r = 0; r < machine.ranks().size(); ++r) {
      const KernelCount& c = machine.ranks()[r]->stats().kernels[i];
      const compile::RankPlace& place = state.plan->places[r];
      k.count += c.executions;
      k.total_fs += c.total_fs;
      EventCounts executed = p.counts;
      executed *= c.executions * place.stacks;
      counts += executed;
      dynamic_by_part += models::dynamic_energy(executed, chip.energy).total();
      ideal += Int128(p.tensor_ideal.count()) * c.executions;
      for (std::size_t e = 0; e < models::kEngines; ++e)
        busy[e] += Int128(p.engine_busy[e].count()) * c.executions * place.stacks * place.cores;
      // Hot entries are shorter than the profile.
      const Int128 less = Int128(p.tensor.passes.count()) * c.executions - c.limited_fs;
      busy[std::size_t(models::Engine::Tensor)] -= less * place.stacks * place.cores;
      core_busy -= less * place.stacks * place.cores;
      core_busy += Int128(p.compute_active.count()) * c.executions * place.stacks * place.cores;
    }
    if (k.count == 0) continue;
    k.alone_fs = p.duration.count();
    k.tensor_ideal_fs = p.tensor_ideal.count();
    k.hbm_bytes = p.counts.hbm_read_bytes + p.counts.hbm_write_bytes;
    k.bound = bound_of(p);
    out.kernels.push_back(k);
  }
  out.tensor_ideal_fs = static_cast<std::int64_t>(ideal / out.ranks);
  for (std::size_t e = 0; e < models::kEngines; ++e)
    out.engine_busy_fs[e] = static_cast<std::int64_t>(busy[e] / out.cores_used);
  std::sort(out.kernels.begin(), out.kernels.end(), [](const auto& a, const auto& b) {
    return a.total_fs != b.total_fs ? a.total_fs > b.total_fs : a.label < b.label;
  });
  double macs = 0, weighted = 0;
  for (std::size_t t = 0; t < base::kDTypes; ++t) {
    if (counts.macs[t] == 0) continue;
    const auto flop = 2.0 * static_cast<double>(counts.macs[t]);
    macs += flop;
    weighted += flop / (chip.peak_flops_per_core(static_cast<base::DType>(t)) *
                        static_cast<double>(out.cores_used));
  }
  out.hardware_flop = macs;
  out.peak_dtype_flops = weighted > 0 ? macs / weighted : out.peak_geometry_flops;
}

// Means over ranks round down; what that leaves goes to the largest class, so the parts add up.
void Collector::breakdown() {
  std::int64_t total = 0;
  for (std::size_t c = 0; c < stats::kTimeClasses; ++c) {
    Int128 sum = 0;
    for (const auto& rank : machine.ranks()) sum += rank->stats().class_fs[c];
    out.breakdown.mean_fs[c] = static_cast<std::int64_t>(sum / out.ranks);
    total += out.breakdown.mean_fs[c];
  }
  *std::max_element(out.breakdown.mean_fs.begin(), out.breakdown.mean_fs.end()) +=
      out.step_fs - total;
}

void Collector::collectives() {
  for (std::size_t i = 0; i < state.labels.size(); ++i) {
    const LabelStats& l = state.labels[i];
    if (!l.used) continue;
    stats::CollectiveResult c;
    std::int64_t members = 0;
    for (const auto& rank : machine.ranks()) {
      const LabelCount& counted = rank->stats().labels[i];
      c.count += counted.instances;
      c.total_fs += counted.total_fs;
      members += counted.members;
    }
    c.label = state.plan->labels[i];
    c.in_bytes = l.in_bytes;
    c.out_bytes = l.out_bytes;
    c.ranks = l.ranks;
    c.algorithm = l.algorithm;
    c.worst_link = l.worst_link;
    const double mean = static_cast<double>(c.total_fs) / static_cast<double>(members);
    if (mean > 0) c.bus_rate = static_cast<std::int64_t>(l.bus_bytes * 1e15 / mean);
    out.collectives.push_back(c);
  }
  std::sort(out.collectives.begin(), out.collectives.end(), [](const auto& a, const auto& b) {
    return a.total_fs != b.total_fs ? a.total_fs > b.total_fs : a.label < b.label;
  });
}

void Collector::links() {
  for (std::size_t i = 0; i < machine.fabric().size(); ++i) {
    const models::LinkModel& m = machine.fabric().link(i).model();
    if (m.bytes().count() == 0) continue;
    const topology::Link& spec = machine.fabric().spec(i);
    out.links.push_back({spec.name, m.bytes().count(), m.busy().count(), m.queued().count()});
    switch (spec.kind) {
      case topology::LinkKind::DieCrossing:
        crossing_bytes += m.bytes().count();
        break;
      case topology::LinkKind::NeuronLink:
        neuron_link_bytes += m.bytes().count();
        break;
      default:
        on_chip_bytes += m.bytes().count();
        break;
    }
    out.bounds.link_fs =
        std::max(out.bounds.link_fs, base::transfer_time(m.bytes(), spec.bandwidth).count());
  }
  std::sort(out.links.begin(), out.links.end(), [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
}

void Collector::transfers() {
  for (std::size_t r = 0; r < machine.ranks().size(); ++r) {
    const modules::TransferCounts& t = machine.cc(r).counts();
    out.bytes_sent += t.sent_bytes;
    out.bytes_received += t.received_bytes;
    EventCounts c;
    c.hbm_read_bytes = t.hbm_read_bytes;
    c.hbm_write_bytes = t.hbm_write_bytes;
    c.hbm_activates = (t.hbm_read_bytes + t.hbm_write_bytes) / chip.hbm.row.count();
    c.dma_bytes = t.dma_bytes;
    counts += c;
    dynamic_by_part += models::dynamic_energy(c, chip.energy).total();
  }
  EventCounts on_links;
  on_links.die_crossing_bytes = crossing_bytes;
  on_links.link_bytes = neuron_link_bytes;
  counts += on_links;
  dynamic_by_part += models::dynamic_energy(on_links, chip.energy).total();
  out.hbm_read_bytes = counts.hbm_read_bytes;
  out.hbm_write_bytes = counts.hbm_write_bytes;
  out.hbm_scale_bytes = counts.hbm_scale_bytes;
  out.spill_save_bytes = counts.spill_save_bytes;
  out.spill_reload_bytes = counts.spill_reload_bytes;
  out.dma_bytes = counts.dma_bytes;
}

void Collector::bounds() {
  std::map<std::pair<std::int64_t, std::int64_t>, Int128> stack_bytes;
  const base::Rate stack_peak(chip.hbm.bandwidth.count() / chip.stacks);
  // Writes that the controllers of a stack hold count as done.
  const Int128 held = Int128(chip.hbm.queue_depth) * chip.hbm.channels * chip.hbm.pseudo_channels *
                      chip.hbm.burst.count();
  for (std::size_t r = 0; r < machine.ranks().size(); ++r) {
    const RankStats& s = machine.ranks()[r]->stats();
    const compile::RankPlace& place = state.plan->places[r];
    std::int64_t compute = 0, dma = 0, hbm = 0;
    for (std::size_t i = 0; i < profiles(); ++i) {
      const models::KernelProfile& p = profile(i);
      const std::int64_t n = s.kernels[i].executions;
      compute += p.tensor_ideal.count() * n;
      dma += p.counts.dma_bytes * n;
      hbm += (p.counts.hbm_read_bytes + p.counts.hbm_write_bytes) * n;
    }
    const modules::TransferCounts& t = machine.cc(r).counts();
    dma += t.dma_bytes / place.stacks;
    hbm += (t.hbm_read_bytes + t.hbm_write_bytes) / place.stacks;
    out.bounds.compute_fs = std::max(out.bounds.compute_fs, compute);
    const std::int64_t rate = chip.dma.plateau_rate.count() * chip.dma.engines * place.cores;
    out.bounds.dma_fs = std::max(out.bounds.dma_fs,
                                 base::transfer_time(base::Bytes(dma), base::Rate(rate)).count());
    Int128& on_stack = stack_bytes[{place.chip, place.first_stack}];
    on_stack += hbm;
    const auto time = static_cast<std::int64_t>(
        base::ceil_div(std::max<Int128>(on_stack - held, 0) * base::kFemtosPerSecond,
                       stack_peak.count()));
    out.bounds.hbm_fs = std::max(out.bounds.hbm_fs, time);
    out.bounds.critical_path_fs = std::max(out.bounds.critical_path_fs,
                                           machine.ranks()[r]->sequencer().longest_chain().count());
  }
}

void Collector::energy() {
  const models::HbmStack stack(chip.hbm, chip.stacks);
  EventCounts refresh;
  refresh.hbm_refreshes = stack.refreshes(state.end) * chip.stacks * out.chips;
  counts += refresh;
  dynamic_by_part += models::dynamic_energy(refresh, chip.energy).total();
  out.energy = models::dynamic_energy(counts, chip.energy);
  base::EnergyAccounts fixed = models::static_energy(
      chip, state.end, base::Time(static_cast<std::int64_t>(core_busy / out.chips)));
  for (base::Energy& e : fixed.of) e = base::Energy(e.count() * out.chips);
  out.energy += fixed;
  before_regulator = dynamic_by_part + fixed.total();
  models::add_regulator_loss(out.energy, chip.energy);
}

void Collector::assumed() {
  const auto starts = [](const std::string& path, const char* prefix) {
    return path.rfind(prefix, 0) == 0;
  };
  bool collectives = false, host = false;
  for (const stats::CollectiveResult& c : out.collectives)
    collectives = collectives || c.algorithm != "local";
  for (const auto& routes : state.host_routes) host = host || !routes.empty();
  for (const config::AssumedNumber& a : state.run->assumed) {
    if (starts(a.path, "chip.on_chip") && on_chip_bytes + crossing_bytes == 0) continue;
    if (starts(a.path, "fabric") && neuron_link_bytes == 0) continue;
    if (starts(a.path, "chip.collectives") && !collectives) continue;
    if (starts(a.path, "chip.host") && !host) continue;
    out.assumed.push_back({a.path, a.value, a.reason});
  }
}

void Collector::checks() {
  const auto add = [&](std::string name, bool passed, std::string detail) {
    out.checks.push_back({std::move(name), passed, std::move(detail)});
  };
  const auto above = [&](const char* name, std::int64_t bound) {
    add(fmt::format("step time is not below its {} bound", name), out.step_fs >= bound,
        fmt::format("{} fs >= {} fs", out.step_fs, bound));
  };
  above("compute", out.bounds.compute_fs);
  above("DMA", out.bounds.dma_fs);
  above("HBM", out.bounds.hbm_fs);
  above("link", out.bounds.link_fs);
  above("critical path", out.bounds.critical_path_fs);
  bool busy = true;
  for (const stats::LinkResult& l : out.links) busy = busy && l.busy_fs <= out.step_fs;
  for (std::int64_t e : out.engine_busy_fs) busy = busy && e <= out.step_fs;
  add("no engine or link is busy for longer than the step", busy,
      fmt::format("{} links", out.links.size()));
  add("bytes sent = bytes received", out.bytes_sent == out.bytes_received,
      fmt::format("{} B and {} B", out.bytes_sent, out.bytes_received));
  bool whole = true;
  for (const auto& rank : machine.ranks()) {
    std::int64_t sum = 0;
    for (std::int64_t c : rank->stats().class_fs) sum += c;
    whole = whole && sum == out.step_fs;
  }
  add("every femtosecond of every rank has one class", whole, fmt::format("{} ranks", out.ranks));
  const base::Energy accounts = out.energy.total() - out.energy[base::EnergyAccount::Regulator];
  add("energy is the sum of its accounts", accounts == before_regulator,
      "accounts against the sum over kernels, transfers, refreshes and static power, in "
      "attojoules");
}

}  // namespace

stats::Results collect(const Machine& machine) {
  Collector c(machine);
  c.names();
  c.flops();
  c.kernels();
  c.breakdown();
  c.collectives();
  c.links();
  c.transfers();
  c.bounds();
  c.energy();
  c.assumed();
  c.checks();
  return std::move(c.out);
}

}  // namespace trn3sim::sim
