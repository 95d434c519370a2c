// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>

#include "trn3sim/base/error.hpp"
#include "trn3sim/config/mapping_spec.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace trn3sim::config {
namespace {

class MappingFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    std::ofstream(file) << text;
    return file;
  }
  // What reading `text` complains about.
  std::string error_of(const std::string& text) {
    try {
      load_mapping(write(text));
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "no error";
  }
  ~MappingFileTest() override { std::filesystem::remove(file); }

  std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      ("trn3sim_mapping_file_test_" + std::to_string(getpid()) + ".json");
};

MappingSpec loops() {
  MappingSpec m;
  m.type = "loops";
  m.note = "a note";
  m.loops.split = "n";
  m.loops.stationary = "b";
  m.loops.loops = {{"n", 1024}, {"m", 512}, {"n", 128}, {"k", 64}};
  m.loops.pool = 4096;
  m.loops.a = {1, 128, 512, 3, "gpsimd", 2, 4};
  m.loops.b = {4, 64, 128, 1, "scalar", 5};
  m.loops.c = {2, 4, "vector", "out", 1, 256, 7, "sync", 9};
  m.loops.transpose = {8, 3, "vector"};
  return m;
}

TEST_F(MappingFileTest, LoopsSurviveTheFile) {
  const std::string text = mapping_text(loops());
  const MappingSpec again = load_mapping(write(text));
  EXPECT_EQ(mapping_text(again), text);
  EXPECT_EQ(again.loops.loops.size(), 4u);
  EXPECT_EQ(again.loops.loops[2].over, "n");
  EXPECT_EQ(again.loops.loops[2].step, 128);
  EXPECT_EQ(again.loops.a.transfer_width, 512);
  EXPECT_EQ(again.loops.c.store_width, 256);
  EXPECT_EQ(again.loops.transpose.ahead, 8);
}

TEST_F(MappingFileTest, PanelsSurviveTheFile) {
  MappingSpec m;
  m.panels = {"m", "b", "a", false, 512, 256, 2, 1, 4, 7, 9, 3, 5, true};
  const std::string text = mapping_text(m);
  const MappingSpec again = load_mapping(write(text));
  EXPECT_EQ(mapping_text(again), text);
  EXPECT_FALSE(again.is_loops());
  EXPECT_EQ(again.panels.inner_buffers, 9);
  EXPECT_TRUE(again.panels.merge_stores);
}

TEST_F(MappingFileTest, MistakesNameFileAndKey) {
  auto json = nlohmann::json::parse(mapping_text(loops()));
  json["loops"]["a"]["bufers"] = 2;
  json["loops"]["loops"][1]["over"] = "q";
  json["loops"]["c"].erase("queue");
  const std::string what = error_of(json.dump());
  EXPECT_NE(what.find(file.string() + ": /loops/a/bufers: unknown key"), std::string::npos) << what;
  EXPECT_NE(what.find("\"buffers\"?"), std::string::npos) << what;
  EXPECT_NE(what.find("/loops/loops/1/over"), std::string::npos) << what;
  EXPECT_NE(what.find("/loops/c/queue"), std::string::npos) << what;
}

TEST_F(MappingFileTest, OtherFilesAreRefused) {
  EXPECT_NE(error_of(R"({"kind": "chip"})").find("expected \"mapping\", got \"chip\""),
            std::string::npos);
  EXPECT_NE(error_of("{}").find("/kind: required"), std::string::npos);
  auto json = nlohmann::json::parse(mapping_text(loops()));
  json["type"] = "spiral";
  EXPECT_NE(error_of(json.dump()).find("\"panels\" or \"loops\""), std::string::npos);
}

}  // namespace
}  // namespace trn3sim::config
