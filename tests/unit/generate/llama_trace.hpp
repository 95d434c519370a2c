// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Generated traces, read back.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "trn3sim/base/error.hpp"
#include "trn3sim/generate/llama.hpp"
#include "trn3sim/trace/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace trn3sim::generate {

inline LlamaPlan plan_of(std::string_view preset, std::int64_t tp, std::int64_t dp,
                         std::int64_t micro_steps = 1) {
  LlamaPlan plan;
  plan.name = std::string(preset);
  plan.dims = llama_preset(preset);
  plan.tp = tp;
  plan.dp = dp;
  plan.gbs = dp * micro_steps;
  return plan;
}

inline trace::Program program_of(const LlamaPlan& plan) {
  static int count = 0;
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) /
      ("trn3sim_llama_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".trace");
  std::ofstream(file, std::ios::binary) << generate_llama(plan);
  trace::Program program = trace::read(file);
  std::filesystem::remove(file);
  return program;
}

inline const trace::Block& block_of(const trace::Program& p, std::string_view id) {
  for (const trace::Block& b : p.blocks)
    if (b.id == id) return b;
  throw std::runtime_error("no block " + std::string(id));
}

inline const trace::Op& op_of(const trace::Program& p, std::string_view block,
                              std::string_view id) {
  for (const trace::Op& op : block_of(p, block).ops)
    if (op.id == id) return op;
  throw std::runtime_error("no op " + std::string(id) + " in " + std::string(block));
}

// Sum over all phases of the collectives of one kind and group.
inline trace::GroupTotals sum_of(const trace::Totals& totals, std::string_view kind,
                                 std::string_view group) {
  trace::GroupTotals sum;
  for (const trace::GroupTotals& g : totals.collectives) {
    if (g.kind != kind || g.group != group) continue;
    sum.count += g.count;
    sum.in_bytes += g.in_bytes;
    sum.out_bytes += g.out_bytes;
  }
  return sum;
}

}  // namespace trn3sim::generate
