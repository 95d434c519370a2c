// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "models/hbm_channel.hpp"

#include <algorithm>
#include <string>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

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
    refuse("bank_groups", "found " + std::to_string(spec.bank_groups) + "; at most 6 are modelled");
  }
  peak = spec.bandwidth.count() / stacks;
  const std::int64_t pseudo_channels = spec.channels * spec.pseudo_channels;
  burst = static_cast<std::int64_t>(
      base::ceil_div(Int128(spec.burst.count()) * base::kFemtosPerSecond * pseudo_channels * stacks,
                     spec.bandwidth.count()));
  // Columns of all groups together come no faster than one per tCCD_L / groups: where that is
  // longer than a burst, it is the slot, so that runs still pack without holes.
  slot = std::max(static_cast<std::int64_t>(static_cast<double>(burst) / spec.derate + 0.5),
                  ceil_slots(spec.t_ccd_l.count(), spec.bank_groups));
  ccd_l = std::max(spec.t_ccd_l.count(), slot);
  stride = ceil_slots(ccd_l, slot);
  period4 = (4 * ccd_l + slot / 2) / slot;
  act_slot = spec.t_rrd_s.count();
  faw_slots = std::max<std::int64_t>(ceil_slots(spec.t_faw.count(), act_slot), 1);
  rrd_l_slots = std::max<std::int64_t>(ceil_slots(spec.t_rrd_l.count(), act_slot), 1);
  if (faw_slots > 32) refuse("t_faw", "more than 32 times t_rrd_s; expected less");
  rcd_read = spec.t_rcd_read.count();
  rcd_write = spec.t_rcd_write.count();
  rp = spec.t_rp.count();
  ras = spec.t_ras.count();
  wr = spec.t_wr.count();
  rtp = spec.t_rtp.count();
  cl = spec.cl.count();
  cwl = spec.cwl.count();
  read_to_write_slots = std::max<std::int64_t>(ceil_slots(spec.t_rtw.count(), slot), 1);
  write_to_read_slots = ceil_slots(cwl + burst + spec.t_wtr.count(), slot);
  settle = (std::max({stride, write_to_read_slots, read_to_write_slots}) + 1) * slot;
  bank_groups = spec.bank_groups;
  banks = spec.bank_groups * spec.banks_per_group * spec.sids;
  refi = spec.t_refi.count();
  rfc_all = spec.t_rfc_all_bank.count();
  rfc_bank = spec.t_rfc_per_bank.count();
  if (spec.refresh == "per_bank") {
    refresh = Refresh::PerBank;
  } else if (spec.refresh == "all_bank") {
    refresh = Refresh::AllBank;
  } else if (spec.refresh != "none") {
    refuse("refresh",
           "found \"" + spec.refresh + "\"; expected \"per_bank\", \"all_bank\" or \"none\"");
  }
  if (refresh != Refresh::None && refi < banks) require_positive(0, "t_refi");
  // A full write queue drains to empty; about half as many again arrive meanwhile and join.
  write_batch = std::max<std::int64_t>(spec.queue_depth * 3 / (2 * spec.pseudo_channels), 4);
}

PseudoChannel::PseudoChannel(const HbmTiming& timing)
    : t_(&timing),
      banks_(static_cast<std::size_t>(timing.banks)),
      columns_(timing.stride, timing.period4),
      acts_(timing.faw_slots, timing.rrd_l_slots),
      column_grid_(timing.slot, 0),
      act_grid_(timing.act_slot, 0) {
  queue_.reserve(static_cast<std::size_t>(timing.write_batch) + 4);
  reset();
}

void PseudoChannel::reset() {
  std::fill(banks_.begin(), banks_.end(), Bank{});
  columns_.clear();
  acts_.clear();
  queue_.clear();
  last_column_ = last_act_ = activates_ = queued_ = last_write_ = batch_start_ = batch_end_ = 0;
  freed_start_ = freed_end_ = 0;
  idle_ = act_idle_ = true;
  write_last_ = false;
  next_bank_ = 0;
  owing_ = 0;
  next_due_ = t_->refresh == HbmTiming::Refresh::PerBank ? t_->refi / t_->banks : t_->refi;
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

bool PseudoChannel::settled(std::int64_t now) const {
  return idle_ || now >= last_column_ + t_->settle;
}

std::int64_t PseudoChannel::place(std::int64_t now, const ColumnRun& run, bool write,
                                  std::int64_t earliest_slot) {
  Bank& bank = banks_[static_cast<std::size_t>(run.bank)];
  if (bank.row != run.row) {
    const std::int64_t earliest =
        bank.row < 0 ? std::max(now, bank.act_ready) : std::max(now, bank.pre_ready) + t_->rp;
    bank.act = activate(now, run.group, earliest);
    bank.row = run.row;
    bank.pre_ready = bank.act + t_->ras;
    ++activates_;
  }
  const std::int64_t ready = std::max(now, bank.act + (write ? t_->rcd_write : t_->rcd_read));
  if (!write && settled(now)) {
    columns_.clear();
    column_grid_.anchor(kFirstSlot + ceil_slots(ready - now, t_->slot), ready);
    idle_ = false;
  }
  std::int64_t earliest = std::max(earliest_slot, columns_.first_open());
  if (ready > column_grid_.time(earliest)) earliest = column_grid_.ceil_slot(ready);
  const std::int64_t slot = columns_.book(run.group, run.columns, earliest, write);
  const std::int64_t last = slot + columns_.span(run.columns);
  const std::int64_t time = column_grid_.time(last);
  if (time >= last_column_) {
    last_column_ = time;
    write_last_ = write;
  }
  bank.pre_ready =
      std::max(bank.pre_ready, write ? time + t_->cwl + t_->burst + t_->wr : time + t_->rtp);
  return slot;
}

std::int64_t PseudoChannel::read(std::int64_t now, const ColumnRun& run) {
  const std::int64_t slot = place(now, run, false, 0);
  return column_grid_.time(slot + columns_.span(run.columns)) + t_->cl + t_->burst;
}

std::int64_t PseudoChannel::write(std::int64_t now, const ColumnRun& run) {
  // The queue holds two batches: this place was freed when the drain before the last came this far.
  const std::int64_t freed = freed_start_ + (freed_end_ - freed_start_) / t_->write_batch *
                                                std::min(queued_, t_->write_batch);
  queue_.push_back(run);
  queued_ += run.columns;
  last_write_ = now;
  if (queued_ >= t_->write_batch) drain(now);
  return std::max(now, freed) + t_->cwl + t_->burst;
}

void PseudoChannel::drain(std::int64_t now) {
  std::int64_t start = now;
  if (settled(now)) {
    columns_.clear();
    column_grid_.anchor(kFirstSlot, now);
    idle_ = false;
  } else if (write_last_) {
    start = std::max(start, batch_start_);  // writes go on, and fill what the last batch left
  } else {
    start = std::max(start, last_column_ + t_->read_to_write_slots * t_->slot);
  }
  const std::int64_t earliest = column_grid_.ceil_slot(start);
  std::int64_t first = INT64_MAX;
  std::int64_t last = 0;
  for (const ColumnRun& run : queue_) {
    const std::int64_t slot = place(now, run, true, earliest);
    first = std::min(first, slot);
    last = std::max(last, slot + columns_.span(run.columns));
  }
  // The bus belongs to the batch, and no read starts within the turnaround on both sides.
  columns_.keep_reads_out(first - t_->read_to_write_slots + 1, last + t_->write_to_read_slots - 1);
  freed_start_ = batch_start_;
  freed_end_ = batch_end_;
  batch_start_ = column_grid_.time(first);
  batch_end_ = column_grid_.time(last + 1);
  queue_.clear();
  queued_ = 0;
}

void PseudoChannel::advance(std::int64_t now) {
  if (queued_ > 0) {
    const std::int64_t idle_since = std::max(last_column_, last_write_);
    const std::int64_t needed =
        (t_->read_to_write_slots + queued_ + t_->write_to_read_slots) * t_->slot + t_->rcd_write;
    if (now > idle_since + needed) drain(idle_since);
  }
  if (t_->refresh == HbmTiming::Refresh::PerBank) {
    // Work booked far ahead passes refreshes too. The margin keeps one access that waits for a
    // refresh from bringing later refreshes forward.
    const std::int64_t until = std::max(now, last_column_ - 2 * t_->rfc_bank);
    if (next_due_ <= until) refresh_banks(until);
  } else if (t_->refresh == HbmTiming::Refresh::AllBank) {
    const std::int64_t until = std::max(now, last_column_);
    if (next_due_ <= until) refresh_all(until);
  }
}

void PseudoChannel::refresh_all(std::int64_t until) {
  while (next_due_ <= until) {
    const std::int64_t behind = (until - std::max(next_due_, last_column_)) / t_->refi;
    if (behind > 1) next_due_ += (until - next_due_) / t_->refi * t_->refi;
    std::int64_t start = next_due_;
    bool open = false;
    for (const Bank& bank : banks_) {
      if (bank.row >= 0) {
        open = true;
        start = std::max(start, bank.pre_ready);
      } else {
        start = std::max(start, bank.act_ready);
      }
    }
    const std::int64_t end = start + (open ? t_->rp : 0) + t_->rfc_all;
    for (Bank& bank : banks_) {
      bank.row = -1;
      bank.act_ready = end;
    }
    next_due_ += t_->refi;
  }
}

void PseudoChannel::refresh_bank(std::int64_t index, std::int64_t at) {
  Bank& bank = banks_[static_cast<std::size_t>(index)];
  const std::int64_t earliest =
      bank.row >= 0 ? std::max(at, bank.pre_ready) + t_->rp : std::max(at, bank.act_ready);
  // A refresh activates rows, so it takes a place among the activations (tRRD, tFAW).
  bank.act_ready = activate(at, index % t_->bank_groups, earliest) + t_->rfc_bank;
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
  const auto busy = [&](const Bank& bank, std::int64_t at) {
    return (bank.row >= 0 ? bank.pre_ready : bank.act_ready) > at;
  };
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
  std::int64_t pending = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    std::int32_t row = banks_[static_cast<std::size_t>(queue_[i].bank)].row;
    for (std::size_t j = 0; j < i; ++j) {
      if (queue_[j].bank == queue_[i].bank) row = queue_[j].row;
    }
    if (row != queue_[i].row) ++pending;
  }
  return activates_ + pending;
}

}  // namespace trn3sim::models
