// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/energy.hpp"

#include <cmath>

#include "trn3sim/base/error.hpp"

namespace trn3sim::models {
namespace {

using base::Energy;
using base::EnergyAccount;
using base::EnergyAccounts;
using base::Power;
using base::Time;

Energy of(std::int64_t count, Energy each) {
  return each * Int128(count);
}
Energy of_bits(std::int64_t bytes, Energy per_bit) {
  return per_bit * (Int128(bytes) * 8);
}

// P0 exp(k (T - Tref)) at the nominal voltage.
Power leakage(const config::EnergySpec& spec) {
  const double kelvin = spec.operating_temperature_c - spec.leakage_temperature_c;
  return Power(std::llround(static_cast<double>(spec.leakage.count()) *
                            std::exp(spec.leakage_per_kelvin * kelvin)));
}

}  // namespace

EnergyAccounts dynamic_energy(const EventCounts& counts, const config::EnergySpec& spec) {
  EnergyAccounts e;
  Energy& tensor = e[EnergyAccount::Tensor];
  for (std::size_t i = 0; i < counts.macs.size(); ++i) tensor += of(counts.macs[i], spec.mac[i]);
  // A PE transpose multiplies by an identity matrix: a BF16 pass.
  tensor += of(counts.transpose_macs, spec.mac[static_cast<std::size_t>(base::DType::Bf16)]);
  e[EnergyAccount::SbufPsum] =
      of(counts.sbuf_read_bytes, spec.sbuf_read) + of(counts.sbuf_write_bytes, spec.sbuf_write) +
      of(counts.psum_read_bytes, spec.psum_access) + of(counts.psum_write_bytes, spec.psum_access);
  e[EnergyAccount::Vector] = of(counts.vector_ops, spec.vector_op) +
                             of(counts.vector_transcendental_ops, spec.transcendental_op) +
                             of(counts.quantize_ops, spec.quantize_op);
  // ScalarE lanes cost as those of VectorE.
  e[EnergyAccount::Scalar] = of(counts.scalar_ops, spec.vector_op) +
                             of(counts.scalar_transcendental_ops, spec.transcendental_op);
  e[EnergyAccount::Gpsimd] = of(counts.gpsimd_ops, spec.gpsimd_op);
  e[EnergyAccount::DmaNoc] = of_bits(counts.dma_bytes, spec.dma_bit) +
                             of_bits(counts.die_crossing_bytes, spec.die_crossing_bit);
  const std::int64_t hbm_bytes = counts.hbm_read_bytes + counts.hbm_write_bytes;
  e[EnergyAccount::Hbm] = of(counts.hbm_activates, spec.hbm_activate) +
                          of_bits(counts.hbm_read_bytes, spec.hbm_read_bit) +
                          of_bits(counts.hbm_write_bytes, spec.hbm_write_bit) +
                          of_bits(hbm_bytes, spec.hbm_io_bit) +
                          of(counts.hbm_refreshes, spec.hbm_refresh_bank);
  e[EnergyAccount::HbmPhy] = of_bits(hbm_bytes, spec.hbm_phy_bit);
  e[EnergyAccount::Link] = of_bits(counts.link_bytes, spec.link_bit);
  return e;
}

EnergyAccounts static_energy(const config::ChipSpec& chip, Time elapsed, Time core_busy) {
  const config::EnergySpec& spec = chip.energy;
  const Time core_time = elapsed * chip.cores;
  TRN3SIM_CHECK(core_busy >= Time() && core_busy <= core_time,
                "cores busy for longer than the elapsed time");
  EnergyAccounts e;
  e[EnergyAccount::Hbm] = base::power_energy(spec.hbm_background * chip.stacks, elapsed);
  e[EnergyAccount::HbmPhy] = base::power_energy(spec.hbm_phy_static * chip.stacks, elapsed);
  e[EnergyAccount::Link] = base::power_energy(spec.link_static, elapsed);
  e[EnergyAccount::Host] = base::power_energy(spec.host, elapsed);
  const Power gated(
      std::llround(static_cast<double>(spec.clock_core.count()) * spec.clock_gated_share));
  e[EnergyAccount::Clock] = base::power_energy(spec.clock_uncore, elapsed) +
                            base::power_energy(spec.clock_core, core_busy) +
                            base::power_energy(gated, core_time - core_busy);
  e[EnergyAccount::Leakage] = base::power_energy(leakage(spec), elapsed);
  return e;
}

void add_regulator_loss(EnergyAccounts& accounts, const config::EnergySpec& spec) {
  TRN3SIM_CHECK(spec.regulator_efficiency > 0 && spec.regulator_efficiency <= 1,
                "regulator efficiency must be above 0 and at most 1");
  // In parts per million, so that the loss is an integer expression of the total.
  const Int128 ppm = std::llround(spec.regulator_efficiency * 1e6);
  const Int128 loss = accounts.total().count() * (1'000'000 - ppm) / ppm;
  accounts[EnergyAccount::Regulator] += Energy(loss);
}

}  // namespace trn3sim::models
