// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/timeline.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace trn3sim::report {
namespace {

using stats::Timeline;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// Microseconds, exact: femtoseconds have nine digits after the point.
std::string microseconds(base::Time t) {
  constexpr std::int64_t kFemtos = 1'000'000'000;
  return fmt::format("{}.{:09}", t.count() / kFemtos, t.count() % kFemtos);
}

class Writer {
 public:
  Writer(const Timeline& timeline, std::int64_t chips) : timeline_(timeline), chips_(chips) {
    for (const std::string& name : timeline.names()) names_.push_back(quoted(name));
    for (const Timeline::Slice& s : timeline.slices()) order_.push_back(&s);
    std::sort(order_.begin(), order_.end(), [](const auto* a, const auto* b) {
      return std::tie(a->track, a->start, a->end, a->iteration) <
             std::tie(b->track, b->start, b->end, b->iteration);
    });
  }

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + other_data() + ",\n\"traceEvents\":[";
    names_of_tracks();
    for (const Timeline::Slice* s : order_) slice(*s);
    return std::move(out_ += "\n]}\n");
  }

 private:
  [[nodiscard]] std::string other_data() const {
    nlohmann::json data;
    std::set<std::int64_t> sampled;
    for (const Timeline::Track& t : timeline_.tracks()) sampled.insert(t.chip);
    data["chips"] = chips_;
    data["sampled_chips"] = sampled;
    data["slices"] = order_.size();
    data["dropped_slices"] = timeline_.dropped();
    data["limit"] = timeline_.spec().limit;
    std::string note = static_cast<std::int64_t>(sampled.size()) < chips_
                           ? fmt::format("only {} of {} chips are shown", sampled.size(), chips_)
                           : "all chips are shown";
    if (timeline_.dropped() > 0) {
      data["complete_until_us"] = microseconds(timeline_.complete_until());
      note += fmt::format("; {} slices that end at {} us or later were dropped",
                          timeline_.dropped(), microseconds(timeline_.complete_until()));
    }
    data["note"] = note;
    return data.dump();
  }

  void event(const std::string& text) {
    out_ += first_ ? "\n" : ",\n";
    out_ += text;
    first_ = false;
  }

  void name(const char* what, std::int64_t chip, std::int32_t track, const std::string& text) {
    event(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                      chip, track, quoted(text)));
  }

  void names_of_tracks() {
    std::set<std::int32_t> used;
    for (const Timeline::Slice* s : order_) used.insert(s->track);
    std::set<std::int64_t> named;
    for (const std::int32_t track : used) {
      const Timeline::Track& t = timeline_.tracks()[static_cast<std::size_t>(track)];
      if (named.insert(t.chip).second)
        name("process_name", t.chip, track, fmt::format("chip {}", t.chip));
      name("thread_name", t.chip, track, fmt::format("rank {} {}", t.rank, t.name));
      event(fmt::format(
          R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
          t.chip, track, track));
    }
  }

  void slice(const Timeline::Slice& s) {
    const Timeline::Track& t = timeline_.tracks()[static_cast<std::size_t>(s.track)];
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{)"
                   R"("op":{},"block":{},"iteration":"{}","bytes":{}}}}})",
                   t.kernels ? "kernel" : "transfer", name_text(s.name), t.chip, s.track,
                   microseconds(s.start), microseconds(s.end - s.start), name_text(s.op),
                   name_text(s.block), s.iteration, s.bytes);
  }

  [[nodiscard]] const std::string& name_text(std::int32_t id) const {
    return names_[static_cast<std::size_t>(id)];
  }

  const Timeline& timeline_;
  std::int64_t chips_;
  std::vector<std::string> names_;  // as JSON
  std::vector<const Timeline::Slice*> order_;
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string gzip(const std::string& text) {
  constexpr int kGzip = 15 + 16;  // largest window; gzip header instead of zlib's
  z_stream z{};
  TRN3SIM_CHECK(
      deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib");
  std::string out;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::size_t given = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const std::size_t part = std::min(kChunk, text.size() - given);
    // zlib does not write to its input.
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + given));
    z.avail_in = static_cast<uInt>(part);
    given += part;
    do {
      const std::size_t used = out.size();
      out.resize(used + kChunk);
      z.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      z.avail_out = static_cast<uInt>(kChunk);
      status = deflate(&z, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
      out.resize(used + kChunk - z.avail_out);
    } while (z.avail_out == 0);
  }
  deflateEnd(&z);
  return out;
}

std::string timeline_json(const Timeline& timeline, std::int64_t chips) {
  return Writer(timeline, chips).text();
}

}  // namespace trn3sim::report
