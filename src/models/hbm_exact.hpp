// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One HBM channel, burst by burst: a read and a write queue in front of its pseudo-channels,
// FR-FCFS in which no precharge passes an older row hit, and every timing in whole command clocks.
// Row commands may start at half clocks. Time jumps from one command to the next that can be ready.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

namespace trn3sim::models {

// Timings in ticks of half a command clock.
struct ExactTiming {
  // Throws base::UserError: too many banks, or refreshes that come faster than commands can follow.
  ExactTiming(const config::HbmSpec& spec, std::int64_t stacks);
  void require_refresh() const;

  std::int64_t tick_fs = 0;  // a burst takes four ticks
  std::int64_t rcd_read, rcd_write, rp, ras, rc, wr, rtp, cl, cwl;
  std::int64_t ccd_s, ccd_l, ccd_r, rrd_s, rrd_l, faw, wtr_s, wtr_l, rtw, rref_d, ppd;
  std::int64_t refi, refi_bank, rfc_all, rfc_bank;
  std::int64_t burst;  // ticks on the bus
  bool refresh_bank = false, refresh_all = false, closed_page = false;
  std::int64_t pseudo_channels, sids, groups, banks_per_group;
  std::int64_t queue, write_high, write_low, postponed;
};

struct ExactRequest {
  std::int64_t arrive = 0;
  std::int64_t id = 0;
  std::int32_t row = 0;
  std::int16_t bank = 0;  // as in HbmPlace, of the pseudo-channel
  std::int8_t channel = 0;
  bool write = false;
};

class ExactChannel {
 public:
  struct Done {
    std::int64_t id = 0;
    std::int64_t arrive = 0, command = 0, end = 0;  // column command; end of the data
  };

  explicit ExactChannel(const ExactTiming& timing);

  // Whether the queue has no room for another read or write.
  [[nodiscard]] bool full(bool write) const { return size_[write ? 1 : 0] >= t_.queue; }
  // Takes a request that arrives now.
  void push(const ExactRequest& request);
  // Issues what is ready now and moves on to the next tick at which something may be.
  void step();

  [[nodiscard]] std::int64_t now() const { return now_; }
  // A request arrives at `time`, which may be before the next tick that the channel waits for.
  void advance_to(std::int64_t time) { now_ = std::min(now_, time); }
  // Columns issued since the last call of take_done().
  [[nodiscard]] const std::vector<Done>& done() const { return done_; }
  void clear_done() { done_.clear(); }
  [[nodiscard]] std::int64_t activates() const { return activates_; }
  [[nodiscard]] std::int64_t refreshes() const { return refreshes_; }  // per-bank equivalents
  [[nodiscard]] bool empty() const { return size_[0] + size_[1] + active_ == 0; }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int64_t kNever = INT64_MAX / 4;

  struct Node {  // a queued request
    ExactRequest request;
    std::int32_t next = kNone, previous = kNone;
  };
  struct Bank {
    std::int32_t row = kNone;
    std::int32_t active = kNone;                     // request whose activation was issued
    std::array<std::int32_t, 2> head{kNone, kNone};  // oldest request, reads and writes
    std::array<std::int32_t, 2> tail{kNone, kNone};
    std::array<std::int32_t, 2> hit{kNone, kNone};  // oldest request of the open row
    std::array<std::int64_t, 2> column{};           // earliest read, write
    std::int64_t act = 0, pre = 0;
    std::int16_t group = 0;  // of all SIDs
    std::int16_t sid = 0;
    std::int32_t owed = 0;  // postponed refreshes
  };
  struct Group {
    std::array<std::int64_t, 2> column{};
    std::int64_t act = 0;
  };
  struct Waiting {
    std::uint64_t banks = 0;
    std::int64_t wake = 0;

    void set(std::uint64_t bank, bool on, std::int64_t ready) {
      banks = on ? banks | bank : banks & ~bank;
      if (on && ready < wake) wake = ready;
    }
  };
  struct Channel {
    std::vector<Bank> banks;
    std::vector<Group> groups;
    std::array<std::int64_t, 2> column{};
    std::int64_t other_sid = 0;  // earliest column of another SID than the last
    std::int32_t last_sid = 0;
    std::int64_t act = 0, pre = 0, refresh = 0;
    std::array<std::int64_t, 4> last_acts{};  // ring
    std::size_t next_act = 0;
    // Banks by what their requests, reads and writes, wait for: a column of the open row, the
    // activation of the row or the precharge of another row; and columns of actives. With each the
    // time before which none of them can be ready.
    std::array<Waiting, 2> hits{}, acts{}, pres{};
    Waiting actives{};
  };
  struct Refresh {
    std::int16_t channel = 0, bank = 0;
  };
  // The best command found so far by a scan.
  struct Pick {
    std::int32_t channel = kNone, bank = kNone, node = kNone;
    std::int64_t arrive = kNever, id = kNever;
  };

  bool issue_column();
  bool issue_row();
  bool issue_refresh();
  bool issue_bank_refresh();
  bool issue_all_refresh();
  void due_refreshes();
  void seed_bank_refresh();
  [[nodiscard]] bool wanted(const Bank& bank) const;
  // Offers the ready ones of a set to `pick`, which keeps the oldest. `set.wake` moves on.
  void scan_columns(std::int32_t channel, Waiting& set, bool active, std::size_t write, Pick& pick);
  void scan_acts(std::int32_t channel, std::size_t write, Pick& pick);
  void scan_pres(std::int32_t channel, std::size_t write, Pick& pick);
  void offer(std::int32_t channel, std::int32_t bank, std::int32_t node, Pick& pick) const;
  std::int64_t column_ready(const Channel& c, const Bank& bank, std::size_t write) const;
  void column(std::int32_t channel, std::int32_t bank, std::int32_t node);
  void activate(std::int32_t channel, std::int32_t bank, std::int32_t node);
  void precharge(std::int32_t channel, std::int32_t bank);
  void note(std::int32_t channel, std::int32_t bank);  // what the bank now waits for
  void find_hits(Bank& bank);
  void unlink(Bank& bank, std::int32_t node);
  void update_mode();
  // A command that is not ready before `time`.
  void later(std::int64_t time) {
    if (time < wake_) wake_ = time;
  }

  ExactTiming t_;
  std::int64_t now_ = 0;
  std::int64_t wake_ = 0;
  std::int64_t row_bus_ = 0;  // next row command
  std::vector<Channel> channels_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> free_;
  std::array<std::int64_t, 2> size_{};
  std::int64_t active_ = 0;
  bool write_mode_ = false;
  // Refresh.
  std::int64_t next_due_ = 0;
  std::int64_t next_bank_ = 0;
  std::deque<Refresh> due_;
  std::int64_t all_pending_ = 0;  // pseudo-channels that wait for an all-bank refresh
  std::vector<Done> done_;
  std::int64_t activates_ = 0, refreshes_ = 0;
};

}  // namespace trn3sim::models
