// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "trn3sim/config/run_spec.hpp"

namespace trn3sim::config {
namespace {

// Keys that are part of the description of a chip and are checked, but that no model of a run
// reads: the timings of single bursts are those of `trn3sim hbm`. The page docs/modelling.md names
// them too.
constexpr std::array<std::string_view, 14> kNoEffect = {
    "chip.collectives.cores_used", "chip.dma.collective_packet",
    "chip.gpsimd.lanes",           "chip.hbm.exact.postponed_refreshes",
    "chip.hbm.exact.t_ccd_r",      "chip.hbm.exact.t_rc",
    "chip.hbm.exact.t_rref_d",     "chip.hbm.exact.t_wtr_s",
    "chip.logical_core_size",      "chip.psum.capacity",
    "chip.sbuf.capacity",          "chip.scalar.lanes",
    "chip.vector.lanes",           "run.seed"};

}  // namespace

std::vector<std::string> overrides_without_effect(const std::vector<std::string>& overrides) {
  std::vector<std::string> paths;
  for (const std::string& text : overrides) {
    const std::string path = text.substr(0, text.find('='));
    if (std::find(kNoEffect.begin(), kNoEffect.end(), path) != kNoEffect.end())
      paths.push_back(path);
  }
  return paths;
}

}  // namespace trn3sim::config
