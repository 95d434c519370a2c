// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/bench.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "trn3sim/base/error.hpp"
#include "trn3sim/models/engine_cost.hpp"

namespace trn3sim::sim {
namespace {

using models::ProfilePoint;

constexpr std::size_t kMostLimits = 8;
constexpr double kTolerance = 0.01;
constexpr double kFirstLimits[] = {0.25, 0.5, 0.75, 1.0, 1.25};  // of the average rate

double rate(const ProfilePoint& p) {
  return static_cast<double>(p.served.count());
}
double duration(const ProfilePoint& p) {
  return static_cast<double>(p.duration.count());
}

// Relative error of the point `i` when interpolated in 1 / rate between its neighbours.
double interpolation_error(const std::vector<ProfilePoint>& curve, std::size_t i) {
  const double low = 1 / rate(curve[i - 1]), x = 1 / rate(curve[i]), high = 1 / rate(curve[i + 1]);
  const double guess = duration(curve[i + 1]) + (duration(curve[i - 1]) - duration(curve[i + 1])) *
                                                    (x - high) / (low - high);
  return std::abs(guess - duration(curve[i])) / duration(curve[i]);
}

// The interval (by its lower point) whose neighbourhood interpolates worst, or the size of the
// curve if all is well. The midpoint of the wider neighbour interval is the place for a new point.
std::size_t worst_interval(const std::vector<ProfilePoint>& curve) {
  double worst = kTolerance;
  std::size_t where = curve.size();
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
    const double error = interpolation_error(curve, i);
    if (error <= worst) continue;
    worst = error;
    const double below = duration(curve[i - 1]) - duration(curve[i]);
    const double above = duration(curve[i]) - duration(curve[i + 1]);
    where = below > above ? i - 1 : i;
  }
  return where;
}

base::Rate between(const ProfilePoint& low, const ProfilePoint& high) {
  return base::Rate(std::llround(2 / (1 / rate(low) + 1 / rate(high))));
}

}  // namespace

KernelBench::KernelBench(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
                         modules::Context& context)
    : chip_(&chip), context_(&context), cluster_(name, chip, context) {}

modules::ClusterRun KernelBench::run(const models::TileProgram& program, base::Rate served_cap) {
  context_->restart();
  cluster_.load(program, served_cap);
  cluster_.arm({});
  sc_core::sc_start();  // until nothing is left to do
  return cluster_.result();
}

base::Rate KernelBench::limit(std::size_t cores) const {
  const base::Rate dma(chip_->dma.bus_rate.count() * chip_->dma.engines *
                       static_cast<std::int64_t>(cores));
  return std::min(dma, base::Rate(chip_->hbm.bandwidth.count() / chip_->stacks));
}

void KernelBench::add_curve(models::KernelProfile& profile, const models::TileProgram& program) {
  std::vector<ProfilePoint>& curve = profile.curve;
  const std::int64_t bytes = profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes;
  const base::Rate most = limit(program.cores.size());
  const double average = static_cast<double>(bytes) / base::to_seconds(profile.duration);
  std::size_t limits = 0;
  auto measure = [&](base::Rate served) {
    const modules::ClusterRun r = run(program, served);
    profile.instructions += r.instructions;
    ++limits;
    auto at = std::lower_bound(curve.begin(), curve.end(), served,
                               [](const ProfilePoint& p, base::Rate x) { return p.served < x; });
    curve.insert(at, {served, r.duration});
  };
  for (double share : kFirstLimits) {
    const base::Rate served(std::llround(average * share));
    if (served.count() > 0 && served < most) measure(served);
  }
  while (limits < kMostLimits) {
    const std::size_t i = worst_interval(curve);
    if (i == curve.size()) break;
    const base::Rate served = between(curve[i], curve[i + 1]);
    if (served <= curve[i].served || served >= curve[i + 1].served) break;
    measure(served);
  }
  // More cannot hurt: an accident of timing must not make the curve rise with the rate.
  for (std::size_t i = curve.size() - 1; i > 0; --i)
    curve[i - 1].duration = std::max(curve[i - 1].duration, curve[i].duration);
}

models::KernelProfile KernelBench::profile(const models::TileProgram& program) {
  const modules::ClusterRun r = run(program, base::Rate(0));
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  models::KernelProfile p;
  p.duration = r.duration;
  p.lead_in = r.first_compute;
  p.weight_lead_in = r.lead_in_weights_only ? p.lead_in : base::Time(0);
  p.drain = r.duration - r.last_compute;
  p.compute_active = r.compute_active;
  for (std::size_t e = 0; e < models::kEngines; ++e)
    p.engine_busy[e] = base::Time(r.engine_busy[e].count() / cores);
  p.dma_busy = base::Time(r.dma_busy.count() / (cores * chip_->dma.engines));
  p.counts = models::program_counts(program, *chip_);
  TRN3SIM_CHECK(
      p.counts.hbm_read_bytes == r.hbm_read_bytes && p.counts.hbm_write_bytes == r.hbm_write_bytes,
      "the stack must move exactly the bytes of the program");
  p.counts.hbm_activates = r.hbm_activates;
  const base::Time ideal = models::tensor_ideal_time(p.counts, *chip_);
  p.tensor_ideal = base::Time(ideal.count() / cores);
  p.instructions = r.instructions;
  p.curve.push_back({limit(program.cores.size()), p.duration});
  if (p.counts.dma_bytes > 0) add_curve(p, program);
  return p;
}

}  // namespace trn3sim::sim
