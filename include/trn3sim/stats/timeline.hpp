// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// What ran when on some of the chips: plain data, the same from run to run. Bounded: past the limit
// slices are counted, not kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trn3sim/base/quantity.hpp"

namespace trn3sim::stats {

struct TimelineSpec {
  std::vector<std::int64_t> chips = {0, 1, 2, 3};  // those that the machine has not are left out
  std::int64_t limit = 200'000;                    // slices
  bool gzip = false;                               // the file is compressed
};

class Timeline {
 public:
  struct Track {
    std::int64_t chip = 0, rank = 0;
    std::string name;  // "compute", "collectives 0", "send", ...
    bool kernels = false;
  };
  struct Slice {
    std::int32_t track = 0;  // index into tracks()
    std::int32_t name = 0;   // index into names(), as op and block
    std::int32_t op = 0, block = 0;
    std::string iteration;   // of the loops around it, outermost first: "3/12"; or empty
    std::int64_t bytes = 0;  // HBM bytes of a kernel, bytes of a transfer
    base::Time start, end;
  };

  explicit Timeline(TimelineSpec spec) : spec_(std::move(spec)) {}

  std::int32_t add_track(Track track);
  // Index of `text`, added if it is new.
  std::int32_t name_id(const std::string& text);
  // Slices come by ascending end. If there are more than the limit, those are kept that end before
  // the first one too many does; so what is kept does not depend on the order of equal ends.
  void slice(Slice slice);

  [[nodiscard]] const TimelineSpec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<Track>& tracks() const { return tracks_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<Slice>& slices() const { return slices_; }  // by end
  [[nodiscard]] std::int64_t dropped() const { return dropped_; }
  // Everything that ended before this is there; kTimeMax if nothing was dropped.
  [[nodiscard]] base::Time complete_until() const { return cut_; }

 private:
  TimelineSpec spec_;
  std::vector<Track> tracks_;
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t> ids_;
  std::vector<Slice> slices_;
  std::int64_t dropped_ = 0;
  base::Time cut_ = base::kTimeMax, last_;
};

}  // namespace trn3sim::stats
