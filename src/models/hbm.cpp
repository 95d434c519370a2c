// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Address map of a stack, from the least significant part: column in the 64 B atom, bank group low
// bit, column, (pseudo-channel), bank group high bits, columns of the row, bank, SID, row. The
// pseudo-channel is XORed with a fold of the bits above it, so that power-of-two strides spread;
// bank group and bank are XORed with the low row bits. SID and row come from a division, since a
// 12-high stack has three SIDs.
#include "trn3sim/models/hbm.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <string>

#include "trn3sim/base/error.hpp"

#include "models/hbm_channel.hpp"

namespace trn3sim::models {
namespace {

std::int64_t power_of_two(std::int64_t value, const char* key) {
  if (value <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(value))) {
    throw base::UserError(std::string("chip: hbm.") + key,
                          "found " + std::to_string(value) + "; expected a power of two");
  }
  return value;
}

int log2_of(std::int64_t value, const char* key) {
  return std::countr_zero(static_cast<std::uint64_t>(power_of_two(value, key)));
}

// Columns i < x of a block that lie in the bank group with low bit 0: i = 0, 1, 4, 5, 8, ...
std::int64_t low_group_columns(std::int64_t x) {
  return (x >> 2) * 2 + std::min<std::int64_t>(x & 3, 2);
}

}  // namespace

struct HbmStack::Impl {
  Impl(const config::HbmSpec& spec, std::int64_t stacks);
  std::int64_t block(std::int64_t now, std::int64_t address, std::int64_t bytes, bool write);
  std::int64_t issue(PseudoChannel& channel, std::int64_t now, ColumnRun run, std::int64_t columns,
                     bool write);

  HbmTiming timing;
  std::vector<PseudoChannel> channels;
  std::int64_t capacity, block_bytes, controller_latency, total_banks, refi;
  int block_bits, burst_bits, channel_bits, high_group_bits, row_blocks_bits, group_bits, bank_bits;
  std::uint32_t sids;
  std::int64_t last_now = 0, read_bytes = 0, write_bytes = 0;
};

HbmStack::Impl::Impl(const config::HbmSpec& spec, std::int64_t stacks)
    : timing(spec, stacks),
      capacity(spec.capacity.count()),
      block_bytes(spec.interleave.count()),
      controller_latency(spec.controller_latency.count()),
      total_banks(timing.banks * spec.channels * spec.pseudo_channels),
      refi(timing.refi),
      block_bits(log2_of(block_bytes, "interleave")),
      burst_bits(log2_of(spec.burst.count(), "burst")),
      channel_bits(log2_of(spec.channels * spec.pseudo_channels, "channels")),
      high_group_bits(log2_of(spec.bank_groups, "bank_groups") - 1),
      row_blocks_bits(log2_of(spec.row.count(), "row") + 1 - block_bits),
      group_bits(log2_of(spec.bank_groups, "bank_groups")),
      bank_bits(log2_of(spec.banks_per_group, "banks_per_group")),
      sids(static_cast<std::uint32_t>(spec.sids)) {
  if (capacity <= 0) throw base::UserError("chip: hbm.capacity", "expected a value above 0");
  if (high_group_bits < 0)
    throw base::UserError("chip: hbm.bank_groups", "found 1; expected 2 to 8");
  if (row_blocks_bits < 0 || block_bits - burst_bits < 2) {
    throw base::UserError("chip: hbm.interleave", "found " + std::to_string(block_bytes) +
                                                      "; expected four bursts to two rows");
  }
  const std::int64_t count = spec.channels * spec.pseudo_channels;
  channels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) channels.emplace_back(timing);
}

std::int64_t HbmStack::Impl::issue(PseudoChannel& channel, std::int64_t now, ColumnRun run,
                                   std::int64_t columns, bool write) {
  std::int64_t end = 0;
  for (; columns > 0; columns -= 4) {
    run.columns = static_cast<std::int8_t>(std::min<std::int64_t>(columns, 4));
    end = std::max(end, write ? channel.write(now, run) : channel.read(now, run));
  }
  return end;
}

// `bytes` at `address`, all within one interleave block.
std::int64_t HbmStack::Impl::block(std::int64_t now, std::int64_t address, std::int64_t bytes,
                                   bool write) {
  const auto index = static_cast<std::uint64_t>(address) >> block_bits;
  std::uint64_t above = index >> channel_bits;
  const std::uint64_t fold = above ^ (above >> channel_bits) ^ (above >> (2 * channel_bits));
  const std::uint64_t selected = (index ^ fold) & ((std::uint64_t{1} << channel_bits) - 1);
  PseudoChannel& channel = channels[selected];
  channel.advance(now);

  const std::uint64_t high_group = above & ((std::uint64_t{1} << high_group_bits) - 1);
  above >>= high_group_bits + row_blocks_bits;
  std::uint64_t bank = above & ((std::uint64_t{1} << bank_bits) - 1);
  const auto place = static_cast<std::uint32_t>(above >> bank_bits);
  const std::uint32_t row = place / sids;
  const std::uint32_t sid = place % sids;
  bank ^= (row >> group_bits) & ((1U << bank_bits) - 1);
  const std::uint64_t first_group = ((high_group << 1) ^ row) & ((1U << group_bits) - 1);
  const std::uint64_t bank_base = ((sid << bank_bits) | bank) << group_bits;

  const std::int64_t within = address & (block_bytes - 1);
  const std::int64_t first = within >> burst_bits;
  const std::int64_t end = ((within + bytes - 1) >> burst_bits) + 1;
  const std::int64_t low = low_group_columns(end) - low_group_columns(first);
  ColumnRun run;
  run.row = static_cast<std::int32_t>(row);
  run.group = static_cast<std::int8_t>(first_group);
  run.bank = static_cast<std::int16_t>(bank_base | first_group);
  std::int64_t done = issue(channel, now, run, low, write);
  run.group = static_cast<std::int8_t>(first_group ^ 1);
  run.bank = static_cast<std::int16_t>(bank_base | (first_group ^ 1));
  return std::max(done, issue(channel, now, run, end - first - low, write));
}

HbmStack::HbmStack(const config::HbmSpec& spec, std::int64_t stacks)
    : impl_(std::make_unique<Impl>(spec, stacks)) {}
HbmStack::~HbmStack() = default;

void HbmStack::reset() {
  for (PseudoChannel& channel : impl_->channels) channel.reset();
  impl_->last_now = impl_->read_bytes = impl_->write_bytes = 0;
}

base::Time HbmStack::access(base::Time now, std::int64_t address, std::int64_t bytes, bool write) {
  Impl& m = *impl_;
  TRN3SIM_CHECK(now.count() >= m.last_now, "HBM accesses must come in ascending time");
  TRN3SIM_CHECK(address >= 0 && bytes >= 0, "negative HBM address or size");
  m.last_now = now.count();
  (write ? m.write_bytes : m.read_bytes) += bytes;
  std::int64_t done = now.count();
  while (bytes > 0) {
    if (address >= m.capacity) address %= m.capacity;
    const std::int64_t part =
        std::min({bytes, m.block_bytes - (address & (m.block_bytes - 1)), m.capacity - address});
    done = std::max(done, m.block(now.count(), address, part, write));
    address += part;
    bytes -= part;
  }
  return base::Time(done + m.controller_latency);
}

std::int64_t HbmStack::read_bytes() const {
  return impl_->read_bytes;
}
std::int64_t HbmStack::write_bytes() const {
  return impl_->write_bytes;
}

std::int64_t HbmStack::activates() const {
  std::int64_t sum = 0;
  for (const PseudoChannel& channel : impl_->channels) sum += channel.activates();
  return sum;
}

base::Rate HbmStack::peak() const {
  return base::Rate(impl_->timing.peak);
}

std::int64_t HbmStack::refreshes(base::Time elapsed) const {
  if (impl_->timing.refresh == HbmTiming::Refresh::None) return 0;
  return static_cast<std::int64_t>(Int128(elapsed.count()) * impl_->total_banks / impl_->refi);
}

base::Rate streaming_rate(const config::HbmSpec& spec, std::int64_t stacks) {
  constexpr std::int64_t kBlock = 4096;
  constexpr std::int64_t kBlocks = 16 * 1024 * 1024 / kBlock;
  constexpr std::int64_t kWarmUp = kBlocks / 8;
  constexpr std::size_t kInFlight = 512;
  HbmStack stack(spec, stacks);
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> pending;
  std::int64_t now = 0;
  std::int64_t warm = 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    if (pending.size() == kInFlight) {
      now = std::max(now, pending.top());
      pending.pop();
    }
    const base::Time done = stack.access(base::Time(now), i * kBlock, kBlock, false);
    pending.push(done.count());
    last = std::max(last, done.count());
    if (i == kWarmUp - 1) warm = last;
  }
  return base::Rate(static_cast<std::int64_t>(Int128(kBlocks - kWarmUp) * kBlock *
                                              base::kFemtosPerSecond / (last - warm)));
}

}  // namespace trn3sim::models
