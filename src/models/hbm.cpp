// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/hbm.hpp"

#include <algorithm>
#include <queue>

#include "trn3sim/base/error.hpp"

#include "models/hbm_channel.hpp"
#include "models/hbm_map.hpp"

namespace trn3sim::models {
namespace {

// Columns i < x of a block that lie in the bank group with low bit 0: i = 0, 1, 4, 5, 8, ...
std::int64_t low_group_columns(std::int64_t x) {
  return (x >> 2) * 2 + std::min<std::int64_t>(x & 3, 2);
}

// Bursts of a block, from the first to before the end.
struct Columns {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

std::int64_t issue(PseudoChannel& channel, std::int64_t now, const ColumnRun& run, bool write) {
  return write ? channel.write(now, run) : channel.read(now, run);
}

}  // namespace

struct HbmStack::Impl {
  Impl(const config::HbmSpec& spec, std::int64_t stacks);
  void reset();
  std::int64_t lockstep(std::int64_t channel, std::int64_t block, std::int64_t whole);
  std::int64_t stripe(std::int64_t now, std::int64_t address, std::int64_t bytes, bool write);
  std::int64_t part(PseudoChannel& channel, std::int64_t now, ColumnRun run, Columns columns,
                    bool write);
  std::int64_t bursts(std::int64_t now, std::int64_t address, std::int64_t bytes, bool write);

  HbmTiming timing;
  HbmMap map;
  // Aligned groups of channels that have seen the same accesses are in the same state, so the first
  // of a group stands for all of it; the others hold nothing until the group is split.
  std::vector<PseudoChannel> channels;
  std::vector<std::int64_t> together;  // of each channel: channels in its group, a power of two
  std::int64_t capacity, controller_latency, total_banks, refi;
  std::int64_t block_bytes, stripe_bytes;  // of maps with blocks
  std::int64_t last_now = 0, read_bytes = 0, write_bytes = 0;
};

HbmStack::Impl::Impl(const config::HbmSpec& spec, std::int64_t stacks)
    : timing(spec, stacks),
      map(spec),
      capacity(spec.capacity.count()),
      controller_latency(spec.controller_latency.count()),
      total_banks(timing.banks * spec.channels * spec.pseudo_channels),
      refi(timing.refi),
      block_bytes(std::int64_t{1} << map.block_bits()),
      stripe_bytes(block_bytes << map.channel_bits()) {
  if (spec.mode != "runs") {
    throw base::UserError("chip: hbm.mode",
                          "found \"" + spec.mode + "\"; a run needs \"runs\": single bursts are "
                          "scheduled by trn3sim hbm --mode exact only");
  }
  if (capacity <= 0) throw base::UserError("chip: hbm.capacity", "expected a value above 0");
  const std::int64_t count = spec.channels * spec.pseudo_channels;
  channels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) channels.emplace_back(timing);
  TRN3SIM_CHECK(map.block_bits() == 0 || count == std::int64_t{1} << map.channel_bits(),
                "a stripe has one block on each channel");
  reset();
}

void HbmStack::Impl::reset() {
  const std::size_t group = map.block_bits() > 0 ? channels.size() : 1;
  together.assign(channels.size(), static_cast<std::int64_t>(group));
  for (std::size_t i = 0; i < channels.size(); i += group) channels[i].reset();
  last_now = read_bytes = write_bytes = 0;
}

// How many channels from `channel` on take the next `whole` blocks alike, of which the first is
// block `block`: its group, halved until the blocks cover it from its start to its end.
std::int64_t HbmStack::Impl::lockstep(std::int64_t channel, std::int64_t block,
                                      std::int64_t whole) {
  std::int64_t size = together[static_cast<std::size_t>(channel)];
  while (size > 1 && ((block & (size - 1)) != 0 || whole < size)) {
    const std::int64_t first = channel & ~(size - 1);
    const std::int64_t half = size / 2;
    channels[static_cast<std::size_t>(first + half)] = channels[static_cast<std::size_t>(first)];
    std::fill_n(together.begin() + first, size, half);
    size = half;
  }
  return size;
}

// A part of a block: as many columns in each of two neighbouring banks, and what one has more.
std::int64_t HbmStack::Impl::part(PseudoChannel& channel, std::int64_t now, ColumnRun run,
                                  Columns columns, bool write) {
  const std::int64_t low = low_group_columns(columns.end) - low_group_columns(columns.first);
  const std::int64_t high = columns.end - columns.first - low;
  const std::int64_t both = std::min(low, high);
  std::int64_t done = now;
  if (both > 0) {
    run.columns = static_cast<std::int16_t>(both);
    done = issue(channel, now, run, write);
  }
  if (low == high) return done;
  run.pair = false;
  if (high > low) {
    run.group ^= 1;
    run.bank ^= 1;
  }
  run.columns = static_cast<std::int16_t>(std::max(low, high) - both);
  return std::max(done, issue(channel, now, run, write));
}

// `bytes` at `address`, all within one stripe: one block of two neighbouring banks per channel.
std::int64_t HbmStack::Impl::stripe(std::int64_t now, std::int64_t address, std::int64_t bytes,
                                    bool write) {
  const std::int64_t block = address >> map.block_bits();
  const HbmPlace place = map.decode_stripe(static_cast<std::uint64_t>(block) >> map.channel_bits());
  ColumnRun run;
  run.row = place.row;
  run.group = static_cast<std::int8_t>(place.group);
  run.bank = static_cast<std::int16_t>(place.bank);
  run.pair = true;
  run.columns = static_cast<std::int16_t>(block_bytes >> (map.burst_bits() + 1));
  const std::int64_t in_stripe = (std::int64_t{1} << map.channel_bits()) - 1;
  std::int64_t done = now;
  std::int64_t within = address & (block_bytes - 1);
  for (std::int64_t i = block & in_stripe; bytes > 0;) {
    // Exclusive or with the place maps aligned groups of blocks to aligned groups of channels.
    const std::int64_t index = i ^ place.channel;
    const std::int64_t alike = lockstep(index, i, within == 0 ? bytes / block_bytes : 0);
    PseudoChannel& channel = channels[static_cast<std::size_t>(index & ~(alike - 1))];
    channel.advance(now);
    std::int64_t size = std::min(bytes, block_bytes - within);
    if (size == block_bytes) {
      done = std::max(done, issue(channel, now, run, write));
      size *= alike;
    } else {
      const Columns columns{within >> map.burst_bits(),
                            ((within + size - 1) >> map.burst_bits()) + 1};
      done = std::max(done, part(channel, now, run, columns, write));
    }
    bytes -= size;
    within = 0;
    i += alike;
  }
  return done;
}

// Any map, burst by burst.
std::int64_t HbmStack::Impl::bursts(std::int64_t now, std::int64_t address, std::int64_t bytes,
                                    bool write) {
  const std::int64_t end = ((address + bytes - 1) >> map.burst_bits()) + 1;
  std::int64_t done = now;
  for (std::int64_t i = address >> map.burst_bits(); i < end; ++i) {
    const HbmPlace place = map.decode(static_cast<std::uint64_t>(i));
    PseudoChannel& channel = channels[static_cast<std::size_t>(place.channel)];
    channel.advance(now);
    ColumnRun run;
    run.row = place.row;
    run.group = static_cast<std::int8_t>(place.group);
    run.bank = static_cast<std::int16_t>(place.bank);
    run.columns = 1;
    done = std::max(done, issue(channel, now, run, write));
  }
  return done;
}

HbmStack::HbmStack(const config::HbmSpec& spec, std::int64_t stacks)
    : impl_(std::make_unique<Impl>(spec, stacks)) {}
HbmStack::~HbmStack() = default;

void HbmStack::reset() {
  impl_->reset();
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
    const std::int64_t most = std::min(bytes, m.capacity - address);
    const bool stripes = m.map.block_bits() > 0;
    const std::int64_t part =
        stripes ? std::min(most, m.stripe_bytes - (address & (m.stripe_bytes - 1))) : most;
    done = std::max(done, stripes ? m.stripe(now.count(), address, part, write)
                                  : m.bursts(now.count(), address, part, write));
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
  for (std::size_t i = 0; i < impl_->channels.size();) {
    const std::int64_t alike = impl_->together[i];
    sum += alike * impl_->channels[i].activates();
    i += static_cast<std::size_t>(alike);
  }
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
