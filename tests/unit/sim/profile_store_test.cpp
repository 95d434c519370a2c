// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/profile_store.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <systemc>
#include <utility>

#include "trn3sim/sim/simulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trn3sim::sim {
namespace {

namespace fs = std::filesystem;

// Every field has a value of its own.
models::KernelProfile sample_profile() {
  models::KernelProfile p;
  std::int64_t next = 1'000'000'007;
  const auto time = [&next] { return base::Time(next += 11); };
  p.duration = time();
  for (int i = 0; i < 3; ++i) p.curve.push_back({base::Rate(next += 11), time()});
  p.lead_in = time();
  p.copies = next += 11;
  p.shared = time();
  p.ahead.bytes = base::Bytes(next += 11);
  p.ahead.duration = time();
  p.ahead.saves = time();
  p.ahead.sbuf_bytes_per_partition = next += 11;
  models::TensorEntry& e = p.tensor;
  for (base::Time* t : {&e.head, &e.tail, &e.age, &e.idle, &e.passes, &e.cost, &e.active, &e.saves, &e.passes_less})
    *t = time();
  p.sbuf_bytes_per_partition = next += 11;
  p.drain = time();
  p.compute_active = time();
  p.tensor_ideal = time();
  for (base::Time& t : p.engine_busy) t = time();
  p.dma_busy = time();
  models::EventCounts& c = p.counts;
  for (std::int64_t& n : c.macs) n = next += 11;
  for (std::int64_t* n : {&c.transpose_macs, &c.sbuf_read_bytes, &c.sbuf_write_bytes,
                          &c.psum_read_bytes, &c.psum_write_bytes, &c.vector_ops, &c.scalar_ops,
                          &c.gpsimd_ops, &c.vector_transcendental_ops, &c.scalar_transcendental_ops,
                          &c.quantize_ops, &c.hbm_read_bytes, &c.hbm_write_bytes, &c.hbm_activates,
                          &c.hbm_refreshes, &c.dma_bytes, &c.die_crossing_bytes, &c.link_bytes})
    *n = next += 11;
  p.instructions = next += 11;
  return p;
}

const std::string kKey = std::string(64, 'a');

// Reading and writing go through one list of fields, so equal texts of a profile and of what was
// read from its text mean equal fields once each value is seen to be in the text.
TEST(ProfileText, ReadsBackEveryField) {
  const models::KernelProfile p = sample_profile();
  const std::string text = profile_to_text(kKey, p);
  // 5 times, 3 points of 2, engines, dma_busy, formats, 18 counts, 2 of copies, 4 of loads ahead,
  // 9 of the tensor entry, SBUF and the instructions, in steps of 11 from 1'000'000'018.
  const std::int64_t fields =
      5 + 6 + std::int64_t{models::kEngines} + 1 + std::int64_t{base::kDTypes} + 18 + 2 + 4 + 9 + 2;
  EXPECT_EQ(p.instructions, 1'000'000'007 + 11 * fields);
  for (std::int64_t i = 1; i <= fields; ++i)
    EXPECT_NE(text.find(fmt::format(" {}\n", 1'000'000'007 + 11 * i)), std::string::npos) << i;
  const auto back = profile_from_text(kKey, text);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(profile_to_text(kKey, *back), text);
  EXPECT_EQ(back->duration, p.duration);
  EXPECT_EQ(back->curve[2].duration, p.curve[2].duration);
  EXPECT_EQ(back->engine_busy, p.engine_busy);
  EXPECT_EQ(back->counts.macs, p.counts.macs);
  EXPECT_EQ(back->counts.link_bytes, p.counts.link_bytes);
  EXPECT_EQ(back->instructions, p.instructions);
}

TEST(ProfileText, AProfileWithoutACurveReadsBack) {
  EXPECT_TRUE(profile_from_text(kKey, profile_to_text(kKey, {})).has_value());
}

TEST(ProfileText, RefusesTruncatedTexts) {
  const std::string text = profile_to_text(kKey, sample_profile());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(profile_from_text(kKey, std::string_view(text).substr(0, size))) << size;
}

TEST(ProfileText, RefusesEveryFlippedBit) {
  std::string text = profile_to_text(kKey, sample_profile());
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(text[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(profile_from_text(kKey, text)) << i;
    text[i] = static_cast<char>(text[i] ^ (1 << (i % 8)));
  }
  EXPECT_TRUE(profile_from_text(kKey, text));
}

TEST(ProfileText, RefusesTheEntryOfAnotherKey) {
  const std::string text = profile_to_text(std::string(64, 'b'), sample_profile());
  EXPECT_FALSE(profile_from_text(kKey, text));
}

class ProfileStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "profile_store_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    ::chmod(directory_.c_str(), 0700);
    fs::remove_all(directory_);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path directory_;
};

TEST_F(ProfileStoreTest, FindsWhatItSavedAlsoInANewDirectory) {
  const fs::path inner = directory_ / "a" / "b";
  ProfileStore store(inner);
  EXPECT_FALSE(store.load(kKey));
  store.save(kKey, sample_profile());
  ProfileStore next(inner);
  const auto found = next.load(kKey);
  ASSERT_TRUE(found);
  EXPECT_EQ(profile_to_text(kKey, *found), profile_to_text(kKey, sample_profile()));
  EXPECT_EQ(store.misses(), 1);
  EXPECT_EQ(store.hits(), 0);
  EXPECT_EQ(next.hits(), 1);
  EXPECT_EQ(next.misses(), 0);
  EXPECT_EQ(store.errors() + next.errors(), 0);
}

TEST_F(ProfileStoreTest, IgnoresAndRewritesBrokenEntries) {
  const std::string good = profile_to_text(kKey, sample_profile());
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& broken :
       {std::string(), good.substr(0, good.size() / 2), flipped, good + "x",
        std::string("\0\xff", 2), std::string(3 << 20, 'x')}) {
    ProfileStore store(directory_);
    write(store.entry(kKey), broken);
    EXPECT_FALSE(store.load(kKey));
    store.save(kKey, sample_profile());
    EXPECT_EQ(read(store.entry(kKey)), good);
    EXPECT_EQ(store.errors(), 0);
  }
  EXPECT_EQ(files(), 1u);  // no temporary file stays
}

TEST_F(ProfileStoreTest, AReadOnlyDirectoryIsReadAndOnceComplainedAbout) {
  ProfileStore(directory_).save(kKey, sample_profile());
  ::chmod(directory_.c_str(), 0555);
  const bool root = ::geteuid() == 0;  // may write everywhere
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  ProfileStore store(directory_);
  EXPECT_TRUE(store.load(kKey));
  store.save(std::string(64, 'b'), sample_profile());
  store.save(std::string(64, 'c'), sample_profile());
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(store.errors(), 1);
  EXPECT_NE(store.problem().find("cannot be written: Permission denied"), std::string::npos);
}

TEST_F(ProfileStoreTest, AFileInPlaceOfTheDirectoryOnlyCounts) {
  const fs::path file = directory_ / "file";
  write(file, "");
  ProfileStore store(file);
  EXPECT_FALSE(store.load(kKey));
  store.save(kKey, sample_profile());
  EXPECT_EQ(store.misses(), 1);
  EXPECT_GE(store.errors(), 1);
  EXPECT_NE(store.problem().find("Not a directory"), std::string::npos);
}

TEST_F(ProfileStoreTest, OddThingsInPlaceOfAnEntryOnlyCount) {
  ProfileStore store(directory_);
  ASSERT_EQ(::mkfifo(store.entry(kKey).c_str(), 0600), 0);  // opening it must not wait
  EXPECT_FALSE(store.load(kKey));
  EXPECT_EQ(store.errors(), 1);
  store.save(kKey, sample_profile());
  EXPECT_TRUE(store.load(kKey));  // replaced

  const std::string other(64, 'b');
  fs::create_directory(store.entry(other));
  EXPECT_FALSE(store.load(other));
  store.save(other, sample_profile());
  EXPECT_EQ(store.errors(), 3);
  EXPECT_EQ(files(), 2u);  // the temporary file is gone
}

// A limit on the size of files stands in for a disk that fills up in the middle of an entry.
TEST_F(ProfileStoreTest, ADiskThatFillsUpOnlyCounts) {
  ASSERT_GT(profile_to_text(kKey, sample_profile()).size(), 200u);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, 200);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ProfileStore store(directory_);
  store.save(kKey, sample_profile());
  limit.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(store.errors(), 1);
  EXPECT_EQ(files(), 0u);
  EXPECT_FALSE(store.load(kKey));
}

TEST_F(ProfileStoreTest, OldTemporaryFilesAreRemovedAndNothingElse) {
  const auto two_days_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
  const fs::path fresh = directory_ / (kKey + ".profile.123.1.tmp");
  const fs::path stale = directory_ / (kKey + ".profile.123.2.tmp");
  const fs::path foreign = directory_ / "notes.tmp";
  const fs::path entry = directory_ / (std::string(64, 'b') + ".profile");
  for (const fs::path& path : {fresh, stale, foreign, entry}) {
    write(path, "half");
    if (path != fresh) fs::last_write_time(path, two_days_ago);
  }
  ProfileStore store(directory_);
  EXPECT_FALSE(store.load(kKey));  // what a killed writer left is no entry
  store.save(kKey, sample_profile());
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(entry));
}

TEST_F(ProfileStoreTest, TwoStoresMayWriteTheSameEntry) {
  ProfileStore one(directory_), two(directory_);
  for (int i = 0; i < 20; ++i) {
    one.save(kKey, sample_profile());
    two.save(kKey, sample_profile());
    EXPECT_TRUE(one.load(kKey));
  }
  EXPECT_EQ(one.errors() + two.errors(), 0);
  EXPECT_EQ(files(), 1u);
}

TEST(CacheDirectory, ComesFromTheEnvironment) {
  ::setenv("HOME", "/home/u", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("TRN3SIM_CACHE_DIR");
  EXPECT_EQ(profile_cache_directory(), "/home/u/.cache/trn3sim");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(profile_cache_directory(), "/home/u/.cache/trn3sim");
  ::setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(profile_cache_directory(), "/c/trn3sim");
  ::setenv("TRN3SIM_CACHE_DIR", "d", 1);
  EXPECT_EQ(profile_cache_directory(), "d");
  ::setenv("TRN3SIM_CACHE_DIR", "", 1);
  EXPECT_EQ(profile_cache_directory(), std::nullopt);
  ::unsetenv("TRN3SIM_CACHE_DIR");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(profile_cache_directory(), std::nullopt);
}

}  // namespace
}  // namespace trn3sim::sim

int sc_main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

int main(int argc, char** argv) {
  setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
