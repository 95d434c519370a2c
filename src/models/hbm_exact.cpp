// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "models/hbm_exact.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::models {
namespace {

constexpr std::int64_t kClock = 2;        // ticks
constexpr std::int64_t kActOnRowBus = 3;  // 1.5 clocks
constexpr std::int64_t kBurstClocks = 2;  // eight bits per pin at two per WDQS edge pair

std::uint64_t bit(std::int32_t bank) {
  return std::uint64_t{1} << bank;
}

void raise(std::int64_t& time, std::int64_t to) {
  if (time < to) time = to;
}

}  // namespace

ExactTiming::ExactTiming(const config::HbmSpec& s, std::int64_t stacks) {
  const std::int64_t channels = s.channels * s.pseudo_channels * stacks;
  double burst_fs = static_cast<double>(s.burst.count()) * 1e15 * static_cast<double>(channels) /
                    static_cast<double>(s.bandwidth.count()) / s.derate;
  if (s.ecc.data > 0)
    burst_fs *= 1.0 + static_cast<double>(s.ecc.check) / static_cast<double>(s.ecc.data);
  tick_fs = static_cast<std::int64_t>(burst_fs / (kClock * kBurstClocks) + 0.5);
  TRN3SIM_CHECK(tick_fs > 0, "an HBM burst takes no time");
  // Whole clocks; a clock that is short by rounding to femtoseconds is no clock more.
  const auto clocks = [&](base::Time time) {
    const std::int64_t clock = kClock * tick_fs;
    return std::max<std::int64_t>((time.count() + clock - 1 - clock / 1000) / clock, 1) * kClock;
  };
  rcd_read = clocks(s.t_rcd_read);
  rcd_write = clocks(s.t_rcd_write);
  rp = clocks(s.t_rp);
  ras = clocks(s.t_ras);
  rc = clocks(s.exact.t_rc);
  wr = clocks(s.t_wr);
  rtp = clocks(s.t_rtp);
  cl = clocks(s.cl);
  cwl = clocks(s.cwl);
  burst = ccd_s = kClock * kBurstClocks;
  ccd_l = std::max(clocks(s.t_ccd_l), ccd_s);
  ccd_r = std::max(clocks(s.exact.t_ccd_r), ccd_s);
  rrd_s = clocks(s.t_rrd_s);
  rrd_l = clocks(s.t_rrd_l);
  faw = clocks(s.t_faw);
  wtr_s = clocks(s.exact.t_wtr_s);
  wtr_l = clocks(s.t_wtr);
  rtw = clocks(s.t_rtw);
  rref_d = clocks(s.exact.t_rref_d);
  ppd = 2 * kClock;
  pseudo_channels = s.pseudo_channels;
  sids = s.sids;
  groups = s.bank_groups;
  banks_per_group = s.banks_per_group;
  refi = clocks(s.t_refi);
  refi_bank = refi / (sids * groups * banks_per_group);
  rfc_all = clocks(s.t_rfc_all_bank);
  rfc_bank = clocks(s.t_rfc_per_bank);
  refresh_bank = s.refresh == "per_bank";
  refresh_all = s.refresh == "all_bank";
  closed_page = s.page_policy == "closed";
  queue = s.queue_depth;
  write_high = queue * s.exact.write_high_percent / 100;
  write_low = queue * s.exact.write_low_percent / 100;
  postponed = s.exact.postponed_refreshes;
  require_refresh();
  if (sids * groups * banks_per_group > 64)
    throw base::UserError("chip: hbm.mode",
                          "\"exact\" models at most 64 banks of a pseudo-channel");
}

void ExactTiming::require_refresh() const {
  const bool banks = !refresh_bank || (refi_bank >= rref_d && refi > rfc_bank);
  if (banks && (!refresh_all || refi > rfc_all)) return;
  throw base::UserError(
      "chip: hbm.bandwidth",
      fmt::format("commands {:.1f} ns apart are too slow for the refreshes that t_refi asks for; "
                  "expected a higher bandwidth or --refresh none",
                  static_cast<double>(kClock * tick_fs) * 1e-6));
}

ExactChannel::ExactChannel(const ExactTiming& timing) : t_(timing) {
  channels_.resize(static_cast<std::size_t>(t_.pseudo_channels));
  for (Channel& c : channels_) {
    c.banks.resize(static_cast<std::size_t>(t_.sids * t_.groups * t_.banks_per_group));
    c.groups.resize(static_cast<std::size_t>(t_.sids * t_.groups));
    c.last_acts.fill(-t_.faw);
    for (std::size_t i = 0; i < c.banks.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const std::int64_t sid = index / (t_.groups * t_.banks_per_group);
      c.banks[i].sid = static_cast<std::int16_t>(sid);
      c.banks[i].group = static_cast<std::int16_t>(sid * t_.groups + index % t_.groups);
    }
  }
  next_due_ = t_.refresh_bank ? t_.refi_bank : t_.refresh_all ? t_.refi : kNever;
}

void ExactChannel::push(const ExactRequest& request) {
  std::int32_t node = static_cast<std::int32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    node = free_.back();
    free_.pop_back();
  }
  const std::size_t w = request.write ? 1 : 0;
  Channel& c = channels_[static_cast<std::size_t>(request.channel)];
  Bank& bank = c.banks[static_cast<std::size_t>(request.bank)];
  Node& n = nodes_[static_cast<std::size_t>(node)];
  n.request = request;
  n.request.arrive = now_;
  n.next = kNone;
  n.previous = bank.tail[w];
  (bank.tail[w] == kNone ? bank.head[w] : nodes_[static_cast<std::size_t>(bank.tail[w])].next) =
      node;
  bank.tail[w] = node;
  if (bank.hit[w] == kNone && bank.row == request.row) bank.hit[w] = node;
  ++size_[w];
  note(request.channel, request.bank);
}

void ExactChannel::note(std::int32_t channel, std::int32_t index) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  const Bank& bank = c.banks[static_cast<std::size_t>(index)];
  for (std::size_t w = 0; w < 2; ++w) {
    // No precharge passes an older hit; the head is the oldest.
    const bool waits = bank.head[w] != kNone && bank.active == kNone && bank.head[w] != bank.hit[w];
    const bool closed = bank.row == kNone;
    c.hits[w].set(bit(index), bank.hit[w] != kNone, bank.column[w]);
    c.acts[w].set(bit(index), waits && closed, bank.act);
    c.pres[w].set(bit(index), waits && !closed, bank.pre);
  }
  c.actives.set(bit(index), bank.active != kNone, std::min(bank.column[0], bank.column[1]));
}

void ExactChannel::find_hits(Bank& bank) {
  for (std::size_t w = 0; w < 2; ++w) {
    std::int32_t n = bank.row == kNone ? kNone : bank.head[w];
    while (n != kNone && nodes_[static_cast<std::size_t>(n)].request.row != bank.row)
      n = nodes_[static_cast<std::size_t>(n)].next;
    bank.hit[w] = n;
  }
}

void ExactChannel::unlink(Bank& bank, std::int32_t node) {
  const Node& n = nodes_[static_cast<std::size_t>(node)];
  const std::size_t w = n.request.write ? 1 : 0;
  (n.previous == kNone ? bank.head[w] : nodes_[static_cast<std::size_t>(n.previous)].next) = n.next;
  (n.next == kNone ? bank.tail[w] : nodes_[static_cast<std::size_t>(n.next)].previous) = n.previous;
  if (bank.hit[w] == node) {
    std::int32_t hit = n.next;
    while (hit != kNone && nodes_[static_cast<std::size_t>(hit)].request.row != bank.row)
      hit = nodes_[static_cast<std::size_t>(hit)].next;
    bank.hit[w] = hit;
  }
  --size_[w];
}

void ExactChannel::update_mode() {
  if (!write_mode_) {
    write_mode_ = size_[1] > 0 && (size_[1] > t_.write_high || size_[0] == 0);
  } else if (size_[1] < std::max<std::int64_t>(t_.write_low, 1) && size_[0] != 0) {
    write_mode_ = false;
  } else if (size_[1] == 0) {
    write_mode_ = false;
  }
}

std::int64_t ExactChannel::column_ready(const Channel& c, const Bank& bank, std::size_t w) const {
  const Group& g = c.groups[static_cast<std::size_t>(bank.group)];
  const std::int64_t ready = std::max({bank.column[w], g.column[w], c.column[w]});
  return bank.sid == c.last_sid ? ready : std::max(ready, c.other_sid);
}

void ExactChannel::offer(std::int32_t channel, std::int32_t bank, std::int32_t node,
                         Pick& pick) const {
  const ExactRequest& r = nodes_[static_cast<std::size_t>(node)].request;
  if (r.arrive > pick.arrive) return;
  if (r.arrive == pick.arrive && r.id > pick.id) return;
  pick = {channel, bank, node, r.arrive, r.id};
}

void ExactChannel::scan_columns(std::int32_t channel, Waiting& set, bool active, std::size_t write,
                                Pick& pick) {
  if (set.banks == 0) return;
  if (set.wake > now_) return later(set.wake);
  const Channel& c = channels_[static_cast<std::size_t>(channel)];
  std::int64_t wake = kNever;
  for (std::uint64_t banks = set.banks; banks != 0; banks &= banks - 1) {
    const auto index = static_cast<std::int32_t>(std::countr_zero(banks));
    const Bank& bank = c.banks[static_cast<std::size_t>(index)];
    const std::int32_t node = active ? bank.active : bank.hit[write];
    const std::size_t w =
        active ? (nodes_[static_cast<std::size_t>(node)].request.write ? 1 : 0) : write;
    const std::int64_t ready = column_ready(c, bank, w);
    wake = std::min(wake, ready);
    if (ready <= now_) offer(channel, index, node, pick);
  }
  set.wake = wake;
  if (wake > now_) later(wake);
}

bool ExactChannel::issue_column() {
  Pick pick;
  const auto count = static_cast<std::int32_t>(channels_.size());
  for (std::int32_t i = 0; i < count; ++i)
    scan_columns(i, channels_[static_cast<std::size_t>(i)].actives, true, 0, pick);
  if (pick.node == kNone && all_pending_ == 0) {
    const std::size_t w = write_mode_ ? 1 : 0;
    for (std::int32_t i = 0; i < count; ++i) {
      Channel& c = channels_[static_cast<std::size_t>(i)];
      raise(c.hits[w].wake, c.column[w]);
      scan_columns(i, c.hits[w], false, w, pick);
    }
  }
  if (pick.node == kNone) return false;
  column(pick.channel, pick.bank, pick.node);
  return true;
}

void ExactChannel::column(std::int32_t channel, std::int32_t index, std::int32_t node) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  Bank& bank = c.banks[static_cast<std::size_t>(index)];
  Group& g = c.groups[static_cast<std::size_t>(bank.group)];
  const ExactRequest r = nodes_[static_cast<std::size_t>(node)].request;
  const std::size_t w = r.write ? 1 : 0;
  raise(c.column[w], now_ + t_.ccd_s);
  raise(g.column[w], now_ + t_.ccd_l);
  if (r.write) {
    raise(c.column[0], now_ + t_.cwl + t_.burst + t_.wtr_s);
    raise(g.column[0], now_ + t_.cwl + t_.burst + t_.wtr_l);
    raise(bank.pre, now_ + t_.cwl + t_.burst + t_.wr);
  } else {
    raise(c.column[1], now_ + t_.rtw);
    raise(bank.pre, now_ + t_.rtp);
  }
  c.last_sid = bank.sid;
  c.other_sid = now_ + t_.ccd_r;
  if (bank.active == node) {
    bank.active = kNone;
    --active_;
  } else {
    unlink(bank, node);
  }
  free_.push_back(node);
  done_.push_back({r.id, r.arrive, now_, now_ + (r.write ? t_.cwl : t_.cl) + t_.burst});
  if (t_.closed_page && bank.active == kNone && bank.hit[0] == kNone && bank.hit[1] == kNone) {
    bank.row = kNone;  // with auto-precharge
    raise(bank.act, bank.pre + t_.rp);
  }
  note(channel, index);
}

void ExactChannel::activate(std::int32_t channel, std::int32_t index, std::int32_t node) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  Bank& bank = c.banks[static_cast<std::size_t>(index)];
  bank.row = nodes_[static_cast<std::size_t>(node)].request.row;
  bank.column = {now_ + t_.rcd_read, now_ + t_.rcd_write};
  bank.pre = now_ + t_.ras;
  raise(bank.act, now_ + t_.rc);
  raise(c.groups[static_cast<std::size_t>(bank.group)].act, now_ + t_.rrd_l);
  raise(c.act, now_ + t_.rrd_s);
  raise(c.refresh, now_ + t_.rrd_s);
  c.last_acts[c.next_act] = now_;
  c.next_act = (c.next_act + 1) % c.last_acts.size();
  // The request leaves its queue; it is served before all others of its bank.
  unlink(bank, node);
  bank.active = node;
  ++active_;
  ++activates_;
  find_hits(bank);
  note(channel, index);
  row_bus_ = now_ + kActOnRowBus;
}

void ExactChannel::precharge(std::int32_t channel, std::int32_t index) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  Bank& bank = c.banks[static_cast<std::size_t>(index)];
  bank.row = kNone;
  bank.hit = {kNone, kNone};
  raise(bank.act, now_ + t_.rp);
  c.pre = now_ + t_.ppd;
  note(channel, index);
  row_bus_ = now_ + 1;
}

void ExactChannel::scan_acts(std::int32_t channel, std::size_t w, Pick& pick) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  Waiting& set = c.acts[w];
  if (set.banks == 0) return;
  raise(set.wake, std::max(c.act, c.last_acts[c.next_act] + t_.faw));
  const std::int64_t clock = now_ + now_ % kClock;  // activations start at whole clocks
  if (set.wake > now_ || clock > now_) return later(std::max(set.wake + set.wake % kClock, clock));
  std::int64_t wake = kNever;
  for (std::uint64_t banks = set.banks; banks != 0; banks &= banks - 1) {
    const auto index = static_cast<std::int32_t>(std::countr_zero(banks));
    const Bank& bank = c.banks[static_cast<std::size_t>(index)];
    const std::int64_t ready =
        std::max(bank.act, c.groups[static_cast<std::size_t>(bank.group)].act);
    wake = std::min(wake, ready);
    if (ready <= now_) offer(channel, index, bank.head[w], pick);
  }
  set.wake = wake;
  if (wake > now_) later(wake + wake % kClock);
}

void ExactChannel::scan_pres(std::int32_t channel, std::size_t w, Pick& pick) {
  Channel& c = channels_[static_cast<std::size_t>(channel)];
  Waiting& set = c.pres[w];
  if (set.banks == 0) return;
  raise(set.wake, c.pre);
  if (set.wake > now_) return later(set.wake);
  std::int64_t wake = kNever;
  for (std::uint64_t banks = set.banks; banks != 0; banks &= banks - 1) {
    const auto index = static_cast<std::int32_t>(std::countr_zero(banks));
    const Bank& bank = c.banks[static_cast<std::size_t>(index)];
    wake = std::min(wake, bank.pre);
    if (bank.pre <= now_) offer(channel, index, bank.head[w], pick);
  }
  set.wake = wake;
  if (wake > now_) later(wake);
}

bool ExactChannel::issue_row() {
  if (row_bus_ > now_) {
    later(row_bus_);
    return false;
  }
  if (issue_refresh()) return true;
  if (all_pending_ > 0) return false;
  Pick pick;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    scan_acts(static_cast<std::int32_t>(i), write_mode_ ? 1 : 0, pick);
    scan_pres(static_cast<std::int32_t>(i), write_mode_ ? 1 : 0, pick);
  }
  if (pick.node == kNone) return false;
  const Bank& bank =
      channels_[static_cast<std::size_t>(pick.channel)].banks[static_cast<std::size_t>(pick.bank)];
  if (bank.row == kNone) {
    activate(pick.channel, pick.bank, pick.node);
  } else {
    precharge(pick.channel, pick.bank);
  }
  return true;
}

void ExactChannel::step() {
  wake_ = next_due_;
  if (now_ >= next_due_) due_refreshes();
  update_mode();
  bool issued = false;
  if (now_ % kClock == 0) {
    issued = issue_column();
  } else {
    later(now_ + 1);  // columns start at whole clocks
  }
  update_mode();
  issued = issue_row() || issued;
  // Slots of the queues may be free now; else nothing can happen before the earliest ready time.
  now_ = issued ? now_ + 1 : std::max(wake_, now_ + 1);
}

}  // namespace trn3sim::models
