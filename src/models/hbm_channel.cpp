// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "models/hbm_channel.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kBinColumns = 4;  // of one bank group in a bin of the column calendar

std::int64_t ceil_slots(std::int64_t time, std::int64_t slot) {
  return (time + slot - 1) / slot;
}

// A key of the chip file that the model cannot use.
[[noreturn]] void refuse(const std::string& key, const std::string& what) {
  throw base::UserError("chip: hbm." + key, what);
}

void require_positive(std::int64_t value, const char* key) {
  if (value <= 0) refuse(key, "found " + std::to_string(value) + "; expected a value above 0");
}

}  // namespace

HbmTiming::HbmTiming(const config::HbmSpec& spec, std::int64_t stacks) {
  TRN3SIM_CHECK(stacks > 0, "a chip needs at least one HBM stack");
  require_positive(spec.bandwidth.count(), "bandwidth");
  require_positive(spec.burst.count(), "burst");
  require_positive(spec.channels * spec.pseudo_channels, "channels");
  require_positive(spec.bank_groups, "bank_groups");
  require_positive(spec.banks_per_group * spec.sids, "banks_per_group");
  require_positive(spec.t_rrd_s.count(), "t_rrd_s");
  if (!(spec.derate > 0 && spec.derate <= 1)) {
    refuse("derate", "found " + std::to_string(spec.derate) + "; expected above 0 and at most 1");
  }
  if (spec.bank_groups > kMaxBankGroups) {
    refuse("bank_groups", "found " + std::to_string(spec.bank_groups) + "; at most 8 are modelled");
  }
  peak = spec.bandwidth.count() / stacks;
  const std::int64_t pseudo_channels = spec.channels * spec.pseudo_channels;
  burst = static_cast<std::int64_t>(
      base::ceil_div(Int128(spec.burst.count()) * base::kFemtosPerSecond * pseudo_channels * stacks,
                     spec.bandwidth.count()));
  const double checked = spec.ecc.data > 0 ? 1.0 + static_cast<double>(spec.ecc.check) /
                                                       static_cast<double>(spec.ecc.data)
                                           : 1.0;
  // Columns of all groups together come no faster than one per tCCD_L / groups.
  column.slot =
      std::max(static_cast<std::int64_t>(static_cast<double>(burst) * checked / spec.derate + 0.5),
               ceil_slots(spec.t_ccd_l.count(), spec.bank_groups));
  column.ccd_l = std::max(spec.t_ccd_l.count(), column.slot);
  column.bin = kBinColumns * column.ccd_l;
  act_slot = spec.t_rrd_s.count();
  faw_slots = std::max<std::int64_t>(ceil_slots(spec.t_faw.count(), act_slot), 1);
  rrd_l_slots = std::max<std::int64_t>(ceil_slots(spec.t_rrd_l.count(), act_slot), 1);
  if (faw_slots > 32) refuse("t_faw", "more than 32 times t_rrd_s; expected less");
  if (rrd_l_slots > 32) refuse("t_rrd_l", "more than 32 times t_rrd_s; expected less");
  rcd_read = spec.t_rcd_read.count();
  rcd_write = spec.t_rcd_write.count();
  rp = spec.t_rp.count();
  ras = spec.t_ras.count();
  wr = spec.t_wr.count();
  rtp = spec.t_rtp.count();
  cl = spec.cl.count();
  cwl = spec.cwl.count();
  read_to_write = spec.t_rtw.count();
  write_to_read = cwl + burst + spec.t_wtr.count();
  settle = std::max({column.ccd_l, write_to_read, read_to_write});
  bank_groups = spec.bank_groups;
  banks = spec.bank_groups * spec.banks_per_group * spec.sids;
  refi = spec.t_refi.count();
  rfc_all = spec.t_rfc_all_bank.count();
  rfc_bank = spec.t_rfc_per_bank.count();
  if (spec.refresh == "per_bank") {
    refresh = Refresh::PerBank;
    // The margin keeps one access that waits for a refresh from bringing later refreshes forward.
    ahead = 2 * rfc_bank;
  } else if (spec.refresh == "all_bank") {
    refresh = Refresh::AllBank;
  } else if (spec.refresh != "none") {
    refuse("refresh",
           "found \"" + spec.refresh + "\"; expected \"per_bank\", \"all_bank\" or \"none\"");
  }
  if (refresh != Refresh::None && refi < banks) require_positive(0, "t_refi");
  // The write queue of a channel drains from its high to its low level. Files without the levels:
  // those of Ramulator 2.1.
  const bool known = spec.exact.write_high_percent > 0;
  const std::int64_t drained =
      known ? spec.exact.write_high_percent - spec.exact.write_low_percent : 60;
  write_batch =
      std::max<std::int64_t>(spec.queue_depth * drained / (100 * spec.pseudo_channels), 4);
}

PseudoChannel::PseudoChannel(const HbmTiming& timing)
    : t_(&timing),
      banks_(static_cast<std::size_t>(timing.banks)),
      columns_(timing.column),
      acts_(timing.faw_slots, timing.rrd_l_slots),
      act_grid_(timing.act_slot, 0) {
  queue_.reserve(static_cast<std::size_t>(timing.write_batch) + 4);
  reset();
}

void PseudoChannel::reset() {
  std::fill(banks_.begin(), banks_.end(), Bank{});
  columns_.reset();
  acts_.clear();
  queue_.clear();
  settled_at_ = 0;
  last_column_ = last_act_ = activates_ = queued_ = last_write_ = batch_start_ = batch_end_ = 0;
  freed_start_ = freed_end_ = 0;
  act_idle_ = true;
  write_last_ = false;
  next_bank_ = 0;
  owing_ = 0;
  next_due_ = t_->refresh == HbmTiming::Refresh::PerBank ? t_->refi / t_->banks : t_->refi;
  if (t_->refresh == HbmTiming::Refresh::None) next_due_ = INT64_MAX;
}

std::int64_t PseudoChannel::activate(std::int64_t now, std::int64_t group, std::int64_t earliest) {
  // No earlier activation can bind any more: align the slots with this one.
  if (act_idle_ || now >= last_act_ + (t_->faw_slots + t_->rrd_l_slots) * t_->act_slot) {
    acts_.clear();
    act_grid_.anchor(kFirstSlot + ceil_slots(earliest - now, t_->act_slot), earliest);
    act_idle_ = false;
  }
  const std::int64_t time = act_grid_.time(acts_.book(group, act_grid_.ceil_slot(earliest)));
  last_act_ = std::max(last_act_, time);
  return time;
}

std::int64_t PseudoChannel::open(std::int64_t now, const ColumnRun& run, bool write) {
  Bank& b = bank(run.bank);
  if (b.row != run.row) {
    const std::int64_t earliest = std::max(now, b.ready) + (b.row < 0 ? 0 : t_->rp);
    b.act = activate(now, run.group, earliest);
    b.row = run.row;
    b.ready = b.act + t_->ras;
    ++activates_;
  }
  return std::max(now, b.act + (write ? t_->rcd_write : t_->rcd_read));
}

ColumnCalendar::Booked PseudoChannel::book(std::int64_t ready, const ColumnRun& run, bool write) {
  const ColumnCalendar::Booked at = columns_.book(ready, run.group, run.columns, run.pair, write);
  if (at.last >= last_column_) {
    last_column_ = at.last;
    settled_at_ = at.last + t_->settle;
    write_last_ = write;
  }
  const std::int64_t closes = at.last + (write ? t_->cwl + t_->burst + t_->wr : t_->rtp);
  Bank& own = bank(run.bank);
  own.ready = std::max(own.ready, closes);
  if (run.pair) {
    Bank& other = bank(run.bank ^ 1);
    other.ready = std::max(other.ready, closes);
  }
  return at;
}

ColumnCalendar::Booked PseudoChannel::place(std::int64_t now, const ColumnRun& run, bool write,
                                            std::int64_t earliest) {
  ColumnRun other = run;
  other.bank ^= 1;
  other.group ^= 1;
  std::int64_t ready = open(now, run, write);
  if (run.pair) ready = std::max(ready, open(now, other, write));
  if (!write && settled(now)) columns_.clear(ready);
  return book(std::max(ready, earliest), run, write);
}

std::int64_t PseudoChannel::read(std::int64_t now, const ColumnRun& run) {
  return place(now, run, false, 0).last + t_->cl + t_->burst;
}

std::int64_t PseudoChannel::write(std::int64_t now, const ColumnRun& run) {
  // The queue holds two batches: this place was freed when the drain before the last came this far.
  const std::int64_t freed = freed_start_ + (freed_end_ - freed_start_) / t_->write_batch *
                                                std::min(queued_, t_->write_batch);
  queue_.push_back(run);
  queued_ += run.bursts();
  last_write_ = now;
  if (queued_ >= t_->write_batch) drain(now);
  return std::max(now, freed) + t_->cwl + t_->burst;
}

void PseudoChannel::drain(std::int64_t now) {
  std::int64_t start = now;
  if (settled(now)) {
    columns_.clear(now);
  } else if (write_last_) {
    start = std::max(start, batch_start_);  // writes go on, and fill what the last batch left
  } else {
    start = std::max(start, last_column_ + t_->read_to_write);
  }
  columns_.begin_writes(start);
  std::int64_t first = INT64_MAX;
  std::int64_t last = 0;
  for (const ColumnRun& run : queue_) {
    const ColumnCalendar::Booked at = place(now, run, true, start);
    first = std::min(first, at.first);
    last = std::max(last, at.last);
  }
  // The bus belongs to the batch, and no read starts within the turnaround on both sides.
  columns_.keep_reads_out(first - t_->read_to_write, last + t_->write_to_read);
  freed_start_ = batch_start_;
  freed_end_ = batch_end_;
  batch_start_ = first;
  batch_end_ = last + t_->column.slot;
  queue_.clear();
  queued_ = 0;
}

void PseudoChannel::catch_up(std::int64_t now) {
  if (queued_ > 0) {
    const std::int64_t idle_since = std::max(last_column_, last_write_);
    const std::int64_t needed =
        t_->read_to_write + queued_ * t_->column.slot + t_->write_to_read + t_->rcd_write;
    if (now > idle_since + needed) drain(idle_since);
  }
  const std::int64_t until = std::max(now, last_column_ - t_->ahead);
  if (next_due_ > until) return;
  if (t_->refresh == HbmTiming::Refresh::PerBank) refresh_banks(until);
  if (t_->refresh == HbmTiming::Refresh::AllBank) refresh_all(until);
}

void PseudoChannel::refresh_all(std::int64_t until) {
  while (next_due_ <= until) {
    const std::int64_t behind = (until - std::max(next_due_, last_column_)) / t_->refi;
    if (behind > 1) next_due_ += (until - next_due_) / t_->refi * t_->refi;
    std::int64_t start = next_due_;
    bool open = false;
    for (const Bank& bank : banks_) {
      open = open || bank.row >= 0;
      start = std::max(start, bank.ready);
    }
    const std::int64_t end = start + (open ? t_->rp : 0) + t_->rfc_all;
    for (Bank& bank : banks_) {
      bank.row = -1;
      bank.ready = end;
    }
    next_due_ += t_->refi;
  }
}

void PseudoChannel::refresh_bank(std::int64_t index, std::int64_t at) {
  Bank& bank = banks_[static_cast<std::size_t>(index)];
  const std::int64_t earliest = std::max(at, bank.ready) + (bank.row >= 0 ? t_->rp : 0);
  // A refresh activates rows, so it takes a place among the activations (tRRD, tFAW).
  bank.ready = activate(at, index % t_->bank_groups, earliest) + t_->rfc_bank;
  bank.row = -1;
}

void PseudoChannel::refresh_banks(std::int64_t until) {
  constexpr std::int32_t kPostponable = 8;
  const std::int64_t interval = t_->refi / t_->banks;
  const std::int64_t quiet_since = std::max(last_column_ + t_->ras + t_->wr, next_due_);
  if (until > quiet_since + 2 * t_->refi) {
    // Idle for more than a round: every bank was refreshed without a conflict.
    const std::int64_t skipped = (until - t_->refi - next_due_) / interval;
    next_due_ += skipped * interval;
    next_bank_ = (next_bank_ + skipped) % t_->banks;
    for (Bank& bank : banks_) {
      bank.row = -1;
      bank.owed = 0;
    }
    owing_ = 0;
  }
  const auto busy = [](const Bank& bank, std::int64_t at) { return bank.ready > at; };
  for (; next_due_ <= until; next_due_ += interval) {
    // One postponed refresh whose bank has become idle.
    for (std::uint64_t left = owing_; left != 0; left &= left - 1) {
      const std::int64_t index = std::countr_zero(left);
      Bank& bank = banks_[static_cast<std::size_t>(index)];
      if (busy(bank, next_due_)) continue;
      refresh_bank(index, next_due_);
      if (--bank.owed == 0) owing_ &= ~(std::uint64_t{1} << index);
      break;
    }
    const std::int64_t index = next_bank_;
    next_bank_ = next_bank_ + 1 == t_->banks ? 0 : next_bank_ + 1;
    Bank& bank = banks_[static_cast<std::size_t>(index)];
    if (index < 64 && bank.owed < kPostponable && busy(bank, next_due_)) {
      ++bank.owed;
      owing_ |= std::uint64_t{1} << index;
    } else {
      refresh_bank(index, next_due_);
    }
  }
}

std::int64_t PseudoChannel::activates() const {
  std::map<std::int64_t, std::int32_t> rows;  // of the banks that queued writes open
  std::int64_t pending = 0;
  const auto open_bank = [&](std::int64_t index, std::int32_t row) {
    const auto at = rows.try_emplace(index, banks_[static_cast<std::size_t>(index)].row).first;
    if (at->second != row) ++pending;
    at->second = row;
  };
  for (const ColumnRun& run : queue_) {
    open_bank(run.bank, run.row);
    if (run.pair) open_bank(run.bank ^ 1, run.row);
  }
  return activates_ + pending;
}

}  // namespace trn3sim::models
