// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// timeline.json: a timeline in the trace event format that Perfetto (https://ui.perfetto.dev) and
// chrome://tracing open.
#pragma once

#include <string>

#include "trn3sim/stats/timeline.hpp"

namespace trn3sim::report {

// One process per chip, one thread per track that has slices. Times are microseconds with all
// digits down to the femtosecond. `otherData` says which of the machine's `chips` were sampled and
// how many slices were dropped. Slices are sorted by track and start: equal timelines give equal
// bytes.
std::string timeline_json(const stats::Timeline& timeline, std::int64_t chips);

// `text` as a gzip file without name and date: equal texts give equal bytes.
std::string gzip(const std::string& text);

}  // namespace trn3sim::report
