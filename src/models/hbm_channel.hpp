// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One pseudo-channel of an HBM stack: bank states, the two calendars, the write queue and refresh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trn3sim/config/chip_spec.hpp"

#include "models/hbm_calendar.hpp"
#include "models/hbm_columns.hpp"

namespace trn3sim::models {

// Timing of a stack in femtoseconds, resolved once.
struct HbmTiming {
  enum class Refresh : std::uint8_t { None, PerBank, AllBank };

  HbmTiming(const config::HbmSpec& spec, std::int64_t stacks);

  std::int64_t peak = 0;   // bytes per second of the stack
  std::int64_t burst = 0;  // one column on the data bus at the raw rate
  ColumnTiming column;     // its slot with derate and check bursts
  std::int64_t act_slot = 0, faw_slots = 0, rrd_l_slots = 0;
  std::int64_t rcd_read = 0, rcd_write = 0, rp = 0, ras = 0, wr = 0, rtp = 0, cl = 0, cwl = 0;
  std::int64_t read_to_write = 0, write_to_read = 0;  // column to column
  std::int64_t settle = 0;                            // after this no column binds the next one
  Refresh refresh = Refresh::None;
  std::int64_t refi = 0, rfc_all = 0, rfc_bank = 0;
  std::int64_t ahead = 0;                   // work booked further ahead than this passes refreshes
  std::int64_t bank_groups = 0, banks = 0;  // banks of a pseudo-channel, all SIDs
  std::int64_t write_batch = 0;             // bursts that start a drain
};

// A run of columns in one row, or a pair of runs: as many in the same row of bank ^ 1, group ^ 1.
struct ColumnRun {
  std::int32_t row = 0;
  std::int16_t bank = 0;  // over groups and SIDs
  std::int16_t columns = 0;
  std::int8_t group = 0;
  bool pair = false;

  [[nodiscard]] std::int64_t bursts() const { return pair ? 2 * columns : columns; }
};

class PseudoChannel {
 public:
  explicit PseudoChannel(const HbmTiming& timing);
  void reset();
  // End of the data of a read on the wire.
  std::int64_t read(std::int64_t now, const ColumnRun& run);
  // Time at which the write queue has taken the data.
  std::int64_t write(std::int64_t now, const ColumnRun& run);
  // Refreshes and idle-time drains that are due; call before the runs of an access.
  void advance(std::int64_t now) {
    if (queued_ > 0 || next_due_ <= std::max(now, last_column_ - t_->ahead)) catch_up(now);
  }
  // Activations done, and those that the queued writes still need.
  [[nodiscard]] std::int64_t activates() const;

 private:
  struct Bank {
    std::int64_t act = 0;    // last activation
    std::int64_t ready = 0;  // earliest precharge of an open row, activation of a closed bank
    std::int32_t row = -1;   // open row, -1 = closed
    std::int32_t owed = 0;   // postponed refreshes
  };
  // Books an activation for a request that came at `now`.
  std::int64_t activate(std::int64_t now, std::int64_t group, std::int64_t earliest);
  // Whether no booked column can hold back a command at or after `now`.
  [[nodiscard]] bool settled(std::int64_t now) const { return now >= settled_at_; }
  Bank& bank(std::int64_t index) { return banks_[static_cast<std::size_t>(index)]; }
  // Opens the row of `run` in its bank; the time from which columns may come.
  std::int64_t open(std::int64_t now, const ColumnRun& run, bool write);
  // Columns not before `earliest`.
  ColumnCalendar::Booked place(std::int64_t now, const ColumnRun& run, bool write,
                               std::int64_t earliest);
  ColumnCalendar::Booked book(std::int64_t ready, const ColumnRun& run, bool write);
  void catch_up(std::int64_t now);
  void drain(std::int64_t now);
  void refresh_all(std::int64_t until);
  void refresh_banks(std::int64_t until);
  void refresh_bank(std::int64_t bank, std::int64_t at);

  const HbmTiming* t_;
  std::vector<Bank> banks_;
  ColumnCalendar columns_;
  ActivateCalendar acts_;
  SlotGrid act_grid_;
  std::int64_t last_column_ = 0;  // time of the latest booked column
  std::int64_t settled_at_ = 0;   // when it binds no more
  std::int64_t last_act_ = 0;     // latest booked activation
  std::int64_t activates_ = 0;
  bool act_idle_ = true;  // nothing booked yet
  // Writes.
  std::vector<ColumnRun> queue_;
  std::int64_t queued_ = 0;                       // bursts
  std::int64_t last_write_ = 0;                   // arrival of the youngest
  std::int64_t batch_start_ = 0, batch_end_ = 0;  // of the last drain
  std::int64_t freed_start_ = 0, freed_end_ = 0;  // of the drain before it
  bool write_last_ = false;                       // the latest booked columns are writes
  // Refresh.
  std::int64_t next_due_ = 0;
  std::int64_t next_bank_ = 0;
  std::uint64_t owing_ = 0;  // banks with postponed refreshes (first 64)
};

}  // namespace trn3sim::models
