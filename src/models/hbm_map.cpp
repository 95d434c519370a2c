// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "models/hbm_map.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

using Kind = config::HbmField::Kind;

int bits_of(std::int64_t value) {
  return std::countr_zero(static_cast<std::uint64_t>(value));
}

std::uint64_t mask(int bits) {
  return (std::uint64_t{1} << bits) - 1;
}

}  // namespace

HbmMap::HbmMap(const config::HbmSpec& spec) {
  const config::HbmMapping map = config::hbm_mapping(spec);
  if (!map.problem.empty()) throw base::UserError("chip: " + map.key, map.problem);
  for (const config::HbmField& f : map.fields) {
    const auto count = static_cast<std::uint64_t>(f.count);
    fields_.push_back({f.kind, f.low, count, std::has_single_bit(count) ? bits_of(f.count) : -1});
  }
  burst_bits_ = bits_of(spec.burst.count());
  channel_bits_ = bits_of(spec.channels * spec.pseudo_channels);
  group_bits_ = bits_of(spec.bank_groups);
  bank_bits_ = bits_of(spec.banks_per_group);
  high_group_bits_ = group_bits_ - 1;
  sids_ = static_cast<std::uint32_t>(spec.sids);
  hash_ = spec.channel_hash;
  find_block(spec);
}

void HbmMap::find_block(const config::HbmSpec& spec) {
  std::string letters = config::hbm_mapping_letters(spec);
  std::erase(letters, ' ');
  const std::size_t channel = letters.find('P');
  if (channel == std::string::npos) return;
  const std::string upper = spec.bank_groups > 2 ? "Ph" : "P";
  const int low = static_cast<int>(channel) - 1;  // column bits below
  const int high = bits_of(spec.row.count() / spec.burst.count()) - low;
  if (low < 1 || high < 0) return;
  const std::string block = "cg" + std::string(static_cast<std::size_t>(low - 1), 'c') + upper +
                            std::string(static_cast<std::size_t>(high), 'c') + "KS";
  if (letters != block) return;
  block_bits_ = burst_bits_ + low + 1;
  row_blocks_bits_ = high;
}

std::uint64_t HbmMap::hash(std::uint64_t above) const {
  if (!hash_) return 0;
  return (above ^ (above >> channel_bits_) ^ (above >> (2 * channel_bits_))) & mask(channel_bits_);
}

HbmPlace HbmMap::decode_stripe(std::uint64_t above) const {
  HbmPlace place;
  place.channel = static_cast<std::int32_t>(hash(above));
  const std::uint64_t high_group = above & mask(high_group_bits_);
  above >>= high_group_bits_ + row_blocks_bits_;
  const auto set = static_cast<std::uint32_t>(above >> bank_bits_);
  const std::uint32_t row = set / sids_;
  const std::uint32_t sid = set % sids_;
  const std::uint64_t bank = (above ^ (row >> group_bits_)) & mask(bank_bits_);
  const std::uint64_t group = ((high_group << 1) ^ row) & mask(group_bits_);
  place.row = static_cast<std::int32_t>(row);
  place.sid = static_cast<std::int16_t>(sid);
  place.group = static_cast<std::int16_t>(group);
  place.bank = static_cast<std::int32_t>(((sid << bank_bits_ | bank) << group_bits_) | group);
  return place;
}

HbmPlace HbmMap::decode(std::uint64_t burst) const {
  std::uint64_t part[5] = {};
  std::uint64_t above_channel = 0;
  for (const Field& f : fields_) {
    const std::uint64_t value = f.bits >= 0 ? burst & mask(f.bits) : burst % f.count;
    burst = f.bits >= 0 ? burst >> f.bits : burst / f.count;
    part[static_cast<std::size_t>(f.kind)] |= value << f.low;
    if (f.kind == Kind::Channel) above_channel = burst;
  }
  const std::uint64_t row = burst;
  const auto of = [&](Kind kind) { return part[static_cast<std::size_t>(kind)]; };
  HbmPlace place;
  place.channel = static_cast<std::int32_t>(of(Kind::Channel) ^ hash(above_channel));
  const std::uint64_t bank = (of(Kind::Bank) ^ (row >> group_bits_)) & mask(bank_bits_);
  const std::uint64_t group = (of(Kind::Group) ^ row) & mask(group_bits_);
  place.row = static_cast<std::int32_t>(row);
  place.column = static_cast<std::int32_t>(of(Kind::Column));
  place.sid = static_cast<std::int16_t>(of(Kind::Sid));
  place.group = static_cast<std::int16_t>(group);
  place.bank =
      static_cast<std::int32_t>(((of(Kind::Sid) << bank_bits_ | bank) << group_bits_) | group);
  return place;
}

}  // namespace trn3sim::models
