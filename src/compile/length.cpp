// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "length.hpp"

#include <algorithm>

#include "trn3sim/compile/collective.hpp"

#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

class Length {
 public:
  Length(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
         std::int64_t rank)
      : program_(program), chip_(run.system.chip), plan_(plan), rank_(rank) {}

  double of_rank() const {
    return trace::sum_over_ops(program_, rank_, [&](std::int32_t block, std::int32_t op) {
      return of_op(
          program_.blocks[static_cast<std::size_t>(block)].ops[static_cast<std::size_t>(op)]);
    });
  }

 private:
  static double over(std::int64_t bytes, base::Rate rate) {
    return static_cast<double>(bytes) / static_cast<double>(rate.count());
  }

  double of_op(const trace::Op& op) const {
    if (const auto* d = std::get_if<trace::Delay>(&op.body))
      return static_cast<double>(d->ns) * 1e-9;
    if (const auto* m = std::get_if<trace::Memory>(&op.body))
      return over(m->bytes, std::min(chip_.host.pcie, chip_.host.storage));
    if (const auto* p = std::get_if<trace::PointToPoint>(&op.body))
      return over(p->bytes, chip_.on_chip.stack_link);
    if (const auto* o = std::get_if<trace::Opaque>(&op.body)) return of_opaque(*o);
    if (const auto* c = std::get_if<trace::Collective>(&op.body)) return of_collective(*c);
    return 0;
  }

  double of_opaque(const trace::Opaque& o) const {
    const double peak = chip_.peak_flops_per_core(o.dtype.value_or(program_.header.dtype));
    const double flop = peak > 0 ? static_cast<double>(o.flop) / peak : 0;
    return std::max(
        {flop, over(o.bytes, chip_.dma.plateau_rate), static_cast<double>(o.ns) * 1e-9});
  }

  double of_collective(const trace::Collective& c) const {
    for (const GroupSet& set : plan_.group_sets) {
      if (set.name != c.group) continue;
      const CollectiveProgram p = collective_program(c, shape_of(set, rank_, Way::Ring));
      const double start =
          base::to_seconds(chip_.collectives.start_overhead + chip_.dma.start_latency);
      return start + static_cast<double>(p.parts[0].sends) *
                         over(p.parts[0].bytes.count(), chip_.on_chip.stack_link);
    }
    return 0;
  }

  const trace::Program& program_;
  const config::ChipSpec& chip_;
  const Plan& plan_;
  std::int64_t rank_;
};

}  // namespace

double least_seconds(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
                     std::int64_t rank) {
  return Length(program, run, plan, rank).of_rank();
}

void check_length(const trace::Program& program, const config::RunSpec& run, const Plan& plan,
                  base::Problems& problems) {
  for (std::size_t r = 0; r < plan.places.size(); ++r) {
    const double seconds = least_seconds(program, run, plan, static_cast<std::int64_t>(r));
    if (seconds <= kMostSeconds) continue;
    problems.add(
        program.file.string(),
        fmt::format(
            "rank {} would take {:.3g} s; at most {:.0f} s can be simulated. Check counts, delays "
            "and sizes",
            r, seconds, kMostSeconds));
    return;
  }
}

}  // namespace trn3sim::compile
