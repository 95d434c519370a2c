// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/fidelity.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "trn3sim/base/error.hpp"
#include "trn3sim/report/fidelity.hpp"
#include "trn3sim/stats/results.hpp"

#include "app/exit_code.hpp"
#include "app/output.hpp"
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trn3sim::app {
namespace {

namespace fs = std::filesystem;

// A directory that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "trn3sim-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw base::UserError(name, fmt::format("cannot make a directory: {}", std::strerror(errno)));
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Starts this program with `arguments`, its standard output discarded.
pid_t spawn_self(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "trn3sim");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw base::UserError("fidelity",
                          fmt::format("cannot start trn3sim: {}", std::strerror(error)));
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  throw base::UserError("fidelity", fmt::format("a run was ended by signal {}", WTERMSIG(status)));
}

stats::Results read_results(const fs::path& directory) {
  const fs::path file = directory / "results.json";
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw base::UserError(file.string(), "cannot read it");
  return stats::results_from_json(text.str(), file.string());
}

}  // namespace

int fidelity(const Fidelity& options) {
  static constexpr std::array<const char*, 2> kLevels = {"profiled", "detailed"};
  const TemporaryDirectory directory;
  for (const char* level : kLevels) {
    std::vector<std::string> arguments = options.arguments;
    arguments.push_back(level == kLevels[0] ? "--fidelity=profiled" : options.detail);
    arguments.push_back(fmt::format("--out={}", (directory.path() / level).string()));
    arguments.emplace_back("--quiet");
    // One after the other: a wrong configuration is then reported once.
    const int code = wait_for(spawn_self(arguments));
    if (code != kOk) return code;
  }
  const report::FidelityReport report = report::compare_fidelity(
      read_results(directory.path() / kLevels[0]), read_results(directory.path() / kLevels[1]));
  print(options.format == Format::Json ? report::to_json(report) : report::to_text(report));
  return kOk;
}

}  // namespace trn3sim::app
