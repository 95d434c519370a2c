// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Small trace files for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "trn3sim/base/error.hpp"
#include "trn3sim/trace/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace trn3sim::trace {

// A file that is removed at the end of its scope.
class TempFile {
 public:
  explicit TempFile(const std::string& bytes) {
    static int count = 0;
    path_ = std::filesystem::path(testing::TempDir()) /
            ("trn3sim_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".trace");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline const std::string kHeader =
    R"({"trace":"trn3sim","v":1,"name":"t","rank_unit":"logical_core","mesh":[["pp",2],["dp",3],["tp",4]]})"
    "\n";

inline Program program_of(const std::string& lines) {
  const TempFile file(kHeader + lines);
  return read(file.path());
}

// The messages of the UserError for a file of these bytes, with its path written as FILE; "" if it
// is read without complaint.
inline std::string complaint(const std::string& bytes) {
  const TempFile file(bytes);
  try {
    read(file.path());
  } catch (const base::UserError& e) {
    std::string text = e.what();
    const std::string path = file.path().string();
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path, at))
      text.replace(at, path.size(), "FILE");
    return text;
  }
  return "";
}

}  // namespace trn3sim::trace
