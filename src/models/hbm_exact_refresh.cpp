// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Refresh of the burst-level channel.
#include <algorithm>

#include "models/hbm_exact.hpp"

namespace trn3sim::models {
namespace {

constexpr std::int64_t kClock = 2;  // ticks

}  // namespace

bool ExactChannel::wanted(const Bank& bank) const {
  return bank.active != kNone || bank.head[0] != kNone || bank.head[1] != kNone;
}

void ExactChannel::due_refreshes() {
  while (now_ >= next_due_) {
    if (t_.refresh_all) {
      all_pending_ = t_.pseudo_channels;
      due_.clear();
      for (std::int64_t i = 0; i < t_.pseudo_channels; ++i)
        due_.push_back({static_cast<std::int16_t>(i), 0});
      next_due_ += t_.refi;
    } else {
      seed_bank_refresh();
      next_due_ += t_.refi_bank;
    }
  }
  wake_ = next_due_;
}

// The next bank of every pseudo-channel, and those postponed ones that have become idle.
void ExactChannel::seed_bank_refresh() {
  const std::int64_t per_sid = t_.groups * t_.banks_per_group;
  const std::int64_t flat = next_bank_ % per_sid;
  const std::int64_t group = flat / t_.banks_per_group;
  const std::int64_t index =
      next_bank_ / per_sid * per_sid + flat % t_.banks_per_group * t_.groups + group;
  next_bank_ = (next_bank_ + 1) % (per_sid * t_.sids);
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    std::vector<Bank>& banks = channels_[i].banks;
    const auto channel = static_cast<std::int16_t>(i);
    ++banks[static_cast<std::size_t>(index)].owed;
    for (std::size_t b = 0; b < banks.size(); ++b) {
      Bank& bank = banks[b];
      const bool must = bank.owed > t_.postponed;
      if (bank.owed == 0 || (wanted(bank) && !must)) continue;
      --bank.owed;
      due_.push_back({channel, static_cast<std::int16_t>(b)});
    }
  }
}

bool ExactChannel::issue_refresh() {
  if (due_.empty()) return false;
  return t_.refresh_all ? issue_all_refresh() : issue_bank_refresh();
}

// Closes the bank at the head of the line and refreshes it; other requests go on meanwhile.
bool ExactChannel::issue_bank_refresh() {
  const Refresh head = due_.front();
  Channel& c = channels_[static_cast<std::size_t>(head.channel)];
  Bank& bank = c.banks[static_cast<std::size_t>(head.bank)];
  if (bank.row != kNone) {
    if (bank.active != kNone) return false;  // its column comes first
    const std::int64_t ready = std::max(bank.pre, c.pre);
    if (ready > now_) {
      later(ready);
      return false;
    }
    precharge(head.channel, head.bank);
    return true;
  }
  std::int64_t ready = std::max({bank.act, c.refresh, now_});
  ready += ready % kClock;
  if (ready > now_) {
    later(ready);
    return false;
  }
  bank.act = now_ + t_.rfc_bank;
  c.act = std::max(c.act, now_ + t_.rref_d);
  c.refresh = now_ + t_.rref_d;
  row_bus_ = now_ + 1;
  ++refreshes_;
  due_.pop_front();
  return true;
}

// Closes all banks of the pseudo-channel at the head of the line and refreshes them; no request is
// served until all pseudo-channels are refreshed, so that the refresh comes at all.
bool ExactChannel::issue_all_refresh() {
  const Refresh head = due_.front();
  Channel& c = channels_[static_cast<std::size_t>(head.channel)];
  std::int64_t pre = now_;
  std::int64_t act = now_;
  bool open = false;
  for (const Bank& bank : c.banks) {
    if (bank.active != kNone) return false;
    if (bank.row != kNone) {
      open = true;
      pre = std::max(pre, bank.pre);
    }
    act = std::max(act, bank.act);
  }
  std::int64_t ready = open ? pre : act;
  if (!open) ready += ready % kClock;
  if (ready > now_) {
    later(ready);
    return false;
  }
  for (std::size_t i = 0; i < c.banks.size(); ++i) {
    Bank& bank = c.banks[i];
    if (open) {
      bank.row = kNone;
      bank.hit = {kNone, kNone};
      bank.act = std::max(bank.act, now_ + t_.rp);
      note(head.channel, static_cast<std::int32_t>(i));
    } else {
      bank.act = now_ + t_.rfc_all;
    }
  }
  row_bus_ = now_ + 1;
  if (open) return true;
  refreshes_ += static_cast<std::int64_t>(c.banks.size());
  --all_pending_;
  due_.pop_front();
  return true;
}

}  // namespace trn3sim::models
