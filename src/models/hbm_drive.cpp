// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/hbm_drive.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/hbm.hpp"

#include "models/hbm_exact.hpp"
#include "models/hbm_map.hpp"

namespace trn3sim::models {
namespace {

struct Offered {
  std::int64_t address = 0;
  bool write = false;
};

// The bursts of a pattern in order.
class Source {
 public:
  // Streams start a row of all banks further than at equal shares of `capacity`, since those would
  // stay in the same banks for ever.
  Source(const HbmPattern& pattern, const config::HbmSpec& spec)
      : p_(pattern),
        capacity_(spec.capacity.count()),
        burst_(spec.burst.count()),
        state_(pattern.seed) {
    const std::int64_t row = spec.row.count() * spec.sids * spec.bank_groups *
                             spec.banks_per_group * spec.channels * spec.pseudo_channels;
    const std::int64_t distance = (capacity_ / p_.streams / row + 1) * row;
    for (std::int64_t i = 0; i < p_.streams; ++i) next_.push_back(distance * i % capacity_);
    begin_block();
    choose_direction();
  }
  Offered next() {
    if (in_block_ == p_.block) begin_block();
    if (in_turn_ == p_.turn) {
      in_turn_ = 0;
      choose_direction();
    }
    ++in_turn_;
    const Offered offered{(start_ + in_block_) % capacity_, write_};
    in_block_ += burst_;
    return offered;
  }

 private:
  // SplitMix64.
  std::uint64_t random() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  void choose_direction() {
    if (p_.reads < 1) write_ = static_cast<double>(random() >> 11) * 0x1p-53 >= p_.reads;
  }
  void begin_block() {
    in_block_ = 0;
    if (p_.random) {
      start_ =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(capacity_ / p_.block)) *
          p_.block;
      return;
    }
    std::int64_t& next = next_[static_cast<std::size_t>(stream_)];
    start_ = next;
    next = (next + p_.block) % capacity_;
    stream_ = stream_ + 1 == p_.streams ? 0 : stream_ + 1;
  }

  HbmPattern p_;
  std::int64_t capacity_, burst_;
  std::uint64_t state_;
  std::vector<std::int64_t> next_;
  std::int64_t stream_ = 0, start_ = 0, in_block_ = 0;
  std::int64_t in_turn_ = 0;
  bool write_ = false;
};

// What both models measure. Bursts before the warm-up count neither for rate nor for latency.
class Meter {
 public:
  explicit Meter(std::int64_t bursts) : bursts_(bursts), warm_(bursts / 10) {}
  // The n-th burst to finish ended its data at `end`.
  void finish(std::int64_t end, std::int64_t latency, bool read) {
    if (++finished_ <= warm_) {
      start_ = std::max(start_, end);
    } else if (read) {
      latencies_.push_back(latency);
    }
    last_ = std::max(last_, end);
  }
  [[nodiscard]] HbmDriven result(std::int64_t burst, double peak, double second) {
    HbmDriven d;
    d.bytes_per_second = static_cast<double>((bursts_ - warm_) * burst) * second /
                         static_cast<double>(std::max<std::int64_t>(last_ - start_, 1));
    d.share = d.bytes_per_second / peak;
    if (latencies_.empty()) return d;
    double sum = 0;
    for (const std::int64_t l : latencies_) sum += static_cast<double>(l);
    const double ns = 1e9 / second;
    d.mean_latency_ns = sum / static_cast<double>(latencies_.size()) * ns;
    const std::size_t at = latencies_.size() * 99 / 100;
    std::nth_element(latencies_.begin(), latencies_.begin() + static_cast<std::ptrdiff_t>(at),
                     latencies_.end());
    d.p99_latency_ns = static_cast<double>(latencies_[at]) * ns;
    return d;
  }
  [[nodiscard]] std::int64_t last() const { return last_; }

 private:
  std::int64_t bursts_, warm_, finished_ = 0, start_ = 0, last_ = 0;
  std::vector<std::int64_t> latencies_;
};

// The channels of an exact stack, one queue each; bursts enter in order.
HbmDriven drive_exact(const config::HbmSpec& spec, const HbmPattern& p) {
  const ExactTiming timing(spec, 1);
  const HbmMap map(spec);
  std::vector<ExactChannel> channels(static_cast<std::size_t>(spec.channels), ExactChannel(timing));
  Source source(p, spec);
  Meter meter(p.bursts);
  std::int64_t sent = 0, finished = 0, now = 0;
  std::vector<bool> write(static_cast<std::size_t>(p.bursts));
  ExactRequest head;
  bool waiting = false;
  std::size_t target = 0;
  while (finished < p.bursts) {
    for (; sent < p.bursts; ++sent, waiting = false) {
      if (!waiting) {
        const Offered o = source.next();
        const HbmPlace place =
            map.decode(static_cast<std::uint64_t>(o.address) >> map.burst_bits());
        target = static_cast<std::size_t>(place.channel / spec.pseudo_channels);
        head = {0,
                sent,
                place.row,
                static_cast<std::int16_t>(place.bank),
                static_cast<std::int8_t>(place.channel % spec.pseudo_channels),
                o.write};
        waiting = true;
      }
      if (channels[target].full(head.write)) break;
      channels[target].advance_to(now);
      channels[target].push(head);
      write[static_cast<std::size_t>(sent)] = head.write;
    }
    std::int64_t next = INT64_MAX;
    for (ExactChannel& channel : channels) {
      if (channel.now() <= now) channel.step();
      next = std::min(next, channel.now());
      for (const ExactChannel::Done& d : channel.done()) {
        meter.finish(d.end, d.end - d.arrive, !write[static_cast<std::size_t>(d.id)]);
        ++finished;
      }
      channel.clear_done();
    }
    now = next;
  }
  HbmDriven d = meter.result(spec.burst.count(), static_cast<double>(spec.bandwidth.count()),
                             1e15 / static_cast<double>(timing.tick_fs));
  for (const ExactChannel& channel : channels) {
    d.activates += channel.activates();
    d.refreshes += channel.refreshes();
  }
  return d;
}

// The run model. An entry of a queue is free from its column command on.
HbmDriven drive_runs(const config::HbmSpec& given, const HbmPattern& p) {
  config::HbmSpec spec = given;
  spec.controller_latency = base::Time(0);
  HbmStack stack(spec, 1);
  Source source(p, spec);
  Meter meter(p.bursts);
  const std::int64_t data =
      spec.cl.count() +
      base::transfer_time(
          spec.burst, base::Rate(spec.bandwidth.count() / (spec.channels * spec.pseudo_channels)))
          .count();
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> queues[2];
  std::int64_t now = 0;
  const auto room = static_cast<std::size_t>(spec.queue_depth * spec.channels);
  Offered first = source.next();
  for (std::int64_t sent = 0; sent < p.bursts;) {
    // Neighbouring bursts of one column pair go together.
    Offered second = source.next();
    const std::int64_t burst = spec.burst.count();
    const bool pair = second.write == first.write && second.address == first.address + burst &&
                      first.address % (2 * burst) == 0 && sent + 1 < p.bursts;
    const std::int64_t count = pair ? 2 : 1;
    auto& queue = queues[first.write ? 1 : 0];
    while (queue.size() + static_cast<std::size_t>(count) > room) {
      now = std::max(now, queue.top());
      queue.pop();
    }
    const std::int64_t end =
        stack.access(base::Time(now), first.address, count * burst, first.write).count();
    for (std::int64_t i = 0; i < count; ++i) {
      queue.push(std::max(now, end - data));
      meter.finish(end, end - now, !first.write);
    }
    sent += count;
    first = pair ? source.next() : second;
  }
  HbmDriven d = meter.result(spec.burst.count(), static_cast<double>(spec.bandwidth.count()), 1e15);
  d.activates = stack.activates();
  d.refreshes = stack.refreshes(base::Time(meter.last()));
  return d;
}

void check(const config::HbmSpec& spec, std::int64_t channels, const HbmPattern& p) {
  const auto refuse = [](const std::string& what) { throw base::UserError("command line", what); };
  if (channels > spec.channels)
    refuse("--channels " + std::to_string(channels) + ": a stack has " +
           std::to_string(spec.channels));
  if (p.block % spec.burst.count() != 0 || p.block > spec.capacity.count())
    refuse("--block " + std::to_string(p.block) + ": expected a multiple of the burst, " +
           std::to_string(spec.burst.count()) + " B, that fits the stack");
}

}  // namespace

HbmDriven drive_hbm(const config::HbmSpec& given, std::int64_t stacks, std::int64_t channels,
                    const HbmPattern& pattern) {
  check(given, channels, pattern);
  config::HbmSpec spec = given;  // one stack with so many channels
  spec.bandwidth = base::Rate(given.bandwidth.count() / stacks / given.channels * channels);
  spec.capacity = base::Bytes(given.capacity.count() / given.channels * channels);
  spec.channels = channels;
  HbmDriven d = spec.mode == "exact" ? drive_exact(spec, pattern) : drive_runs(spec, pattern);
  d.row_hit_rate =
      std::max(0.0, 1.0 - static_cast<double>(d.activates) / static_cast<double>(pattern.bursts));
  return d;
}

}  // namespace trn3sim::models
