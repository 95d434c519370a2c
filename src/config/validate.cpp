// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "config/validate.hpp"

#include "trn3sim/config/hbm_mapping.hpp"
#include "trn3sim/config/quantity_text.hpp"

#include "config/rules.hpp"
#include <fmt/format.h>

namespace trn3sim::config {
namespace {

void check_chip(const ChipSpec& chip, Rules& rules) {
  rules.require(chip.cores % chip.stacks == 0, "cores",
                fmt::format("{} cores do not divide over {} HBM stacks", chip.cores, chip.stacks));
  rules.require(chip.stacks % chip.dies == 0, "stacks",
                fmt::format("{} HBM stacks do not divide over {} dies", chip.stacks, chip.dies));
  rules.require(chip.cores_per_stack() % chip.logical_core_size == 0 &&
                    chip.cores_per_stack() >= chip.logical_core_size,
                "logical_core_size",
                fmt::format("a logical core of {} needs whole groups among the {} cores of a stack",
                            chip.logical_core_size, chip.cores_per_stack()));
  rules.require(chip.dma.plateau_rate <= chip.dma.bus_rate, "dma.plateau_rate",
                fmt::format("{} is above bus_rate {}", quantity_text(chip.dma.plateau_rate),
                            quantity_text(chip.dma.bus_rate)));
}

void check_arrays(const ChipSpec& chip, Rules& rules) {
  const std::int64_t usable = chip.sbuf.usable_per_partition.count() * chip.sbuf.partitions;
  rules.require(usable <= chip.sbuf.capacity.count(), "sbuf.usable_per_partition",
                fmt::format("{} partitions of {} are more than the capacity {}",
                            chip.sbuf.partitions, quantity_text(chip.sbuf.usable_per_partition),
                            quantity_text(chip.sbuf.capacity)));
  const std::int64_t banks =
      chip.psum.bank_bytes_per_partition.count() * chip.psum.banks * chip.sbuf.partitions;
  rules.require(banks <= chip.psum.capacity.count(), "psum.banks",
                fmt::format("{} banks of {} in {} partitions are more than the capacity {}",
                            chip.psum.banks, quantity_text(chip.psum.bank_bytes_per_partition),
                            chip.sbuf.partitions, quantity_text(chip.psum.capacity)));
  rules.require(chip.tensor.rows <= chip.sbuf.partitions, "tensor.rows",
                fmt::format("{} rows need as many SBUF partitions, there are {}", chip.tensor.rows,
                            chip.sbuf.partitions));
  bool any = false;
  for (std::size_t i = 0; i < base::kDTypes; ++i) {
    const bool supported = chip.tensor.macs_per_pe_cycle[i] > 0;
    any = any || supported;
    const std::string key = fmt::format("energy.mac.{}", base::name(static_cast<base::DType>(i)));
    rules.require(!supported || chip.energy.mac[i].count() > 0, key,
                  "the format is supported (tensor.macs_per_pe_cycle), so a MAC costs energy: "
                  "expected above zero");
  }
  rules.require(any, "tensor.macs_per_pe_cycle", "no format is supported: expected one above zero");
}

void check_hbm(const ChipSpec& chip, Rules& rules) {
  const HbmSpec& hbm = chip.hbm;
  const std::int64_t banks = hbm.sids * hbm.bank_groups * hbm.banks_per_group;
  const std::int64_t row_set = hbm.row.count() * banks * hbm.channels * hbm.pseudo_channels;
  rules.require(hbm.row.count() % hbm.burst.count() == 0, "hbm.row",
                fmt::format("{} is no multiple of burst {}", quantity_text(hbm.row),
                            quantity_text(hbm.burst)));
  rules.require(
      hbm.capacity.count() % row_set == 0, "hbm.capacity",
      fmt::format("{} gives no whole number of rows to each of the {} banks of a stack",
                  quantity_text(hbm.capacity), banks * hbm.channels * hbm.pseudo_channels));
  rules.require(Int128(chip.cores_per_stack()) * hbm.reserved.count() < hbm.capacity.count(),
                "hbm.reserved",
                fmt::format("{} for each of the {} cores of a stack leaves nothing of {}",
                            quantity_text(hbm.reserved), chip.cores_per_stack(),
                            quantity_text(hbm.capacity)));
  rules.require(hbm.t_rrd_s <= hbm.t_rrd_l, "hbm.t_rrd_l",
                fmt::format("{} is below t_rrd_s {}", quantity_text(hbm.t_rrd_l),
                            quantity_text(hbm.t_rrd_s)));
  rules.require(hbm.refresh != "all_bank" || hbm.t_rfc_all_bank < hbm.t_refi, "hbm.t_rfc_all_bank",
                fmt::format("{} leaves no time within t_refi {}", quantity_text(hbm.t_rfc_all_bank),
                            quantity_text(hbm.t_refi)));
  rules.require(hbm.refresh != "per_bank" || hbm.t_rfc_per_bank < hbm.t_refi, "hbm.t_rfc_per_bank",
                fmt::format("{} leaves no time within t_refi {}", quantity_text(hbm.t_rfc_per_bank),
                            quantity_text(hbm.t_refi)));
}

// What the modes and the address map of the HBM need.
void check_hbm_controller(const ChipSpec& chip, Rules& rules) {
  const HbmSpec& hbm = chip.hbm;
  const HbmMapping map = hbm_mapping(hbm);
  rules.require(map.problem.empty(), map.key.empty() ? "hbm.mapping" : map.key, map.problem);
  const bool exact = hbm.mode == "exact";
  const bool timed = hbm.exact.t_rc.count() > 0;
  rules.require(!exact || timed, "hbm.mode",
                "\"exact\" needs the timings of section hbm.exact, which is missing");
  rules.require(exact || hbm.page_policy == "open", "hbm.page_policy",
                "\"closed\" needs hbm.mode \"exact\"; \"runs\" keeps rows open");
  rules.require(!timed || hbm.exact.t_rc >= hbm.t_ras, "hbm.exact.t_rc",
                fmt::format("{} is below t_ras {}", quantity_text(hbm.exact.t_rc),
                            quantity_text(hbm.t_ras)));
  rules.require(!timed || hbm.exact.write_low_percent < hbm.exact.write_high_percent,
                "hbm.exact.write_low_percent",
                fmt::format("{} is not below write_high_percent {}", hbm.exact.write_low_percent,
                            hbm.exact.write_high_percent));
}

}  // namespace

void validate(const SystemSpec& system, const PlaceOf& place_of, base::Problems& problems) {
  Rules chip("chip", place_of, problems);
  check_chip(system.chip, chip);
  check_arrays(system.chip, chip);
  check_hbm(system.chip, chip);
  check_hbm_controller(system.chip, chip);
  Rules fabric("fabric", place_of, problems);
  check_fabric(system.fabric, fabric);
}

}  // namespace trn3sim::config
