// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "config/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <system_error>

#include "trn3sim/base/error.hpp"
#include "trn3sim/base/text.hpp"
#include "trn3sim/config/catalog.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <fmt/format.h>

namespace trn3sim::config {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

bool folder_exists(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Whether a file of this name may be a file of kind `what`; hidden files never are.
bool fits(const std::string& name, const std::string& what) {
  static const std::vector<std::string> kTraces = {".trace", ".trace.gz", ".trace.zst"};
  static const std::vector<std::string> kDocuments = {".json"};
  if (name.starts_with('.')) return false;
  const std::vector<std::string>& endings = what == "trace" ? kTraces : kDocuments;
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

// Names of the files of kind `what` in `directory`, sorted.
std::vector<std::string> names_in(const fs::path& directory, const std::string& what) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (is_file(it->path()) && fits(name, what)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The message of a file that is nowhere: where it was looked for and what is near.
std::string not_found(const fs::path& name, const std::string& what,
                      const std::vector<fs::path>& looked) {
  std::string text = fmt::format("no such {} file; looked for", what);
  std::vector<std::string> near;
  for (std::size_t i = 0; i < looked.size(); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", looked[i].string());
    for (std::string& found :
         names_in(looked[i].parent_path().empty() ? "." : looked[i].parent_path(), what))
      if (std::find(near.begin(), near.end(), found) == near.end())
        near.push_back(std::move(found));
  }
  if (what == "configuration" && fits(name.filename().string(), "trace"))
    return text + "; this is the name of a workload: --trace FILE, trn3sim trace check FILE";
  std::string hint = base::did_you_mean(name.filename().string(), near);
  for (const std::string& found : near)
    if (found.starts_with(name.filename().string() + "."))
      hint = fmt::format("; did you mean \"{}\"?", found);
  if (!hint.empty() || near.empty()) return text + hint;
  constexpr std::size_t kShown = 8;
  text += "; there are";
  for (std::size_t i = 0; i < std::min(near.size(), kShown); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", near[i]);
  return near.size() > kShown ? text + ", ..." : text;
}

// A folder of a directory of the search path and how its files are named.
struct Subfolder {
  std::string folder, prefix;
};

}  // namespace

std::vector<fs::path> config_directories() {
  std::vector<fs::path> directories;
  const auto add = [&](const fs::path& path) {
    if (folder_exists(path) &&
        std::find(directories.begin(), directories.end(), path) == directories.end())
      directories.push_back(path);
  };
  if (const char* list = std::getenv("TRN3SIM_CONFIG_PATH")) {
    std::string_view rest(list);
    while (!rest.empty()) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) add(fs::path(rest.substr(0, colon)));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) add((program.parent_path().parent_path() / "share/trn3sim/configs"));
  add(fs::path(TRN3SIM_SOURCE_CONFIGS));
  return directories;
}

fs::path find_file(const std::string& name, const std::string& what, const std::string& place,
                   const std::vector<fs::path>& first, const std::vector<std::string>& subfolders) {
  if (name.empty())
    throw base::UserError(place, fmt::format("the name of the {} file is empty", what));
  const fs::path given(name);
  std::vector<fs::path> looked;
  const auto try_path = [&](const fs::path& path) {
    looked.push_back(path);
    return is_file(path);
  };
  if (given.is_absolute() || first.empty())
    if (try_path(given)) return given;
  if (!given.is_absolute()) {
    std::vector<fs::path> directories = first;
    for (fs::path& directory : config_directories()) directories.push_back(std::move(directory));
    for (const fs::path& directory : directories)
      for (const std::string& folder : subfolders)
        if (const fs::path path = (directory / folder / given).lexically_normal(); try_path(path))
          return path;
  }
  if (folder_exists(given))
    throw base::UserError(place, fmt::format("is a directory, not a {} file", what));
  throw base::UserError(place, not_found(given, what, looked));
}

static std::vector<FoundFile> list_files(const std::string& what,
                                         const std::vector<Subfolder>& subfolders) {
  std::map<std::string, fs::path> found;
  for (const fs::path& directory : config_directories())
    for (const Subfolder& sub : subfolders)
      for (const std::string& name : names_in(directory / sub.folder, what))
        found.emplace(sub.prefix + name, (directory / sub.folder / name).lexically_normal());
  std::vector<FoundFile> files;
  for (auto& [name, path] : found) files.push_back({name, std::move(path)});
  return files;
}

std::vector<FoundFile> list_configurations() {
  return list_files("configuration", {{"", ""}, {"chips", "chips/"}});
}

std::vector<FoundFile> list_traces() {
  return list_files("trace", {{"traces", ""}, {"", ""}});
}

std::filesystem::path find_trace(const std::string& name) {
  return find_file(name, "trace", name, {}, {"traces", ""});
}

}  // namespace trn3sim::config
