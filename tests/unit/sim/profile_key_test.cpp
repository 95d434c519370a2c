// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trn3sim/config/chip_describe.hpp"

#include "sim/profile_store.hpp"
#include "support/test_chip.hpp"
#include <gtest/gtest.h>

namespace trn3sim::sim {
namespace {

constexpr base::Rate kLeast(1000);

// Calls `change` on each number, flag and text of a spec with its dotted path.
template <class F>
class Leaves {
 public:
  static constexpr bool kReads = false;
  Leaves(F& change, std::string path) : change_(change), path_(std::move(path)) {}
  template <class S>
  void section(std::string_view key, S& spec, std::string_view) {
    Leaves inner(change_, path_ + std::string(key) + ".");
    describe(inner, spec);
  }
  template <class S>
  void optional_section(std::string_view key, S& spec, bool present, std::string_view doc) {
    if (present) section(key, spec, doc);
  }
  template <class T, class... Rest>
  void count(std::string_view key, T& value, const Rest&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void number(std::string_view key, double& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void share(std::string_view key, double& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void flag(std::string_view key, bool& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void text(std::string_view key, std::string& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void choice(std::string_view key, std::string& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void option_flag(std::string_view key, bool& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void option_text(std::string_view key, std::string& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class... A>
  void option_choice(std::string_view key, std::string& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class Q, class... A>
  void positive(std::string_view key, Q& value, const A&...) {
    change_(path_ + std::string(key), value);
  }
  template <class Q, class... A>
  void non_negative(std::string_view key, Q& value, const A&...) {
    change_(path_ + std::string(key), value);
  }

 private:
  F& change_;
  std::string path_;
};

// Changes the leaf at one position and remembers its path.
struct ChangeOne {
  int position = 0, seen = 0;
  std::string path;
  template <class T>
  void operator()(const std::string& at, T& value) {
    if (seen++ != position) return;
    path = at;
    if constexpr (std::is_same_v<T, bool>)
      value = !value;
    else if constexpr (std::is_same_v<T, std::string>)
      value += "x";
    else if constexpr (std::is_arithmetic_v<T>)
      value = static_cast<T>(value + 1);
    else
      value += T(1);
  }
};

bool seen_by_kernels(const std::string& path) {
  for (const char* unseen : {"on_chip.", "collectives.", "host.", "energy."})
    if (path.starts_with(unseen)) return false;
  return path != "name" && path != "headline_bf16_tflops";
}

TEST(ProfileKey, ChangesWithWhatKernelsSeeOfTheChipAndWithNothingElse) {
  config::ChipSpec chip = test::test_chip();
  const std::string without_limiter = profile_key("v", chip, {}, kLeast);
  test::set_test_limiter(chip.tensor);
  const std::string key = profile_key("v", chip, {}, kLeast);
  EXPECT_NE(key, without_limiter);
  std::set<std::string> keys = {key};
  int changed = 0;
  for (int i = 0;; ++i) {
    config::ChipSpec other = chip;
    ChangeOne change{i, 0, {}};
    Leaves<ChangeOne> leaves(change, "");
    config::describe(leaves, other);
    if (change.path.empty()) break;
    if (seen_by_kernels(change.path)) {
      EXPECT_TRUE(keys.insert(profile_key("v", other, {}, kLeast)).second) << change.path;
      ++changed;
    } else {
      EXPECT_EQ(profile_key("v", other, {}, kLeast), key) << change.path;
    }
  }
  // 8 of the tensor engine plus its formats and 4 of the limiter, 3 lane engines of 7, SBUF 3, PSUM 3, sync 3, DMA 12,
  // HBM 30, and the counts of cores, dies, stacks and the logical core.
  EXPECT_GE(changed, 8 + int{base::kDTypes} + 4 + 21 + 9 + 12 + 30 + 4);
}

TEST(ProfileKey, ChangesWithTheVersionAndTheLeastRate) {
  const config::ChipSpec chip = test::test_chip();
  EXPECT_NE(profile_key("v", chip, {}, kLeast), profile_key("w", chip, {}, kLeast));
  EXPECT_NE(profile_key("v", chip, {}, kLeast), profile_key("v", chip, {}, base::Rate(1001)));
}

TEST(ProfileKey, ChangesWithEveryFieldOfTheKernel) {
  using Spec = compile::KernelSpec;
  const std::vector<std::function<void(Spec&)>> changes = {
      [](Spec& s) { s.kind = compile::KernelKind::Vector; },
      [](Spec& s) { s.m = 1; },
      [](Spec& s) { s.n = 1; },
      [](Spec& s) { s.k = 1; },
      [](Spec& s) { s.batch = 2; },
      [](Spec& s) { s.heads = 1; },
      [](Spec& s) { s.kv_heads = 1; },
      [](Spec& s) { s.sq = 1; },
      [](Spec& s) { s.skv = 1; },
      [](Spec& s) { s.d = 1; },
      [](Spec& s) { s.causal = true; },
      [](Spec& s) { s.fn = "add"; },
      [](Spec& s) { s.elems = 1; },
      [](Spec& s) { s.rd = 1; },
      [](Spec& s) { s.wr = 1; },
      [](Spec& s) { s.in = base::DType::Fp32; },
      [](Spec& s) { s.out = base::DType::Fp32; },
      [](Spec& s) { s.accumulate = true; },
      [](Spec& s) { s.a_weight = true; },
      [](Spec& s) { s.b_weight = false; },
      [](Spec& s) { s.conversion = compile::Conversion::Free; },
      [](Spec& s) { s.conversion = compile::Conversion::None; },
      [](Spec& s) { s.flash = false; },
      [](Spec& s) { s.fast_exponential = false; },
      [](Spec& s) { s.memory_reuse = false; },
      [](Spec& s) { s.fusion = false; },
      [](Spec& s) { s.double_accumulators = false; },
      [](Spec& s) { s.streaming_loads = false; },
      [](Spec& s) { s.cores = 2; },
      [](Spec& s) {
        s.epilogues = {{"add", 1}};
      },
      [](Spec& s) {
        s.epilogues = {{"add", 2}};
      },
      [](Spec& s) {
        s.epilogues = {{"add", 1}, {"add", 2}};
      },
      // The text of one field must not read as two.
      [](Spec& s) {
        s.epilogues = {{"add 1\n3:add", 2}};
      },
      [](Spec& s) { s.fn = "add 1"; },
  };
  const config::ChipSpec chip = test::test_chip();
  std::set<std::string> keys = {profile_key("v", chip, {}, kLeast)};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Spec spec;
    changes[i](spec);
    EXPECT_TRUE(keys.insert(profile_key("v", chip, spec, kLeast)).second) << "change " << i;
  }
}

}  // namespace
}  // namespace trn3sim::sim
