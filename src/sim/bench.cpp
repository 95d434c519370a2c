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

constexpr std::size_t kMostPoints = 12;
constexpr double kTolerance = 0.01;
constexpr double kKneeShare = 1.005;
constexpr int kKneeSteps = 5;
constexpr double kKneeRatio = 1.1;                   // how closely the knee is bracketed
constexpr double kApart = 1.06;                      // ratio of neighbouring rates while refining
constexpr double kSpread = 1.5;                      // between the least rate and the next
constexpr std::int64_t kWorthwhile = 100;            // loads of a share of 1 / this of a kernel
constexpr std::int64_t kLittle = 200;                // 1 / this of a kernel
constexpr std::int64_t kManyRamps = 50;              // of the limiter: no hot entry above
constexpr std::int64_t kOffset = 12;                  // of copies: 1 / this of their time
constexpr double kFirstLimits[] = {0.25, 0.5, 1.0};  // of the average rate

double rate(const ProfilePoint& p) {
  return static_cast<double>(p.served.count());
}
double duration(const ProfilePoint& p) {
  return static_cast<double>(p.duration.count());
}

// Seconds over 1 / rate between two neighbours: the bytes that still bind there.
double slope(const ProfilePoint& low, const ProfilePoint& high) {
  return (duration(low) - duration(high)) / (1 / rate(low) - 1 / rate(high));
}

// How far interpolation in the interval above curve[i] can be off, and the 1 / rate where. Over
// 1 / rate the duration is convex: flat at high rates, as steep as the bytes moved at low ones. So
// it lies above the lines through the neighbouring segments, and the chord is the interpolation.
struct Gap {
  double relative = 0, inverse_rate = 0;
};
Gap gap_above(const std::vector<ProfilePoint>& curve, std::size_t i, double bytes) {
  const ProfilePoint &low = curve[i], &high = curve[i + 1];
  const double left = 1 / rate(high), right = 1 / rate(low);
  const double flat = i + 2 < curve.size() ? slope(high, curve[i + 2]) : 0;
  const double steep =
      i > 0 ? slope(curve[i - 1], low) : bytes * static_cast<double>(base::kFemtosPerSecond);
  if (steep <= flat) return {};
  const double corner = std::clamp(
      (duration(high) - duration(low) + steep * right - flat * left) / (steep - flat), left, right);
  const double chord = duration(high) + slope(low, high) * (corner - left);
  const double bound = duration(high) + flat * (corner - left);
  return {chord / bound - 1, corner};
}

// Index of the lowest rate that costs at most 0.5 % over the unlimited run (the last point).
std::size_t knee(const std::vector<ProfilePoint>& curve) {
  std::size_t i = curve.size() - 1;
  while (i > 0 && duration(curve[i - 1]) <= kKneeShare * duration(curve.back())) --i;
  return i;
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

void KernelBench::measure(models::KernelProfile& profile, const models::TileProgram& program,
                          base::Rate served) {
  const modules::ClusterRun r = run(program, served);
  profile.instructions += r.instructions;
  std::vector<ProfilePoint>& curve = profile.curve;
  const auto at =
      std::lower_bound(curve.begin(), curve.end(), served,
                       [](const ProfilePoint& p, base::Rate x) { return p.served < x; });
  curve.insert(at, {served, r.duration});
}

void KernelBench::find_knee(models::KernelProfile& profile, const models::TileProgram& program,
                            double average) {
  const std::vector<ProfilePoint>& curve = profile.curve;
  for (int step = 0; step < kKneeSteps; ++step) {
    const std::size_t high = knee(curve);
    // Nothing takes less than its average rate.
    const double low_rate = high > 0 ? rate(curve[high - 1]) : average;
    const double high_rate = rate(curve[high]);
    if (high_rate < kKneeRatio * low_rate) return;
    measure(profile, program, base::Rate(std::llround(std::sqrt(low_rate * high_rate))));
  }
}

// Adds points where interpolation can be off most, until it cannot be off by more than 1 %.
void KernelBench::refine(models::KernelProfile& profile, const models::TileProgram& program) {
  const std::vector<ProfilePoint>& curve = profile.curve;
  const auto bytes =
      static_cast<double>(profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes);
  while (curve.size() < kMostPoints) {
    Gap worst;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
      if (rate(curve[i + 1]) < kApart * kApart * rate(curve[i])) continue;
      const Gap gap = gap_above(curve, i, bytes);
      if (gap.relative > worst.relative) {
        worst = gap;
        where = i;
      }
    }
    if (worst.relative <= kTolerance) return;
    // Away from both ends: a point beside another one says little.
    const double corner = 1 / std::max(worst.inverse_rate, 1e-15);
    const base::Rate served(std::llround(
        std::clamp(corner, kApart * rate(curve[where]), rate(curve[where + 1]) / kApart)));
    measure(profile, program, served);
  }
}

void KernelBench::add_curve(models::KernelProfile& profile, const models::TileProgram& program,
                            base::Rate least) {
  std::vector<ProfilePoint>& curve = profile.curve;
  const std::int64_t bytes = profile.counts.hbm_read_bytes + profile.counts.hbm_write_bytes;
  const base::Rate most = curve.back().served;
  const double average = static_cast<double>(bytes) / base::to_seconds(profile.duration);
  for (double share : kFirstLimits) {
    const base::Rate served(std::llround(average * share));
    const double over = kSpread * static_cast<double>(least.count());
    if (served.count() > 0 && average * share >= over && served < most)
      measure(profile, program, served);
  }
  if (least.count() > 0 && least < most) measure(profile, program, least);
  find_knee(profile, program, average);
  // More cannot help: the knee carries the unlimited duration and ends the curve.
  curve.resize(knee(curve) + 1);
  curve.back().duration = profile.duration;
  refine(profile, program);
  // More cannot hurt: an accident of timing must not make the curve rise with the rate.
  for (std::size_t i = curve.size() - 1; i > 0; --i)
    curve[i - 1].duration = std::max(curve[i - 1].duration, curve[i].duration);
}

// One copy, while others run again and again; it starts a little later, since no two cores stay in
// step for long.
void KernelBench::measure_copies(models::KernelProfile& profile,
                                 const models::TileProgram& program) {
  const std::int64_t one_run = profile.instructions;
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  profile.copies = chip_->cores_per_stack() / cores;
  if (profile.copies < 2) {
    profile.copies = 0;
    return;
  }
  context_->restart();
  cluster_.load(program, base::Rate(0));
  base::Time measured;
  const std::function<void(std::int64_t)> run_on = [&](std::int64_t core) {
    cluster_.start(core, program, [&, core] {
      if (measured.count() == 0) run_on(core);
    });
    profile.instructions += one_run;
  };
  for (std::int64_t c = 0; c + 1 < profile.copies; ++c) run_on(c * cores);
  const base::Time start(profile.duration.count() / kOffset);
  sc_core::sc_start(modules::to_sc(start));
  cluster_.start((profile.copies - 1) * cores, program, [&] { measured = context_->now() - start; });
  sc_core::sc_start();
  TRN3SIM_CHECK(measured.count() > 0, "copies of a kernel have not ended:\n" + cluster_.waiting());
  profile.shared = std::max(profile.duration, measured);
}

models::AheadLoads KernelBench::loads_ahead(const models::TileProgram& program,
                                            base::Time duration) {
  const bool weights = std::any_of(program.operands.begin(), program.operands.end(),
                                   [](const models::Operand& o) { return o.weight; });
  if (!weights) return {};
  context_->restart();
  cluster_.load(program, base::Rate(0), models::Ahead::Weights);
  cluster_.arm({});
  sc_core::sc_start();
  const modules::StackCluster::Loaded loaded = cluster_.loaded_ahead();
  models::AheadLoads ahead;
  std::int64_t most = 0;
  for (std::int64_t bytes : loaded.bytes) {
    ahead.bytes += base::Bytes(bytes);
    most = std::max(most, bytes);
  }
  ahead.duration = loaded.last;
  ahead.sbuf_bytes_per_partition =
      static_cast<std::int64_t>(base::ceil_div(most, chip_->sbuf.partitions));
  if (ahead.bytes.count() == 0 || ahead.duration.count() * kWorthwhile < duration.count()) return {};
  cluster_.release();
  sc_core::sc_start();
  const base::Time rest = cluster_.result().duration;
  if (rest >= duration) return {};
  ahead.saves = duration - rest;
  return ahead;
}

modules::ClusterRun KernelBench::run_beside_limiter(models::KernelProfile& profile,
                                                    const models::TileProgram& program, bool hot) {
  context_->restart();
  cluster_.load(program, base::Rate(0));
  if (hot)
    cluster_.warm_up();
  else
    cluster_.release_limiters();
  cluster_.arm({});
  sc_core::sc_start();
  profile.instructions += cluster_.result().instructions;
  return cluster_.result();
}

// The limiter costs hardly more than what passes on the array take longer (loads are behind them).
// Where that is little of the kernel, it stands for the cost, and no run without a limiter is
// needed. A hot entry saves at most the time that a ramp costs, (1 - start share) / 2 of it.
void KernelBench::measure_limiter(models::KernelProfile& profile,
                                  const models::TileProgram& program,
                                  const modules::ClusterRun& cold) {
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  const config::ThrottleSpec& limiter = chip_->tensor.throttle;
  models::TensorEntry& e = profile.tensor;
  if (cold.limiter_age.count() == 0) return;
  e.head = cold.first_tensor;
  e.tail = cold.duration - cold.last_tensor;
  e.age = cold.limiter_age;
  e.idle = cold.limiter_idle;
  e.passes = e.cost = e.active = base::Time(cold.limited.count() / cores);
  if (e.passes.count() == 0) return;
  if (e.passes.count() * kLittle > profile.duration.count()) {
    const modules::ClusterRun free = run_beside_limiter(profile, program, false);
    e.cost = std::max(cold.duration - free.duration, base::Time(0));
    e.active = std::max(cold.compute_active - free.compute_active, base::Time(0));
  }
  if (profile.duration.count() > kManyRamps * limiter.ramp.count()) return;
  const modules::ClusterRun hot = run_beside_limiter(profile, program, true);
  const base::Time ramp(
      std::llround((1 - limiter.start_share) / 2 * static_cast<double>(limiter.ramp.count())));
  e.passes_less = std::max(base::Time(0), e.passes - base::Time(hot.limited.count() / cores));
  e.saves = std::clamp(cold.duration - hot.duration, base::Time(0), std::min(ramp, e.cost));
}

// Bytes that cost the DMA engines more than full packets get less data out of a grant.
base::Rate KernelBench::least_data_rate(const models::KernelProfile& p, std::int64_t cores,
                                        base::Rate least) const {
  const std::int64_t bytes = p.counts.hbm_read_bytes + p.counts.hbm_write_bytes;
  const std::int64_t engines = chip_->dma.plateau_rate.count() * chip_->dma.engines * cores;
  const double packets = static_cast<double>(bytes) / static_cast<double>(engines);
  const double share = std::min(1.0, packets / base::to_seconds(p.dma_busy));
  return base::Rate(std::llround(static_cast<double>(least.count()) * share));
}

models::KernelProfile KernelBench::profile(const models::TileProgram& program, base::Rate least) {
  const modules::ClusterRun r = run(program, base::Rate(0));
  const auto cores = static_cast<std::int64_t>(program.cores.size());
  models::KernelProfile p;
  p.duration = r.duration;
  p.lead_in = r.first_compute;
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
  p.sbuf_bytes_per_partition = program.sbuf_bytes_per_partition;
  if (p.counts.dma_bytes > 0) measure_copies(p, program);
  measure_limiter(p, program, r);
  p.ahead = loads_ahead(program, p.duration);
  p.curve.push_back({limit(program.cores.size()), p.duration});
  if (p.counts.dma_bytes > 0) add_curve(p, program, least_data_rate(p, cores, least));
  return p;
}

}  // namespace trn3sim::sim
