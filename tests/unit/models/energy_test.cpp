// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/energy.hpp"

#include <cmath>

#include "trn3sim/base/error.hpp"

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::DType;
using base::Energy;
using base::EnergyAccount;
using base::EnergyAccounts;
using base::Power;
using base::Time;
using base::to_joules;

constexpr Time kSecond{base::kFemtosPerSecond};

Energy pj(double value) {
  return Energy(std::llround(value * 1e6));
}
Power watts(double value) {
  return Power(std::llround(value * 1e6));
}
std::int64_t count(Energy e) {
  return static_cast<std::int64_t>(e.count());
}

// Coefficients in the range of a 3 nm accelerator with HBM3e.
config::ChipSpec chip() {
  config::ChipSpec c;
  c.cores = 8;
  c.stacks = 4;
  config::EnergySpec& e = c.energy;
  e.mac = {pj(1.1), pj(0.42), pj(0.42), pj(0.42), pj(0.20), pj(0.20), pj(0.16)};
  e.sbuf_read = pj(1.2);
  e.sbuf_write = pj(1.3);
  e.psum_access = pj(0.7);
  e.vector_op = pj(1.2);
  e.transcendental_op = pj(3);
  e.quantize_op = pj(1);
  e.gpsimd_op = pj(10);
  e.hbm_activate = pj(800);
  e.hbm_read_bit = pj(2.9);
  e.hbm_write_bit = pj(3.1);
  e.hbm_io_bit = pj(0.3);
  e.hbm_refresh_bank = pj(2700);
  e.hbm_phy_bit = pj(0.7);
  e.dma_bit = pj(1.1);
  e.die_crossing_bit = pj(0.4);
  e.link_bit = pj(0.5);
  e.hbm_background = watts(3);
  e.hbm_phy_static = watts(2);
  e.link_static = watts(41);
  e.clock_core = watts(8);
  e.clock_gated_share = 0.25;
  e.clock_uncore = watts(10);
  e.leakage = watts(60);
  e.leakage_temperature_c = 85;
  e.leakage_per_kelvin = 0.02;
  e.operating_temperature_c = 75;
  e.host = watts(23);
  e.regulator_efficiency = 0.9;
  return c;
}

// Every counter different from zero and from the others.
EventCounts counts() {
  EventCounts c;
  for (std::size_t i = 0; i < base::kDTypes; ++i) c.macs[i] = 1000 + static_cast<std::int64_t>(i);
  c.transpose_macs = 11;
  c.sbuf_read_bytes = 12;
  c.sbuf_write_bytes = 13;
  c.psum_read_bytes = 14;
  c.psum_write_bytes = 15;
  c.vector_ops = 16;
  c.scalar_ops = 17;
  c.gpsimd_ops = 18;
  c.vector_transcendental_ops = 19;
  c.scalar_transcendental_ops = 20;
  c.quantize_ops = 21;
  c.hbm_read_bytes = 22;
  c.hbm_write_bytes = 23;
  c.hbm_activates = 24;
  c.hbm_refreshes = 25;
  c.dma_bytes = 26;
  c.die_crossing_bytes = 27;
  c.link_bytes = 28;
  return c;
}

TEST(DynamicEnergy, EachAccountByHand) {
  const EnergyAccounts e = dynamic_energy(counts(), chip().energy);
  // In aJ: MACs 1000..1006 of fp32, tf32, bf16, fp16, fp8, mxfp8, mxfp4, and 11 transposes as bf16.
  EXPECT_EQ(count(e[EnergyAccount::Tensor]), 1000 * 1'100'000LL +
                                                 (1001 + 1002 + 1003 + 11) * 420'000 +
                                                 (1004 + 1005) * 200'000 + 1006 * 160'000);
  EXPECT_EQ(count(e[EnergyAccount::SbufPsum]),
            12 * 1'200'000 + 13 * 1'300'000 + (14 + 15) * 700'000);
  EXPECT_EQ(count(e[EnergyAccount::Vector]), 16 * 1'200'000 + 19 * 3'000'000 + 21 * 1'000'000);
  EXPECT_EQ(count(e[EnergyAccount::Scalar]), 17 * 1'200'000 + 20 * 3'000'000);
  EXPECT_EQ(count(e[EnergyAccount::Gpsimd]), 18 * 10'000'000);
  EXPECT_EQ(count(e[EnergyAccount::DmaNoc]), 26 * 8 * 1'100'000 + 27 * 8 * 400'000);
  EXPECT_EQ(count(e[EnergyAccount::Hbm]), 24 * 800'000'000LL + 22 * 8 * 2'900'000 +
                                              23 * 8 * 3'100'000 + 45 * 8 * 300'000 +
                                              25 * 2'700'000'000LL);
  EXPECT_EQ(count(e[EnergyAccount::HbmPhy]), 45 * 8 * 700'000);
  EXPECT_EQ(count(e[EnergyAccount::Link]), 28 * 8 * 500'000);
  // Static owners have no dynamic part.
  for (auto a : {EnergyAccount::Host, EnergyAccount::Clock, EnergyAccount::Leakage,
                 EnergyAccount::Regulator}) {
    EXPECT_EQ(count(e[a]), 0);
  }
}

TEST(DynamicEnergy, IsLinearInTheCounts) {
  // Energy of n times the counts = n times the energy; energy of a sum = sum of the energies.
  EventCounts c = counts();
  EnergyAccounts sum = dynamic_energy(c, chip().energy);
  c *= 41;
  EnergyAccounts scaled = dynamic_energy(c, chip().energy);
  for (std::size_t i = 0; i < base::kEnergyAccounts; ++i) {
    EXPECT_TRUE(scaled.of[i] == sum.of[i] * Int128(41)) << base::kEnergyAccountNames[i];
  }
  sum += scaled;
  c += counts();
  EXPECT_TRUE(dynamic_energy(c, chip().energy).total() == sum.total());
}

TEST(DynamicEnergy, DoesNotOverflowInALongRun) {
  // 9e18 bytes of HBM reads at 3.2 pJ/bit are 2.3e8 J = 2.3e26 aJ, more than 64 bits hold.
  EventCounts c;
  c.hbm_read_bytes = 9'000'000'000'000'000'000;
  EXPECT_NEAR(to_joules(dynamic_energy(c, chip().energy)[EnergyAccount::Hbm]), 9e18 * 8 * 3.2e-12,
              1.0);
}

TEST(EventCounts, ScaleAndAddEveryCounter) {
  // Twice the counts is the counts added to themselves, seen through every coefficient at once.
  EventCounts doubled = counts();
  doubled *= 2;
  EventCounts added = counts();
  added += counts();
  EXPECT_EQ(doubled.macs, added.macs);
  EXPECT_EQ(doubled.macs[6], 2012);
  EXPECT_EQ(added.transpose_macs, 22);
  EXPECT_EQ(doubled.transpose_macs, 22);
  EXPECT_EQ(added.link_bytes, 56);
  EXPECT_EQ(doubled.link_bytes, 56);
  EXPECT_EQ(added.hbm_refreshes, 50);
  EXPECT_EQ(doubled.psum_write_bytes, 30);
}

TEST(StaticEnergy, EachAccountByHand) {
  // One second, cores busy for 6 of 8 core-seconds.
  const EnergyAccounts e = static_energy(chip(), kSecond, kSecond * 6);
  EXPECT_DOUBLE_EQ(to_joules(e[EnergyAccount::Hbm]), 4 * 3.0);
  EXPECT_DOUBLE_EQ(to_joules(e[EnergyAccount::HbmPhy]), 4 * 2.0);
  EXPECT_DOUBLE_EQ(to_joules(e[EnergyAccount::Link]), 41.0);
  EXPECT_DOUBLE_EQ(to_joules(e[EnergyAccount::Host]), 23.0);
  EXPECT_DOUBLE_EQ(to_joules(e[EnergyAccount::Clock]), 10 + 6 * 8.0 + 2 * 8.0 * 0.25);
  // 60 W x exp(0.02 x (75 - 85)) = 49.12 W, to the microwatt.
  EXPECT_NEAR(to_joules(e[EnergyAccount::Leakage]), 60 * std::exp(-0.2), 1e-6);
  EXPECT_EQ(count(e[EnergyAccount::Tensor]), 0);
}

TEST(StaticEnergy, LeakageIsTheReferenceAtItsTemperature) {
  config::ChipSpec c = chip();
  c.energy.operating_temperature_c = 85;
  EXPECT_DOUBLE_EQ(to_joules(static_energy(c, kSecond, Time())[EnergyAccount::Leakage]), 60.0);
}

TEST(StaticEnergy, RefusesImpossibleBusyTime) {
  EXPECT_THROW(static_energy(chip(), kSecond, kSecond * 8 + Time(1)), base::InternalError);
}

TEST(Regulator, TotalIsTheSumOfAccounts) {
  EnergyAccounts e = dynamic_energy(counts(), chip().energy);
  e += static_energy(chip(), kSecond, kSecond * 3);
  const Energy chip_side = e.total();
  add_regulator_loss(e, chip().energy);
  // Loss = total x (1 / 0.9 - 1) = total / 9, rounded down; the other accounts stay.
  EXPECT_TRUE(e[EnergyAccount::Regulator].count() == chip_side.count() / 9);
  EXPECT_TRUE(e.total() == chip_side + e[EnergyAccount::Regulator]);
  Energy sum;
  for (Energy part : e.of) sum += part;
  EXPECT_TRUE(sum == e.total());
  config::EnergySpec ideal = chip().energy;
  ideal.regulator_efficiency = 1;
  EnergyAccounts same = dynamic_energy(counts(), ideal);
  add_regulator_loss(same, ideal);
  EXPECT_EQ(count(same[EnergyAccount::Regulator]), 0);
}

TEST(BillOfWatts, HbmStreaming) {
  // One second at 92 % of 4915.2 GB/s, rows used whole (one activation per KiB), every bank
  // refreshed once per 3.9 us, 70 % of the bytes between the dies. Expected watts, rounded:
  // stacks 119 dynamic + 16 background and refresh, PHY 33, DMA, NoC and die crossing 50,
  // clocks 74, leakage 49.
  EventCounts c;
  c.hbm_read_bytes = 4'521'984'000'000;
  c.hbm_activates = c.hbm_read_bytes / 1024;
  c.hbm_refreshes = static_cast<std::int64_t>(4 * 32 * 48 / 3.9e-6);
  c.dma_bytes = c.hbm_read_bytes;
  c.die_crossing_bytes = c.hbm_read_bytes / 10 * 7;
  EnergyAccounts e = dynamic_energy(c, chip().energy);
  e += static_energy(chip(), kSecond, kSecond * 8);
  EXPECT_NEAR(to_joules(e[EnergyAccount::Hbm]), 119 + 16, 1.0);
  EXPECT_NEAR(to_joules(e[EnergyAccount::HbmPhy]), 33, 0.5);
  EXPECT_NEAR(to_joules(e[EnergyAccount::DmaNoc]), 50, 0.5);
  EXPECT_NEAR(to_joules(e[EnergyAccount::Clock]), 74, 0.5);
  EXPECT_NEAR(to_joules(e[EnergyAccount::Leakage]), 49, 0.5);
}

}  // namespace
}  // namespace trn3sim::models
