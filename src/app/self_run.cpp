// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/self_run.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "trn3sim/base/error.hpp"

#include "app/exit_code.hpp"
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trn3sim::app {
namespace {

namespace fs = std::filesystem;

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
    throw base::UserError("trn3sim", fmt::format("cannot start trn3sim: {}", std::strerror(error)));
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  throw base::UserError("trn3sim", fmt::format("a run was ended by signal {}", WTERMSIG(status)));
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

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "trn3sim-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw base::UserError(name, fmt::format("cannot make a directory: {}", std::strerror(errno)));
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int run_self(std::vector<std::string> arguments, const fs::path& out,
             std::vector<stats::Results>& results) {
  arguments.push_back(fmt::format("--out={}", out.string()));
  arguments.emplace_back("--quiet");
  const int code = wait_for(spawn_self(std::move(arguments)));
  if (code == kOk) results.push_back(read_results(out));
  return code;
}

}  // namespace trn3sim::app
