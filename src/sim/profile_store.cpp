// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "profile_store.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trn3sim::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntryEnd = ".profile", kTemporaryEnd = ".tmp";
constexpr std::size_t kLargestEntry = std::size_t{1} << 20;
constexpr auto kStaleAge = std::chrono::hours(24);

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

// The content of a file of a sensible size; false with errno set if it cannot be read.
bool read_all(const fs::path& path, std::string& text) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return false;
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return false;
  }
  char block[4096];
  while (text.size() <= kLargestEntry) {
    const ssize_t n = ::read(file.number(), block, sizeof block);
    if (n == 0) break;
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.append(block, static_cast<std::size_t>(n));
  }
  return true;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// No other process makes this name: the process, and the time for those that had its number.
fs::path temporary_name(const fs::path& entry) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  fs::path path = entry;
  path += fmt::format(".{}.{}{}", ::getpid(), now.count(), kTemporaryEnd);
  return path;
}

}  // namespace

fs::path ProfileStore::entry(const std::string& key) const {
  return directory_ / (key + std::string(kEntryEnd));
}

void ProfileStore::fail(const fs::path& path, const char* what, int error) {
  if (errors_++ == 0)
    problem_ = fmt::format("{}: {}: {}", path.string(), what, std::strerror(error));
}

std::optional<models::KernelProfile> ProfileStore::load(const std::string& key) {
  const fs::path path = entry(key);
  std::string text;
  std::optional<models::KernelProfile> profile;
  if (read_all(path, text))
    profile = profile_from_text(key, text);
  else if (errno != ENOENT)
    fail(path, "cannot be read", errno);
  ++(profile ? hits_ : misses_);
  return profile;
}

// Removes what writers left that were killed before they could rename.
void ProfileStore::remove_stale() {
  std::error_code error;
  const auto oldest = fs::file_time_type::clock::now() - kStaleAge;
  fs::directory_iterator files(directory_, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename().string();
    if (!name.ends_with(kTemporaryEnd) || name.find(kEntryEnd) == std::string::npos) continue;
    std::error_code failed;
    const fs::file_time_type written = files->last_write_time(failed);
    if (!failed && written < oldest) fs::remove(files->path(), failed);
  }
}

bool ProfileStore::prepare() {
  if (prepared_) return writable_;
  prepared_ = true;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) {
    fail(directory_, "cannot be made", error.value());
    return writable_ = false;
  }
  remove_stale();
  return true;
}

void ProfileStore::save(const std::string& key, const models::KernelProfile& profile) {
  if (!writable_ || !prepare()) return;
  const fs::path path = entry(key), temporary = temporary_name(path);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  bool done = false;
  if (file.number() >= 0) {
    done = write_all(file.number(), profile_to_text(key, profile)) && file.close() &&
           ::rename(temporary.c_str(), path.c_str()) == 0;
    const int error = errno;
    if (!done) ::unlink(temporary.c_str());
    errno = error;
  }
  if (done) return;
  fail(path, "cannot be written", errno);
  writable_ = false;
}

}  // namespace trn3sim::sim
