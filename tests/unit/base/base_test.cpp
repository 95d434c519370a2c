// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "trn3sim/base/dtype.hpp"
#include "trn3sim/base/error.hpp"
#include "trn3sim/base/mesh.hpp"
#include "trn3sim/base/quantity.hpp"
#include "trn3sim/base/sha256.hpp"
#include "trn3sim/base/text.hpp"

namespace trn3sim::base {
namespace {

TEST(Quantity, ClockEdgesDoNotAccumulateRounding) {
  const Frequency f(2'400'000'000);
  // 2.4e9 cycles of a 2.4 GHz clock are exactly one second, although one period is 416666.67 fs.
  EXPECT_EQ(cycles_time(2'400'000'000, f).count(), kFemtosPerSecond);
  EXPECT_EQ(cycles_time(1, f).count(), 416'667);  // rounded up
}

TEST(Quantity, TransferTimeRoundsUp) {
  EXPECT_EQ(transfer_time(Bytes(1), Rate(3)).count(), (kFemtosPerSecond + 2) / 3);
  EXPECT_EQ(transfer_time(Bytes(64'000'000'000), Rate(128'000'000'000)).count(), kFemtosPerSecond / 2);
  EXPECT_EQ(average_rate(Bytes(64'000'000'000), Time(kFemtosPerSecond / 2)), Rate(128'000'000'000));
  EXPECT_EQ(average_rate(Bytes(2), Time(3 * kFemtosPerSecond)), Rate(0)) << "rounded down";
}

TEST(Quantity, PowerTimesTimeIsExact) {
  // 60 W for 1 s = 60 J = 6e19 aJ.
  EXPECT_TRUE(power_energy(Power(60'000'000), Time(kFemtosPerSecond)).count() ==
              Int128(60) * 1'000'000'000'000'000'000);
}

TEST(Sha256, MatchesFips180Examples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(DTypes, StorageCountsScales) {
  EXPECT_EQ(storage_bytes(DType::Bf16, 100), 200);
  EXPECT_EQ(storage_bytes(DType::Mxfp8, 64), 66);  // 64 bytes and 2 scales
  EXPECT_EQ(storage_bytes(DType::Mxfp4, 64), 34);  // 32 bytes and 2 scales
  for (std::size_t i = 0; i < kDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(dtype_from(name(t)), t);
  }
  EXPECT_FALSE(dtype_from("bf17").has_value());
}

TEST(Mesh, GroupsPartitionTheRanks) {
  const Mesh mesh({{"pp", 2}, {"dp", 3}, {"tp", 4}});
  EXPECT_EQ(mesh.ranks(), 24);
  EXPECT_EQ(mesh.group_of(5, {mesh.axis("tp")}), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(mesh.group_of(5, {mesh.axis("dp")}), (std::vector<std::int64_t>{1, 5, 9}));
  EXPECT_EQ(mesh.group_of(5, {0, 2}), (std::vector<std::int64_t>{4, 5, 6, 7, 16, 17, 18, 19}));
  std::vector<int> seen(24, 0);
  for (const auto& group : mesh.groups({1}))
    for (std::int64_t r : group) ++seen[static_cast<std::size_t>(r)];
  EXPECT_EQ(seen, std::vector<int>(24, 1));
  EXPECT_EQ(mesh.axis("ep"), -1);
}

TEST(Text, SuggestsNearNames) {
  const std::vector<std::string> names{"queues", "clock", "bandwidth"};
  EXPECT_EQ(nearest("quues", names), "queues");
  EXPECT_EQ(nearest("zzzzzz", names), "");
  EXPECT_EQ(did_you_mean("bandwith", names), "; did you mean \"bandwidth\"?");
}

TEST(Text, FormatsForPeople) {
  EXPECT_EQ(format_time(Time(8'123'400'000'000'000)), "8.12 s");
  EXPECT_EQ(format_time(microseconds(412)), "412 us");
  EXPECT_EQ(format_rate(Rate(4'915'200'000'000)), "4.92 TB/s");
  EXPECT_EQ(format_si(999.7, "B"), "1.00 kB");
  EXPECT_EQ(format_si(2.7e17, "FLOP"), "270 PFLOP");
}

TEST(Errors, ListEveryProblem) {
  Problems problems;
  problems.add("a.json: /x", "required, but missing");
  problems.add("a.json: /y", "unknown key");
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "a.json: /x: required, but missing\na.json: /y: unknown key");
  }
  EXPECT_THROW(TRN3SIM_CHECK(1 == 2, "arithmetic"), InternalError);
}

}  // namespace
}  // namespace trn3sim::base
