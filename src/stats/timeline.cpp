// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/stats/timeline.hpp"

#include "trn3sim/base/error.hpp"

namespace trn3sim::stats {

std::int32_t Timeline::add_track(Track track) {
  tracks_.push_back(std::move(track));
  return static_cast<std::int32_t>(tracks_.size()) - 1;
}

std::int32_t Timeline::name_id(const std::string& text) {
  const auto [it, added] = ids_.try_emplace(text, static_cast<std::int32_t>(names_.size()));
  if (added) names_.push_back(text);
  return it->second;
}

void Timeline::slice(Slice slice) {
  TRN3SIM_CHECK(slice.track >= 0 && static_cast<std::size_t>(slice.track) < tracks_.size(),
                "a slice on no track");
  TRN3SIM_CHECK(slice.end >= slice.start, "a slice ends before it starts");
  TRN3SIM_CHECK(slice.end >= last_, "slices come by ascending end");
  last_ = slice.end;
  if (cut_ == base::kTimeMax) {
    if (static_cast<std::int64_t>(slices_.size()) < spec_.limit) {
      slices_.push_back(std::move(slice));
      return;
    }
    cut_ = slice.end;
    while (!slices_.empty() && slices_.back().end >= cut_) {
      slices_.pop_back();
      ++dropped_;
    }
  }
  ++dropped_;
}

}  // namespace trn3sim::stats
