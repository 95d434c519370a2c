// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention without fusion: the scores of all pairs (masked ones too) go through HBM between a
// batched GEMM, a softmax and the next GEMM. The parts run one after the other: the loads of a part
// start when all stores of the part before are complete. Keys and values are read for every query
// head. The backward pass reads the probabilities that the forward pass wrote.
#include <algorithm>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"

namespace trn3sim::compile {
namespace {

using models::CoreProgram;
using models::Engine;
using models::Instruction;
using models::StreamNode;
using models::TileProgram;

KernelSpec gemm_part(const KernelSpec& spec, std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelSpec part;
  part.m = m;
  part.n = n;
  part.k = k;
  part.batch = spec.batch * spec.heads;
  part.in = spec.in;
  part.out = spec.out;
  part.b_weight = false;
  part.cores = spec.cores;
  return part;
}

KernelSpec softmax_part(const KernelSpec& spec, const char* fn, std::int64_t inputs) {
  KernelSpec part;
  part.kind = KernelKind::Vector;
  part.fn = fn;
  part.elems = spec.batch * spec.heads * spec.sq * spec.skv;
  part.in = spec.in;
  part.out = spec.out;
  part.rd = inputs * base::storage_bytes(spec.in, part.elems);
  part.wr = base::storage_bytes(spec.in, part.elems);
  part.cores = spec.cores;
  return part;
}

// A semaphore that stores signal when they complete.
struct StoreSemaphore {
  std::int32_t id = 0;
  std::int32_t waiter = -1;  // stream
  std::int64_t tokens = 0;   // left when everything is done
};

// Signals and waits of a semaphore by the program of one core, loops multiplied out.
std::vector<StoreSemaphore> store_semaphores(const TileProgram& program, const CoreProgram& core) {
  std::vector<StoreSemaphore> all(core.semaphores.size());
  std::vector<bool> stored(core.semaphores.size(), false);
  for (std::size_t s = 0; s < all.size(); ++s) {
    all[s] = {static_cast<std::int32_t>(s), -1, core.semaphores[s]};
  }
  for (std::size_t e = 0; e < models::kEngines; ++e) {
    const std::vector<std::int64_t> counts = models::execution_counts(program, core.streams[e]);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const Instruction& in = program.instructions[i];
      for (const auto& w : in.waits) {
        if (w.count == 0) continue;
        all[w.id].waiter = static_cast<std::int32_t>(e);
        all[w.id].tokens -= counts[i] * w.count;
      }
      for (const auto& g : in.signals) {
        if (g.count > 0) all[g.id].tokens += counts[i] * g.count;
      }
      if (in.dma < 0) continue;
      const models::DmaTransfer& t = program.transfers[static_cast<std::size_t>(in.dma)];
      for (const auto& g : t.signals) {
        if (g.count == 0) continue;
        all[g.id].tokens += counts[i] * g.count;
        if (t.direction == models::DmaDirection::SbufToHbm) stored[g.id] = true;
      }
    }
  }
  std::vector<StoreSemaphore> out;
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (stored[s] && all[s].tokens > 0) out.push_back(all[s]);  // 0: an earlier part, all taken
  }
  return out;
}

// SyncE goes on when every store of the program so far is complete: the streams that wait for
// buffers to come back take all of them and tell SyncE.
void wait_for_stores(TileProgram& program, CoreProgram& core) {
  const std::vector<StoreSemaphore> list = store_semaphores(program, core);
  CoreBuilder build(program, core);
  for (const StoreSemaphore& s : list) {
    Instruction all_back;
    add_wait(all_back, {s.id}, s.tokens);
    const auto waiter = s.waiter < 0 ? Engine::Sync : static_cast<Engine>(s.waiter);
    if (waiter == Engine::Sync) {
      build.emit(Engine::Sync, all_back);
      continue;
    }
    const Semaphore stored = build.semaphore();
    add_signal(all_back, stored);
    build.emit(waiter, all_back);
    Instruction proceed;
    add_wait(proceed, stored);
    build.emit(Engine::Sync, proceed);
  }
}

// Appends `part`, its operands under `names` (in the part's order; equal names are one operand).
void append(TileProgram& program, TileProgram part, const std::vector<std::string>& names) {
  TRN3SIM_CHECK(names.size() == part.operands.size(), "a name for each operand");
  const auto instructions = static_cast<std::int32_t>(program.instructions.size());
  const auto transfers = static_cast<std::int32_t>(program.transfers.size());
  std::vector<std::int32_t> operand_of;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto known = std::ranges::find(program.operands, names[i], &models::Operand::name);
    operand_of.push_back(static_cast<std::int32_t>(known - program.operands.begin()));
    if (known == program.operands.end())
      program.operands.push_back({names[i], part.operands[i].bytes, false});
  }
  if (program.cores.size() < part.cores.size()) program.cores.resize(part.cores.size());
  std::vector<std::uint16_t> shift;
  for (const CoreProgram& core : program.cores)
    shift.push_back(static_cast<std::uint16_t>(core.semaphores.size()));
  // Cores may share instructions, so their semaphores must move alike.
  const std::uint16_t base_id = *std::ranges::max_element(shift);
  for (CoreProgram& core : program.cores) core.semaphores.resize(base_id, 0);
  for (models::DmaTransfer& t : part.transfers) {
    t.operand = operand_of[static_cast<std::size_t>(t.operand)];
    for (auto& g : t.signals) g.id = static_cast<std::uint16_t>(g.id + (g.count > 0 ? base_id : 0));
    program.transfers.push_back(t);
  }
  for (Instruction& i : part.instructions) {
    if (i.dma >= 0) i.dma += transfers;
    for (auto& w : i.waits) w.id = static_cast<std::uint16_t>(w.id + (w.count > 0 ? base_id : 0));
    for (auto& g : i.signals) g.id = static_cast<std::uint16_t>(g.id + (g.count > 0 ? base_id : 0));
    program.instructions.push_back(i);
  }
  for (std::size_t c = 0; c < part.cores.size(); ++c) {
    CoreProgram& core = program.cores[c];
    core.semaphores.insert(core.semaphores.end(), part.cores[c].semaphores.begin(),
                           part.cores[c].semaphores.end());
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      const auto nodes = static_cast<std::int32_t>(core.streams[e].size());
      for (StreamNode node : part.cores[c].streams[e]) {
        if (node.kind == StreamNode::Kind::Instruction) node.index += instructions;
        if (node.kind == StreamNode::Kind::LoopEnd) node.index += nodes;
        core.streams[e].push_back(node);
      }
    }
  }
  program.sbuf_bytes_per_partition =
      std::max(program.sbuf_bytes_per_partition, part.sbuf_bytes_per_partition);
  program.psum_banks = std::max(program.psum_banks, part.psum_banks);
}

struct Part {
  KernelSpec spec;
  std::vector<std::string> operands;
};

std::vector<Part> parts_of(const KernelSpec& spec) {
  const std::int64_t q = spec.sq, k = spec.skv, d = spec.d;
  if (spec.kind == KernelKind::AttentionForward) {
    return {{gemm_part(spec, q, k, d), {"q", "k", "scores"}},
            {softmax_part(spec, "softmax", 1), {"scores", "probabilities"}},
            {gemm_part(spec, q, d, k), {"probabilities", "v", "o"}}};
  }
  return {{gemm_part(spec, k, d, q), {"probabilities", "do", "dv"}},
          {gemm_part(spec, q, k, d), {"do", "v", "dp"}},
          {softmax_part(spec, "softmax_bwd", 2), {"dp", "probabilities", "ds"}},
          {gemm_part(spec, q, d, k), {"ds", "k", "dq"}},
          {gemm_part(spec, k, d, q), {"ds", "q", "dk"}}};
}

}  // namespace

models::TileProgram compile_unfused_attention(const KernelSpec& spec,
                                              const config::ChipSpec& chip) {
  TileProgram program;
  bool first = true;
  for (const Part& part : parts_of(spec)) {
    if (!first) {
      for (CoreProgram& core : program.cores) wait_for_stores(program, core);
    }
    first = false;
    append(program, compile_kernel(part.spec, chip), part.operands);
  }
  return program;
}

std::string describe_unfused_attention(const KernelSpec& spec, const config::ChipSpec& chip) {
  std::string text = spec.label() + ": scores through HBM";
  for (const Part& part : parts_of(spec)) text += "; " + describe_mapping(part.spec, chip);
  return text;
}

}  // namespace trn3sim::compile
