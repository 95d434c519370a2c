// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/config/quantity_text.hpp"

#include <gtest/gtest.h>

namespace trn3sim::config {
namespace {

using base::Bytes;
using base::Energy;
using base::Frequency;
using base::Power;
using base::Rate;
using base::Time;

template <class Q>
std::int64_t value_of(std::string_view text) {
  const auto parsed = parse_quantity<Q>(text);
  if (const auto* error = std::get_if<QuantityError>(&parsed)) {
    ADD_FAILURE() << text << ": expected " << error->expected;
    return -1;
  }
  return static_cast<std::int64_t>(std::get<Q>(parsed).count());
}

template <class Q>
std::string error_of(std::string_view text) {
  const auto parsed = parse_quantity<Q>(text);
  const auto* error = std::get_if<QuantityError>(&parsed);
  return error == nullptr ? "" : error->expected;
}

TEST(QuantityText, ParsesExactlyIntoBaseUnits) {
  EXPECT_EQ(value_of<Frequency>("2.4 GHz"), 2'400'000'000);
  EXPECT_EQ(value_of<Frequency>("2.4GHz"), 2'400'000'000);
  EXPECT_EQ(value_of<Bytes>("24 MiB"), 24LL * 1024 * 1024);
  EXPECT_EQ(value_of<Bytes>("0.5 KiB"), 512);
  EXPECT_EQ(value_of<Rate>("4.9 TB/s"), 4'900'000'000'000);
  EXPECT_EQ(value_of<Rate>("4915.2 GB/s"), 4'915'200'000'000);
  EXPECT_EQ(value_of<Time>("860 ns"), 860'000'000);
  EXPECT_EQ(value_of<Time>("19.375 ns"), 19'375'000);
  EXPECT_EQ(value_of<Energy>("0.42 pJ"), 420'000);
  EXPECT_EQ(value_of<Energy>("2.9 pJ"), 2'900'000);
  EXPECT_EQ(value_of<Power>("8 W"), 8'000'000);
}

TEST(QuantityText, RefusesWhatIsNoQuantity) {
  for (const char* text :
       {"", "GHz", "2.4", "2.4 Ghz", "2.4  GHz", " 2.4 GHz", "2.4 GHz ", "2.4e9 Hz", "1.GHz",
        ".5 GHz", "+1 GHz", "--1 GHz", "1,5 GHz", "0x10 Hz", "nan Hz", "1 GB/s"})
    EXPECT_NE(error_of<Frequency>(text), "") << text;
  EXPECT_EQ(error_of<Frequency>("fast"), "a quantity such as \"1.4 GHz\"");
  EXPECT_EQ(error_of<Bytes>("24 MB"),
            "a quantity such as \"24 MiB\" (unit B, KiB, MiB, GiB or TiB)");
}

TEST(QuantityText, RefusesRoundingAndOverflow) {
  EXPECT_EQ(error_of<Bytes>("1.1 KiB"), "a whole number of bytes");  // 1126.4 B
  EXPECT_EQ(error_of<Time>("0.3 fs"), "a whole number of femtoseconds");
  EXPECT_EQ(error_of<Time>("2 s"), "at most 1 s");
  EXPECT_EQ(error_of<Rate>("999999999999999999 PB/s"), "at most 1000 PB/s");
  EXPECT_NE(error_of<Rate>("99999999999999999999999999999999999999999 B/s"), "");
}

TEST(QuantityText, NegativeParses) {
  EXPECT_EQ(value_of<Bytes>("-24 MiB"), -24LL * 1024 * 1024);
}

TEST(QuantityText, WritesTheShortestExactText) {
  EXPECT_EQ(quantity_text(Rate(4'915'200'000'000)), "4.9152 TB/s");
  EXPECT_EQ(quantity_text(Bytes(24LL << 20)), "24 MiB");
  EXPECT_EQ(quantity_text(Bytes(245'752)), "245752 B");  // no whole KiB
  EXPECT_EQ(quantity_text(Time(0)), "0 fs");
  EXPECT_EQ(quantity_text(Energy(420'000)), "420 fJ");
  for (const std::int64_t n :
       {1LL, 999LL, 1'000LL, 1'001LL, 38'400'000'000LL, 123'456'789'012'345LL})
    EXPECT_EQ(value_of<Time>(quantity_text(Time(n))), n);
}

}  // namespace
}  // namespace trn3sim::config
