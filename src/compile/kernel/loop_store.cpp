// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// LoopCore: results on their way to HBM.
#include <algorithm>
#include <map>

#include "compile/kernel/loop_kernel.hpp"

namespace trn3sim::compile {

using models::DmaTransfer;

namespace {

// A store of some rows: it needs the tiles up to these, by eviction path.
struct Store {
  std::int64_t rows = 0, width = 0;
  std::array<std::int64_t, 2> needs{0, 0};  // complete tiles of the path, all regions counted
};

models::Engine starter(const std::string& name) {
  if (name == "sync") return models::Engine::Sync;
  if (name == "gpsimd") return models::Engine::Gpsimd;
  return name == "scalar" ? models::Engine::Scalar : models::Engine::Vector;
}

}  // namespace

// Rows of a region's results leave when their last tile is complete.
void LoopCore::store() {
  const std::size_t row_dim = stationary_a_ ? kM : kN, width_dim = stationary_a_ ? kN : kM;
  std::array<std::int64_t, 2> complete{0, 0}, taken{0, 0};
  std::size_t t = 0;
  while (t < tiles_.size()) {
    const std::int32_t region = tiles_[t].store;
    const Box& box = nest_.regions[kStore][static_cast<std::size_t>(region)];
    const std::int64_t step = std::min(map_.c.store_width, box.size[width_dim]);
    std::map<std::pair<std::int64_t, std::int64_t>, Store> stores;
    std::array<bool, 2> used{false, false};
    for (; t < tiles_.size() && tiles_[t].store == region; ++t) {
      const Accumulation& tile = tiles_[t];
      used[path_of(t)] = true;
      if (!tile.final) continue;
      ++complete[path_of(t)];
      const std::int64_t at = tile.box.low[width_dim] - box.low[width_dim];
      for (std::int64_t w = at / step; w * step < at + tile.box.size[width_dim]; ++w) {
        Store& s = stores[{tile.box.low[row_dim], w}];
        s.rows = tile.box.size[row_dim];
        s.width = std::min(step, box.size[width_dim] - w * step);
        s.needs[path_of(t)] = complete[path_of(t)];
      }
    }
    std::vector<Store> order;
    for (const auto& [place, s] : stores) order.push_back(s);
    std::stable_sort(order.begin(), order.end(), [](const Store& a, const Store& b) {
      return a.needs[0] + a.needs[1] < b.needs[0] + b.needs[1];
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      DmaTransfer d;
      d.direction = models::DmaDirection::SbufToHbm;
      d.operand = 2;
      d.rows = static_cast<std::int32_t>(order[i].rows);
      d.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.out, order[i].width));
      d.queue = static_cast<std::int16_t>(map_.c.queue);
      std::vector<Wait> waits;
      const bool last = i + 1 == order.size();
      for (std::size_t p = 0; p < paths_; ++p) {
        const std::int64_t upto = last ? complete[p] : order[i].needs[p];
        if (upto > taken[p]) waits.push_back({out_full_[p], upto - taken[p]});
        taken[p] = std::max(taken[p], upto);
        if (last && used[p]) add_signal(d, out_free_[p]);
      }
      build_.start(starter(map_.c.engine), d, waits);
    }
  }
}

}  // namespace trn3sim::compile
