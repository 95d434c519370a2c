// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>
#include <span>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/stats/energy_nj.hpp"
#include "trn3sim/stats/results.hpp"
#include "trn3sim/stats/results_describe.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace trn3sim::stats {
namespace {

using nlohmann::json;  // objects are std::map: keys come out sorted

class Writer {
 public:
  explicit Writer(json& out) : out_(out) { out_ = json::object(); }

  void field(const char* key, double value) {
    TRN3SIM_CHECK(std::isfinite(value), fmt::format("{} is {}", key, value));
    out_[key] = value;  // shortest text that reads back to the same double
  }
  template <class T>
  void field(const char* key, const T& value) {
    out_[key] = value;
  }
  template <std::size_t N>
  void table(const char* key, const std::array<std::string_view, N>& names,
             const std::array<std::int64_t, N>& values) {
    json object = json::object();
    for (std::size_t i = 0; i < N; ++i) object[std::string(names[i])] = values[i];
    out_[key] = std::move(object);
  }
  template <class T>
  void object(const char* key, const T& value) {
    json child;
    Writer writer(child);
    describe(value, writer);
    out_[key] = std::move(child);
  }
  template <class T>
  void list(const char* key, const std::vector<T>& values) {
    json array = json::array();
    for (const T& value : values) {
      json child;
      Writer writer(child);
      describe(value, writer);
      array.push_back(std::move(child));
    }
    out_[key] = std::move(array);
  }
  void energy(const char* key, const base::EnergyAccounts& accounts) {
    const EnergyNanojoules nj = to_nanojoules(accounts);
    json object = json::object();
    for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
      object[std::string(base::kEnergyAccountNames[i])] = nj.of[i];
    }
    object["total"] = nj.total;
    out_[key] = std::move(object);
  }

 private:
  json& out_;
};

// Reads one object strictly: every described key must be there, and nothing else.
class Reader {
 public:
  Reader(const json& in, std::string path, const std::string& file, base::Problems& problems)
      : in_(in), path_(std::move(path)), file_(file), problems_(problems) {
    if (!in_.is_object()) add(path_, fmt::format("is {}, expected an object", in_.type_name()));
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  template <class T>
  void field(const char* key, T& value) {
    if (const json* found = find(key)) read(at(key), *found, value);
  }
  template <std::size_t N>
  void table(const char* key, const std::array<std::string_view, N>& names,
             std::array<std::int64_t, N>& values) {
    const json* found = find(key);
    if (found == nullptr) return;
    Reader reader(*found, at(key), file_, problems_);
    for (std::size_t i = 0; i < N; ++i) reader.field(std::string(names[i]).c_str(), values[i]);
    reader.finish();
  }
  template <class T>
  void object(const char* key, T& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    Reader reader(*found, at(key), file_, problems_);
    describe(value, reader);
    reader.finish();
  }
  template <class T>
  void list(const char* key, std::vector<T>& values) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_array()) {
      return add(at(key), fmt::format("is {}, expected an array", found->type_name()));
    }
    values.resize(found->size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Reader reader((*found)[i], fmt::format("{}[{}]", at(key), i), file_, problems_);
      describe(values[i], reader);
      reader.finish();
    }
  }
  void energy(const char* key, base::EnergyAccounts& accounts) {
    const json* found = find(key);
    if (found == nullptr) return;
    Reader reader(*found, at(key), file_, problems_);
    std::int64_t total = 0;
    Int128 sum = 0;
    for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
      std::int64_t nj = 0;
      reader.field(std::string(base::kEnergyAccountNames[i]).c_str(), nj);
      accounts.of[i] = base::Energy(Int128(nj) * kAttojoulesPerNanojoule);
      sum += nj;
    }
    const std::size_t before = problems_.size();
    reader.field("total", total);
    reader.finish();
    if (problems_.size() == before && sum != total) {
      add(at(key) + ".total",
          fmt::format("is {}, but the accounts sum to {}", total, static_cast<std::int64_t>(sum)));
    }
  }

  // Reports keys that nothing asked for.
  void finish() {
    if (!in_.is_object()) return;
    for (const auto& item : in_.items()) {
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
        add(at(item.key()), "unknown key" + base::did_you_mean(item.key(), known_));
      }
    }
  }

 private:
  [[nodiscard]] std::string at(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  void add(const std::string& path, const std::string& what) {
    problems_.add(path.empty() ? file_ : file_ + ": " + path, what);
  }
  const json* find(const char* key) {
    known_.emplace_back(key);
    if (!in_.is_object()) return nullptr;
    const auto it = in_.find(key);
    if (it == in_.end()) {
      add(at(key), "is missing");
      return nullptr;
    }
    return &*it;
  }
  void read(const std::string& path, const json& in, std::string& value) {
    if (!in.is_string()) return wrong(path, in, "a string");
    value = in.get<std::string>();
  }
  void read(const std::string& path, const json& in, bool& value) {
    if (!in.is_boolean()) return wrong(path, in, "true or false");
    value = in.get<bool>();
  }
  void read(const std::string& path, const json& in, double& value) {
    if (!in.is_number()) return wrong(path, in, "a number");
    value = in.get<double>();
  }
  void read(const std::string& path, const json& in, std::int64_t& value) {
    const bool fits =
        in.is_number_unsigned() ? in.get<std::uint64_t>() <= INT64_MAX : in.is_number_integer();
    if (!fits) return wrong(path, in, "a 64-bit integer");
    value = in.get<std::int64_t>();
  }
  void wrong(const std::string& path, const json& in, const char* expected) {
    std::string found = in.dump();
    if (found.size() > 40) found = found.substr(0, 37) + "...";
    add(path, fmt::format("is {}, expected {}", found, expected));
  }

  const json& in_;
  std::string path_;
  const std::string& file_;
  base::Problems& problems_;
  std::vector<std::string> known_;
};

// nlohmann keeps the last of two equal keys; a result file with two is damaged.
json parse(const std::string& text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw base::UserError(file, fmt::format("key {} appears twice", value.dump()));
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& e) {
    throw base::UserError(file, fmt::format("is not JSON: {}", e.what()));
  }
}

}  // namespace

EnergyNanojoules to_nanojoules(const base::EnergyAccounts& accounts) {
  EnergyNanojoules nj;
  Int128 sum = 0;
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    const Int128 value = accounts.of[i].count() / kAttojoulesPerNanojoule;
    TRN3SIM_CHECK(accounts.of[i].count() >= 0,
                  fmt::format("energy account {} is negative", base::kEnergyAccountNames[i]));
    sum += value;
    TRN3SIM_CHECK(sum <= INT64_MAX, "energy passes the largest number of nanojoules");
    nj.of[i] = static_cast<std::int64_t>(value);
  }
  nj.total = static_cast<std::int64_t>(sum);
  return nj;
}

std::string to_json(const Results& results) {
  json out;
  Writer writer(out);
  describe(results, writer);
  return out.dump(1) + "\n";
}

Results results_from_json(const std::string& text, const std::string& file) {
  const json in = parse(text, file);
  Results results;
  base::Problems problems;
  Reader reader(in, "", file, problems);
  describe(results, reader);
  reader.finish();
  problems.throw_if_any();
  return results;
}

std::string to_json(const RunInfo& info) {
  const json out = {{"wall_s", info.wall_s},
                    {"profile_wall_s", info.profile_wall_s},
                    {"simulate_wall_s", info.simulate_wall_s},
                    {"peak_rss_bytes", info.peak_rss_bytes},
                    {"rank_ops", info.rank_ops},
                    {"kernel_events", info.kernel_events},
                    {"profiled_kernels", info.profiled_kernels},
                    {"bench_instructions", info.bench_instructions},
                    {"profile_cache_hits", info.profile_cache_hits},
                    {"profile_cache_misses", info.profile_cache_misses},
                    {"profile_cache_errors", info.profile_cache_errors},
                    {"host", info.host},
                    {"version", info.version}};
  return out.dump(1) + "\n";
}

}  // namespace trn3sim::stats
