// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Damaged copies of a shipped trace: each is read, or refused with a UserError that names the file.
#include <sstream>

#include "unit/trace/trace_file.hpp"

namespace trn3sim::trace {
namespace {

std::string shipped(const std::string& name) {
  std::ifstream stream(std::filesystem::path(TRN3SIM_SOURCE_DIR) / "configs" / "traces" / name,
                       std::ios::binary);
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

// xorshift64: the same damage in every run.
class Random {
 public:
  std::size_t below(std::size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ % n);
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

TEST(Mutations, AreReadOrRefused) {
  const std::string text = shipped("llama7b.trace");
  ASSERT_FALSE(text.empty());
  static constexpr std::string_view kBytes = "\"{}[]:,0123456789-.e^abx \n\0\xff\\";
  Random random;
  int refused = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = text;
    const std::size_t at = random.below(damaged.size());
    switch (random.below(4)) {
      case 0:
        damaged[at] = kBytes[random.below(kBytes.size())];
        break;
      case 1:
        damaged.erase(at, 1 + random.below(40));
        break;
      case 2:
        damaged.insert(at, damaged.substr(random.below(damaged.size()), random.below(40)));
        break;
      default:
        damaged.resize(at);
        break;
    }
    const std::string message = complaint(damaged);
    if (message.empty()) continue;
    ++refused;
    EXPECT_EQ(message.substr(0, 4), "FILE") << message;
  }
  // Most damage hits structure or names; some changes a number into another fine one.
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace trn3sim::trace
