// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/run_spec.hpp"

#include "unit/config/config_files.hpp"
#include <gtest/gtest.h>

namespace trn3sim::config {
namespace {

TEST(SearchPath, EnvironmentComesBeforeTheShippedFiles) {
  const Folder folder;
  folder.write(
      "chip1.json",
      R"({"kind": "system", "name": "mine", "chip": "chips/trn3.json", "fabric": {"type": "none"}})");
  setenv("TRN3SIM_CONFIG_PATH", ("/nowhere:" + folder.path().string()).c_str(), 1);
  const RunSpec run = load_run("chip1.json", {});
  unsetenv("TRN3SIM_CONFIG_PATH");
  EXPECT_EQ(run.config_file, folder.path() / "chip1.json");
  EXPECT_EQ(run.system.name, "mine");  // its chip file comes from the shipped configs
  EXPECT_EQ(load_run("chip1.json", {}).system.name, "one Trainium3 chip");
}

TEST(SearchPath, ChipFileNextToTheSystemFileWins) {
  const Folder folder;
  const fs::path system = folder.write(
      "s.json",
      R"({"kind": "system", "name": "s", "chip": "chips/trn3.json", "fabric": {"type": "none"}})");
  std::ifstream shipped(std::string(TRN3SIM_SOURCE_DIR) + "/configs/chips/trn3.json");
  std::string text{std::istreambuf_iterator<char>(shipped), std::istreambuf_iterator<char>()};
  text.replace(text.find("Trainium3"), 9, "Other");
  folder.write("chips/trn3.json", text);
  EXPECT_EQ(load_run(system.string(), {}).system.chip.name, "Other");
  EXPECT_EQ(load_run("chip1.json", {"chip=" + (folder.path() / "chips/trn3.json").string()})
                .system.chip.name,
            "Other");
}

TEST(SearchPath, TracesAreFoundInTraceFolders) {
  const Folder folder;
  folder.write("traces/a.trace", "x");
  folder.write("a.trace", "x");
  folder.write("b.trace", "x");
  setenv("TRN3SIM_CONFIG_PATH", folder.path().c_str(), 1);
  EXPECT_EQ(find_trace("a.trace"), folder.path() / "traces/a.trace");
  EXPECT_EQ(find_trace("b.trace"), folder.path() / "b.trace");
  EXPECT_EQ(find_trace((folder.path() / "a.trace").string()), folder.path() / "a.trace");
  std::string message;
  try {
    find_trace("aa.trace");
  } catch (const base::UserError& error) {
    message = error.what();
  }
  unsetenv("TRN3SIM_CONFIG_PATH");
  EXPECT_EQ(message.find("aa.trace: no such trace file; looked for aa.trace, " +
                         (folder.path() / "traces/aa.trace").string()),
            0U)
      << message;
  EXPECT_NE(message.find("did you mean \"a.trace\"?"), std::string::npos) << message;
}

TEST(SearchPath, OnlyTracesAreOfferedForATrace) {
  const Folder folder;
  folder.write("zzz.trace", "x");
  folder.write("yyy.trace.zst", "x");
  for (const char* other :
       {".hidden", ".hidden.trace", "notes.txt", "chip.json", "traces/x/deep.trace"})
    folder.write(other, "x");
  const auto hint = [&](const char* name) {
    try {
      find_trace((folder.path() / name).string());
    } catch (const base::UserError& error) {
      const std::string message = error.what();
      return message.substr(std::min(message.find(';', message.find(';') + 1), message.size()));
    }
    return std::string("no error");
  };
  EXPECT_EQ(hint("nowhere"), "; there are yyy.trace.zst, zzz.trace");
  EXPECT_EQ(hint("yyy"), "; did you mean \"yyy.trace.zst\"?");
}

TEST(SearchPath, MissingConfigSuggestsTheNearest) {
  const std::string message = error_of("ultraserver46.json", {});
  EXPECT_EQ(message.find(
                "ultraserver46.json: no such configuration file; looked for ultraserver46.json, "),
            0U)
      << message;
  EXPECT_NE(message.find("did you mean \"ultraserver64.json\"?"), std::string::npos) << message;
}

}  // namespace
}  // namespace trn3sim::config
