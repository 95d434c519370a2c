// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/cluster_run.hpp"

#include <algorithm>

namespace trn3sim::models {

void ClusterRun::add(std::size_t engine, const EngineStream& stream, base::Time released) {
  engine_busy[engine] += stream.busy();
  engine_active[engine] += stream.active();
  instructions += stream.instructions();
  if (stream.first_compute() == base::kTimeMax) return;
  first_compute = std::min(first_compute, stream.first_compute() - released);
  last_compute = std::max(last_compute, stream.last_compute() - released);
  if (engine == static_cast<std::size_t>(Engine::Tensor)) add_tensor(stream, released);
}

void ClusterRun::add_tensor(const EngineStream& stream, base::Time released) {
  const base::Time first = stream.first_compute() - released;
  const DidtLimiter& limiter = stream.limiter();
  const base::Time age = stream.edges().edge(limiter.age());
  const bool other = last_tensor.count() > 0;
  first_tensor = other ? std::min(first_tensor, first) : first;
  limiter_age = other ? std::min(limiter_age, age) : age;
  last_tensor = std::max(last_tensor, stream.last_compute() - released);
  limiter_idle = std::max(limiter_idle, stream.edges().edge(limiter.idle()));
  limited += stream.limited();
}

void ClusterRun::end(base::Time took) {
  duration = took;
  if (first_compute == base::kTimeMax) first_compute = last_compute = duration;
}

}  // namespace trn3sim::models
