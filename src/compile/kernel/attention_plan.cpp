// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "compile/kernel/attention_plan.hpp"

#include <algorithm>

namespace trn3sim::compile {

std::vector<AttentionShare> divide_attention(const KernelSpec& spec, bool split_tiles) {
  std::vector<QueryTile> tiles;
  for (std::int64_t q = 0; q < spec.sq; q += kQueryTile) {
    const std::int64_t end = std::min(spec.sq, q + kQueryTile);
    const std::int64_t keys = spec.causal ? end + spec.skv - spec.sq : spec.skv;
    tiles.push_back({end - q, keys, spec.causal});
  }
  const std::int64_t heads = spec.batch * spec.heads, group = spec.heads / spec.kv_heads;
  const bool by_tile = split_tiles && heads % spec.cores != 0;
  const std::int64_t units = heads / group;
  // Whole groups per core if they divide, else query heads.
  const std::int64_t grain = units % spec.cores == 0 ? group : 1;
  std::vector<AttentionShare> shares(static_cast<std::size_t>(spec.cores));
  for (std::int64_t c = 0; c < spec.cores; ++c) {
    AttentionShare& share = shares[static_cast<std::size_t>(c)];
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      if (!by_tile || static_cast<std::int64_t>(t) % spec.cores == c)
        share.tiles.push_back(tiles[t]);
    }
    if (share.tiles.empty()) continue;
    const std::int64_t begin = by_tile ? 0 : heads / grain * c / spec.cores * grain;
    const std::int64_t end = by_tile ? heads : heads / grain * (c + 1) / spec.cores * grain;
    for (std::int64_t h = begin; h < end;) {
      const std::int64_t next = std::min(end, (h / group + 1) * group);
      share.groups.push_back(next - h);
      share.shared_group |= next - h < group;
      h = next;
    }
    for (const QueryTile& t : share.tiles) share.keys = std::max(share.keys, t.keys);
  }
  return shares;
}

models::Instruction lane(models::Opcode op, models::Space source, base::DType dtype,
                         std::int64_t rows, std::int64_t width) {
  models::Instruction i;
  i.op = op;
  i.source = source;
  i.dtype = dtype;
  i.rows = static_cast<std::int16_t>(rows);
  i.elements = static_cast<std::int32_t>(width);
  return i;
}

}  // namespace trn3sim::compile
