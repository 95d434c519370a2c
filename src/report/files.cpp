// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/files.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/report/timeline.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace trn3sim::report {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw base::UserError(path.string(), fmt::format("{}: {}", what, std::strerror(error)));
}

// Closes on destruction; write() and close() report every error.
class File {
 public:
  File(const fs::path& shown, const fs::path& path, int flags)
      : shown_(shown), descriptor_(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail(shown_, "cannot be written", errno);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(descriptor_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(shown_, "writing failed", errno);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(shown_, "writing failed", errno);
  }

 private:
  const fs::path& shown_;
  int descriptor_;
};

// A file under a temporary name until commit(); removed if that never comes.
class Pending {
 public:
  Pending(fs::path target, const std::string& text) : target_(std::move(target)) {
    if (fs::is_directory(target_))
      throw base::UserError(target_.string(), "is a directory, expected a file");
    temporary_ = target_;
    temporary_ += fmt::format(".tmp{}", ::getpid());
    File file(target_, temporary_, O_CREAT | O_TRUNC);
    try {
      file.write(text);
      file.close();
    } catch (...) {
      ::unlink(temporary_.c_str());
      throw;
    }
  }
  Pending(Pending&& other) noexcept
      : target_(std::move(other.target_)), temporary_(std::exchange(other.temporary_, {})) {}
  Pending& operator=(Pending&&) = delete;
  ~Pending() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  void commit() {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      fail(target_, "cannot be replaced", errno);
    temporary_.clear();
  }

 private:
  fs::path target_, temporary_;
};

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string kernels_csv(const stats::Results& r) {
  std::string out = "label,count,total_fs,alone_fs,tensor_ideal_fs,hbm_bytes,bound\n";
  for (const stats::KernelResult& k : r.kernels) {
    out += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(k.label), k.count, k.total_fs, k.alone_fs,
                       k.tensor_ideal_fs, k.hbm_bytes, csv_cell(k.bound));
  }
  return out;
}

std::string collectives_csv(const stats::Results& r) {
  std::string out =
      "label,count,total_fs,in_bytes,out_bytes,ranks,bus_bytes_per_s,algorithm,worst_link\n";
  for (const stats::CollectiveResult& c : r.collectives) {
    out += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(c.label), c.count, c.total_fs,
                       c.in_bytes, c.out_bytes, c.ranks, c.bus_rate, csv_cell(c.algorithm),
                       csv_cell(c.worst_link));
  }
  return out;
}

std::string links_csv(const stats::Results& r) {
  std::string out = "name,bytes,busy_fs,queue_fs\n";
  for (const stats::LinkResult& l : r.links) {
    out += fmt::format("{},{},{},{}\n", csv_cell(l.name), l.bytes, l.busy_fs, l.queue_fs);
  }
  return out;
}

}  // namespace

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    throw base::UserError(path.string(), "is a directory, expected a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    File file(path, path, 0);
    file.write(text);
    file.close();
    return;
  }
  const fs::path real = fs::exists(status) ? fs::canonical(path, error) : path;
  Pending(error ? path : real, text).commit();
}

void check_directory(const fs::path& directory) {
  std::error_code error;
  fs::path there = fs::absolute(directory);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, error)) {
    throw base::UserError(directory.string(),
                          fmt::format("{} is a file, expected a directory", there.string()));
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) fail(directory, "cannot be written", errno);
}

void write_files(const fs::path& directory, const stats::Results& results,
                 const stats::RunInfo& info, const stats::Timeline* timeline) {
  check_directory(directory);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) fail(directory, "cannot be made", error.value());
  std::vector<Pending> files;
  files.emplace_back(directory / "results.json", stats::to_json(results));
  files.emplace_back(directory / "run_info.json", stats::to_json(info));
  files.emplace_back(directory / "kernels.csv", kernels_csv(results));
  files.emplace_back(directory / "collectives.csv", collectives_csv(results));
  files.emplace_back(directory / "links.csv", links_csv(results));
  if (timeline != nullptr) {
    const std::string text = timeline_json(*timeline, results.chips);
    if (timeline->spec().gzip)
      files.emplace_back(directory / "timeline.json.gz", gzip(text));
    else
      files.emplace_back(directory / "timeline.json", text);
  }
  for (Pending& file : files) file.commit();
}

}  // namespace trn3sim::report
