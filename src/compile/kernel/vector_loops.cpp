// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/vector_loops.hpp"

namespace trn3sim::compile {
namespace {

using models::Opcode;

const VectorFunction& function_of(const KernelSpec& spec) {
  return vector_function(spec.fn, spec.label());
}

// `bytes` in equal streams; none if there is nothing to move.
Streams equal_streams(std::int64_t bytes, int count) {
  Streams streams;
  for (int i = 0; i < std::max(1, count) && bytes > 0; ++i) {
    const std::int64_t n = std::max(1, count);
    streams.push_back({bytes * (i + 1) / n - bytes * i / n, false});
  }
  return streams;
}

int loads_of(const Pass& pass) {
  return pass.op == Opcode::TensorTensor || pass.op == Opcode::Select ? 2 : 1;
}

// Sums of squares, maxima and statistics leave one number per row.
bool stores(const Pass& pass) {
  const bool sum = pass.op == Opcode::ActivationReduce && !pass.transcendental;
  return !sum && pass.op != Opcode::TensorReduce && pass.op != Opcode::BnStats;
}

std::vector<Loop> loops_of_passes(const KernelSpec& spec) {
  const VectorFunction& f = function_of(spec);
  const Stream intermediate{base::storage_bytes(spec.in, spec.elems), true};
  const Streams inputs = equal_streams(spec.rd, f.inputs);
  Streams outputs = equal_streams(spec.wr, f.outputs);
  std::vector<Loop> loops(f.passes.size());
  std::size_t next = 0;
  for (std::size_t p = 0; p < loops.size(); ++p) {
    loops[p].work.passes.push_back({f.passes[p], spec.elems, false});
    for (int i = 0; i < loads_of(f.passes[p]) && f.inputs > 0; ++i)
      loops[p].loads.push_back(next < inputs.size() ? inputs[next++] : intermediate);
  }
  for (; next < inputs.size(); ++next) loops.front().loads.push_back(inputs[next]);
  for (std::size_t p = loops.size(); p-- > 0;) {
    const bool last = p + 1 == loops.size();
    if (!last && !stores(f.passes[p])) continue;
    if (!outputs.empty()) {
      loops[p].stores.push_back(outputs.back());
      outputs.pop_back();
    } else if (!last) {
      loops[p].stores.push_back(intermediate);
    }
  }
  for (const Stream& s : outputs) loops.back().stores.push_back(s);
  return loops;
}

}  // namespace

std::int64_t total(const Streams& streams) {
  std::int64_t bytes = 0;
  for (const Stream& s : streams) bytes += s.bytes;
  return bytes;
}

std::vector<Loop> loops_of(const KernelSpec& spec) {
  const VectorFunction& f = function_of(spec);
  std::vector<Loop> loops;
  if (spec.memory_reuse) {
    Loop loop{{}, equal_streams(spec.rd, f.inputs), equal_streams(spec.wr, f.outputs)};
    for (const Pass& pass : f.passes) loop.work.passes.push_back({pass, spec.elems, false});
    loops.push_back(std::move(loop));
  } else {
    loops = loops_of_passes(spec);
  }
  for (const Epilogue& e : spec.epilogues) {
    for (const Pass& pass : vector_function(e.fn, spec.label()).passes)
      loops.back().work.passes.push_back({pass, e.elems, true});
  }
  return loops;
}

}  // namespace trn3sim::compile
