// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/report/files.hpp"

#include <csignal>
#include <fstream>
#include <iterator>

#include "trn3sim/base/error.hpp"

#include "unit/stats/sample_results.hpp"
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace trn3sim::report {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "trn3sim_files_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), {}));
  }
  template <class Action>
  static std::string error_of(Action action) {
    try {
      action();
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "no error";
  }
  fs::path root_;
};

TEST_F(Files, WritesAllFiles) {
  const fs::path out = root_ / "a" / "b";  // made on the way
  write_files(out, test::sample_results(), {});
  EXPECT_EQ(read(out / "results.json"), stats::to_json(test::sample_results()));
  EXPECT_NE(read(out / "run_info.json").find("wall_s"), std::string::npos);
  EXPECT_NE(read(out / "kernels.csv").find("gemm 4096x5504x4096 bf16,640,9000000000000000,"),
            std::string::npos);
  EXPECT_NE(read(out / "collectives.csv").find(",150000000000,ring,"), std::string::npos);
  EXPECT_NE(read(out / "links.csv").find("chip0.stack1->chip0.stack2,5000,500000000000000,7\n"),
            std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 5);  // no temporary left
}

TEST_F(Files, CsvQuotesCommasAndQuotes) {
  stats::Results r = test::sample_results();
  r.links[0].name = "a,\"b\"";
  write_files(root_, r, {});
  EXPECT_NE(read(root_ / "links.csv").find("\"a,\"\"b\"\"\",5000,"), std::string::npos);
}

TEST_F(Files, RefusesAFileAsDirectory) {
  std::ofstream(root_ / "file") << "x";
  for (const fs::path& bad : {root_ / "file", root_ / "file" / "sub"}) {
    EXPECT_NE(error_of([&] { check_directory(bad); }).find("is a file, expected a directory"),
              std::string::npos);
    EXPECT_NE(error_of([&] { write_files(bad, test::sample_results(), {}); }).find("is a file"),
              std::string::npos);
  }
  EXPECT_EQ(read(root_ / "file"), "x");
}

TEST_F(Files, CheckingADirectoryMakesNothing) {
  check_directory(root_ / "a" / "b");
  check_directory("relative_and_not_there");
  EXPECT_EQ(entries(), 0U);
}

TEST_F(Files, WritesNothingIfOneFileCannotBeWritten) {
  fs::create_directory(root_ / "links.csv");  // the last of the five
  EXPECT_NE(
      error_of([&] { write_files(root_, test::sample_results(), {}); }).find("is a directory"),
      std::string::npos);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  write_file(root_ / "t", "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{100, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of([&] { write_file(root_ / "t", std::string(1000, 'n')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_NE(error.find("writing failed: File too large"), std::string::npos) << error;
  EXPECT_EQ(read(root_ / "t"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, FollowsLinksAndWritesDevices) {
  write_file(root_ / "real", "old");
  fs::create_symlink("real", root_ / "link");
  write_file(root_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(read(root_ / "real"), "new");
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_NE(error_of([] { write_file("/dev/full", "x"); }).find("No space left"),
            std::string::npos);
}

TEST_F(Files, NamesThePathThatCannotBeWritten) {
  EXPECT_NE(error_of([&] { write_file(root_ / "no" / "t", "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { write_file(root_, "x"); }).find("is a directory"), std::string::npos);
}

}  // namespace
}  // namespace trn3sim::report
