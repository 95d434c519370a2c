// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One folder per case: `bad.json` is loaded and must fail with exactly the text of `expected.txt`,
// in which files stand by their names relative to the case and the shipped folder as CONFIGS.
//   chip.json   patch (RFC 7386) of the shipped trn3.json; the patched chip stands beside bad.json
//   set.txt     overrides, one per line
//   config.txt  what to load instead of bad.json
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace trn3sim::config {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = fs::path(TRN3SIM_SOURCE_DIR) / "configs";
const fs::path kCases = fs::path(TRN3SIM_SOURCE_DIR) / "tests/config_errors";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCases))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string without(std::string text, const std::string& piece, const std::string& instead) {
  for (std::size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += instead.size())
    text.replace(at, piece.size(), instead);
  return text;
}

class ConfigErrors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    unsetenv("TRN3SIM_CONFIG_PATH");
    fs::create_directories(work_);
    if (fs::exists(source_ / "bad.json"))
      fs::copy_file(source_ / "bad.json", work_ / "bad.json", fs::copy_options::overwrite_existing);
    if (!fs::exists(source_ / "chip.json")) return;
    nlohmann::json chip = nlohmann::json::parse(read(kConfigs / "chips/trn3.json"));
    chip.merge_patch(nlohmann::json::parse(read(source_ / "chip.json")));
    std::ofstream(work_ / "chip.json") << chip.dump(2);
  }
  void TearDown() override { fs::remove_all(work_); }

  fs::path source_ = kCases / GetParam();
  fs::path work_ =
      fs::temp_directory_path() / fmt::format("trn3sim_config_errors_{}_{}", GetParam(), getpid());
};

TEST_P(ConfigErrors, ExactText) {
  const std::vector<std::string> given = lines_of(read(source_ / "config.txt"));
  const std::string config = given.empty() ? (work_ / "bad.json").string() : given[0];
  std::string message;
  try {
    load_run(config, lines_of(read(source_ / "set.txt")));
  } catch (const base::UserError& error) {
    message = error.what();
  }
  message = without(without(message, work_.string() + "/", ""), kConfigs.string(), "CONFIGS");
  EXPECT_EQ(message + "\n", read(source_ / "expected.txt"));
}

INSTANTIATE_TEST_SUITE_P(Cases, ConfigErrors, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace trn3sim::config
