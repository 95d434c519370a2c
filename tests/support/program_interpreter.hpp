// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a tile program without hardware: checks that it ends, that every semaphore has one waiting
// and one signalling party, and counts what it does. A token carries the time at which it came, so
// the same walk gives a coarse time line (in-order engines, documented costs, one DMA server per
// core): enough to see whether a kernel overlaps its engines.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/instruction.hpp"

namespace trn3sim::test {

struct ProgramRun {
  std::array<std::int64_t, base::kDTypes> macs{};
  std::vector<std::int64_t> macs_per_core;
  std::map<std::string, std::int64_t> loaded, stored;  // by operand name
  std::int64_t transposes = 0, instructions = 0, peak_outstanding = 0;
  std::int64_t nodes = 0;                          // stream nodes of all cores
  double duration_ns = 0;                          // of the slowest core
  std::array<double, models::kEngines> busy_ns{};  // of core 0
  double dma_ns = 0;                               // of core 0
  [[nodiscard]] std::int64_t total_macs() const {
    std::int64_t t = 0;
    for (const auto m : macs) t += m;
    return t;
  }
};

class ProgramInterpreter {
 public:
  ProgramInterpreter(const models::TileProgram& program, const config::ChipSpec& chip)
      : program_(program), chip_(chip) {}

  // Throws std::runtime_error on deadlock or a semaphore with several parties.
  ProgramRun run() {
    for (std::size_t c = 0; c < program_.cores.size(); ++c) run_core(c);
    return result_;
  }

 private:
  using Kind = models::StreamNode::Kind;
  struct Stream {
    std::size_t node = 0;
    std::vector<std::int32_t> left;  // iterations left of open loops
    double time = 0, load_free = 0, last_start = 0;
  };

  void run_core(std::size_t c) {
    const models::CoreProgram& core = program_.cores[c];
    result_.macs_per_core.push_back(0);
    tokens_.assign(core.semaphores.size(), {});
    waiters_.assign(core.semaphores.size(), {});
    signallers_.assign(core.semaphores.size(), {});
    for (std::size_t s = 0; s < core.semaphores.size(); ++s)
      tokens_[s].assign(core.semaphores[s], 0.0);
    queue_next_.clear();
    dma_free_ = 0;
    core_ = c;
    std::array<Stream, models::kEngines> streams;
    for (const auto& nodes : core.streams) result_.nodes += static_cast<std::int64_t>(nodes.size());
    // The ready stream with the earliest time goes first.
    while (true) {
      std::size_t chosen = models::kEngines;
      bool unfinished = false;
      for (std::size_t e = 0; e < models::kEngines; ++e) {
        skip_loops(core.streams[e], streams[e]);
        if (streams[e].node >= core.streams[e].size()) continue;
        unfinished = true;
        const auto& in = instruction(core.streams[e][streams[e].node]);
        const bool ready = std::ranges::all_of(in.waits, [&](const auto& w) {
          return w.count == 0 || tokens_[w.id].size() >= w.count;
        });
        if (ready && (chosen == models::kEngines ||
                      start_of(in, streams[e]) <
                          start_of(instruction(core.streams[chosen][streams[chosen].node]),
                                   streams[chosen])))
          chosen = e;
      }
      if (!unfinished) break;
      if (chosen == models::kEngines) throw std::runtime_error(deadlock(core, streams));
      step(core, static_cast<models::Engine>(chosen), streams[chosen]);
    }
    for (const Stream& s : streams) end_ = std::max(end_, s.time);
    result_.duration_ns = std::max(result_.duration_ns, end_);
    for (std::size_t s = 0; s < core.semaphores.size(); ++s) {
      if (waiters_[s].size() > 1)
        fail("semaphore " + std::to_string(s) + " has several waiting streams");
      if (signallers_[s].size() > 1)
        fail("semaphore " + std::to_string(s) + " has several signalling parties");
    }
  }

  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error(what); }

  [[nodiscard]] const models::Instruction& instruction(const models::StreamNode& node) const {
    return program_.instructions.at(static_cast<std::size_t>(node.index));
  }

  static void skip_loops(const std::vector<models::StreamNode>& nodes, Stream& s) {
    while (s.node < nodes.size() && nodes[s.node].kind != Kind::Instruction) {
      const auto& node = nodes[s.node];
      if (node.kind == Kind::LoopBegin) {
        if (node.index < 1) fail("a loop without trips");
        s.left.push_back(node.index);
        ++s.node;
      } else if (--s.left.back() > 0) {
        s.node = static_cast<std::size_t>(node.index) + 1;
      } else {
        s.left.pop_back();
        ++s.node;
      }
    }
  }

  [[nodiscard]] double start_of(const models::Instruction& in, const Stream& s) const {
    double t = s.time;
    for (const auto& w : in.waits) {
      if (w.count > 0) t = std::max(t, tokens_[w.id][w.count - 1U]);
    }
    return t;
  }

  void step(const models::CoreProgram&, models::Engine engine, Stream& s) {
    const models::StreamNode& node =
        program_.cores[core_].streams[static_cast<std::size_t>(engine)][s.node];
    const models::Instruction& in = instruction(node);
    double start = start_of(in, s);
    for (const auto& w : in.waits) {
      if (w.count == 0) continue;
      waiters_[w.id].insert(static_cast<int>(engine));
      tokens_[w.id].erase(tokens_[w.id].begin(), tokens_[w.id].begin() + w.count);
    }
    ++result_.instructions;
    count(in);
    const double cost = cost_ns(in, engine);
    double done = 0;
    if (in.op == models::Opcode::LoadStationary) {  // behind the running multiply
      double tokens_at = 0;
      if (start > s.time) tokens_at = start;
      s.load_free = std::max({tokens_at, s.last_start, s.load_free}) + cost;
      done = s.load_free;
    } else {
      if (in.op == models::Opcode::MultiplyMoving) {
        start = std::max(start, s.load_free);
        s.last_start = start;
      }
      s.time = start + cost;
      done = s.time + (engine == models::Engine::Tensor ? 133.0
                       : in.op == models::Opcode::Nop   ? 0.0
                                                        : 50.0);
      if (core_ == 0) result_.busy_ns[static_cast<std::size_t>(engine)] += cost;
    }
    if (in.op == models::Opcode::DmaStart)
      transfer(program_.transfers.at(static_cast<std::size_t>(in.dma)), s.time);
    for (const auto& g : in.signals) {
      if (g.count > 0) signal(g.id, g.count, static_cast<int>(engine), done + 53.0);
    }
    ++s.node;
  }

  void signal(std::uint16_t id, std::uint16_t count, int party, double time) {
    signallers_[id].insert(party);
    for (int i = 0; i < count; ++i)
      tokens_[id].push_back(tokens_[id].empty() ? time : std::max(time, tokens_[id].back()));
  }

  void transfer(const models::DmaTransfer& t, double now) {
    const auto bytes = static_cast<std::int64_t>(t.rows) * t.row_bytes;
    auto& by_operand =
        t.direction == models::DmaDirection::HbmToSbuf ? result_.loaded : result_.stored;
    by_operand[program_.operands.at(static_cast<std::size_t>(t.operand)).name] += bytes;
    if (t.queue < 0 || t.queue >= chip_.dma.queues_per_engine) fail("no such queue");
    const double ghz = 1e-9;
    const double packets = static_cast<double>(t.rows) *
                           static_cast<double>((t.row_bytes + chip_.dma.packet.count() - 1) /
                                               chip_.dma.packet.count());
    const double overhead = static_cast<double>(chip_.dma.packet.count()) / ghz *
                            (1.0 / static_cast<double>(chip_.dma.plateau_rate.count()) -
                             1.0 / static_cast<double>(chip_.dma.bus_rate.count()));
    const double move =
        (static_cast<double>(bytes) / (static_cast<double>(chip_.dma.bus_rate.count()) * ghz) +
         packets * overhead) /
        static_cast<double>(chip_.dma.engines);
    double& next = queue_next_[t.queue];
    const double begin = std::max(now + 1300.0, next);
    const double end = std::max(begin, dma_free_) + move;
    dma_free_ = end;
    next = std::max(begin + 860.0, end);
    end_ = std::max(end_, end);
    if (core_ == 0) result_.dma_ns += move;
    while (!in_flight_.empty() && *in_flight_.begin() <= now) in_flight_.erase(in_flight_.begin());
    in_flight_.insert(end);
    result_.peak_outstanding =
        std::max(result_.peak_outstanding, static_cast<std::int64_t>(in_flight_.size()));
    for (const auto& g : t.signals) {
      if (g.count > 0) signal(g.id, g.count, 100 + t.queue, end + 250.0);
    }
  }

  void count(const models::Instruction& in) {
    if (in.op == models::Opcode::Transpose) ++result_.transposes;
    if (in.op != models::Opcode::MultiplyMoving) return;
    const auto pack =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(rate(in.dtype))) * in.sparsity;
    if (in.rows < 1 || in.rows > chip_.tensor.rows * pack || in.columns < 1 ||
        in.columns > chip_.tensor.columns || in.elements < 1 ||
        in.elements > chip_.tensor.moving_max) {
      fail("a multiply outside the array");
    }
    const std::int64_t macs = std::int64_t{in.rows} * in.columns * in.elements;
    result_.macs[static_cast<std::size_t>(in.dtype)] += macs;
    result_.macs_per_core.back() += macs;
  }

  [[nodiscard]] double rate(base::DType t) const {
    return chip_.tensor.macs_per_pe_cycle[static_cast<std::size_t>(t)];
  }

  [[nodiscard]] double cost_ns(const models::Instruction& in, models::Engine engine) const {
    using models::Opcode;
    const double n = in.elements;
    const bool two_byte = in.dtype != base::DType::Fp32 && in.dtype != base::DType::Tf32;
    const bool psum = in.source == models::Space::Psum || in.destination == models::Space::Psum;
    if (engine == models::Engine::Tensor) {
      const double passes = rate(in.dtype) < 1 ? 1 / rate(in.dtype) : 1;
      double cycles = 0;  // Nop: none
      if (in.op == Opcode::MultiplyMoving) {
        cycles = std::max(64.0, n) * passes +
                 static_cast<double>(chip_.tensor.matmul_overhead_cycles);
      }
      if (in.op == Opcode::LoadStationary) cycles = in.columns / 4.0;
      if (in.op == Opcode::Transpose) cycles = chip_.tensor.background_transpose ? 0 : 128.0;
      return cycles / 2.4;
    }
    const auto& lane = engine == models::Engine::Vector   ? chip_.vector
                       : engine == models::Engine::Scalar ? chip_.scalar
                                                          : chip_.gpsimd;
    double cycles = n;
    switch (in.op) {
      case Opcode::DmaStart:
      case Opcode::Nop:
        return 10;
      case Opcode::TensorCopy:
      case Opcode::TensorScalar:
        if (two_byte)
          cycles = n / static_cast<double>(psum ? std::min<std::int64_t>(2, lane.max_speedup_16bit)
                                                : lane.max_speedup_16bit);
        break;
      case Opcode::TensorTensor:
        cycles = psum && !in.two_inputs_sbuf ? n : two_byte ? n : 2 * n;
        break;
      case Opcode::TensorReduce:
        cycles = two_byte ? n / 2 : n;
        break;
      case Opcode::ActivationReduce:
        cycles = n + 64;
        break;
      case Opcode::Exponential:
        cycles = n / (two_byte ? 4 : 2);
        break;
      case Opcode::QuantizeMx:
        cycles = n / 4;
        break;
      case Opcode::Reciprocal:
        cycles = 8 * n;
        break;
      default:
        break;
    }
    if (engine == models::Engine::Gpsimd) cycles += 150;
    return std::max(64.0, cycles) / (static_cast<double>(lane.clock.count()) * 1e-9);
  }

  [[nodiscard]] std::string deadlock(const models::CoreProgram& core,
                                     const std::array<Stream, models::kEngines>& streams) const {
    std::string text = "deadlock on core " + std::to_string(core_) + ":";
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      if (streams[e].node >= core.streams[e].size()) continue;
      text += " stream " + std::to_string(e) + " at node " + std::to_string(streams[e].node) +
              " waits for";
      for (const auto& w : instruction(core.streams[e][streams[e].node]).waits) {
        if (w.count > 0 && tokens_[w.id].size() < w.count)
          text += " semaphore " + std::to_string(w.id);
      }
      text += ";";
    }
    return text;
  }

  const models::TileProgram& program_;
  const config::ChipSpec& chip_;
  ProgramRun result_;
  std::size_t core_ = 0;
  std::vector<std::deque<double>> tokens_;
  std::vector<std::set<int>> waiters_, signallers_;
  std::map<int, double> queue_next_;
  std::multiset<double> in_flight_;
  double dma_free_ = 0, end_ = 0;
};

// A Trainium3 as its public documents describe it.
inline config::ChipSpec trainium3() {
  config::ChipSpec c;
  c.name = "trn3";
  c.cores = 8;
  c.stacks = 4;
  c.tensor.rows = c.tensor.columns = 128;
  c.tensor.clock = base::Frequency(2'400'000'000);
  c.tensor.macs_per_pe_cycle = {0.25, 1, 1, 1, 2, 4, 4};
  c.tensor.moving_max = 512;
  c.tensor.min_interval_cycles = 64;
  c.tensor.matmul_overhead_cycles = 9;
  c.tensor.load_speedup = 4;
  c.tensor.fill_cycles = 320;
  c.tensor.sparse_weights = true;
  c.tensor.background_transpose = true;
  for (auto* lane : {&c.vector, &c.scalar, &c.gpsimd}) {
    lane->clock = base::Frequency(1'200'000'000);
    lane->lanes = 128;
    lane->min_interval_cycles = 64;
    lane->access_cycles = 60;
  }
  c.gpsimd.access_cycles = 150;
  c.vector.max_speedup_16bit = 4;
  c.vector.exponential_speedup = 4;
  c.vector.quantize_speedup = 4;
  c.scalar.max_speedup_16bit = 2;
  c.vector.fast_8bit = c.scalar.fast_8bit = true;
  c.sbuf = {base::Bytes(32 << 20), 128, base::Bytes(245'752), 0.5, "fast_modes"};
  c.psum = {base::Bytes(2 << 20), 8, base::Bytes(2048), "none"};
  c.sync.semaphores = 256;
  c.dma.engines = 16;
  c.dma.queues_per_engine = 16;
  c.dma.bus_rate = base::Rate(38'400'000'000);
  c.dma.plateau_rate = base::Rate(33'000'000'000);
  c.dma.packet = base::Bytes(4096);
  c.dma.issue_interval = base::nanoseconds(860);
  c.hbm.bandwidth = base::Rate(4'915'200'000'000);
  return c;
}

// A Trainium2: no fast exponential, no MX formats, slower VectorE and DMA.
inline config::ChipSpec trainium2() {
  config::ChipSpec c = trainium3();
  c.name = "trn2";
  c.tensor.macs_per_pe_cycle = {0.25, 1, 1, 1, 2, 0, 0};
  c.tensor.background_transpose = false;
  c.vector.clock = base::Frequency(960'000'000);
  c.vector.exponential_speedup = 0;
  c.vector.quantize_speedup = 0;
  c.scalar.max_speedup_16bit = 1;
  c.vector.fast_8bit = c.scalar.fast_8bit = false;
  c.sbuf = {base::Bytes(28 << 20), 128, base::Bytes(212'984), 0.5, "fast_modes"};
  c.dma.bus_rate = base::Rate(27'200'000'000);
  c.dma.plateau_rate = base::Rate(23'000'000'000);
  c.hbm.bandwidth = base::Rate(2'918'400'000'000);
  return c;
}

}  // namespace trn3sim::test
