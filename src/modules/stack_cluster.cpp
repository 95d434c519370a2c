// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/stack_cluster.hpp"

#include <utility>

#include "trn3sim/base/error.hpp"

#include "stack_cluster_impl.hpp"
#include <fmt/format.h>

namespace trn3sim::modules {

StackCluster::StackCluster(const sc_core::sc_module_name& name, const config::ChipSpec& chip,
                           Context& context, bool reverse)
    : sc_module(name), impl_(std::make_unique<Impl>(chip, context, reverse)) {
  SC_HAS_PROCESS(StackCluster);
  SC_METHOD(end_run);
  sensitive << impl_->end_event;
  dont_initialize();
}

StackCluster::~StackCluster() = default;

void StackCluster::load(const models::TileProgram& program, base::Rate served_cap,
                        models::Ahead ahead) {
  impl_->load(program, served_cap, ahead);
}

StackCluster::Loaded StackCluster::loaded_ahead() const {
  const Impl::Job& job = impl_->jobs[0];
  TRN3SIM_CHECK(impl_->measuring && job.held, "nothing is loaded ahead");
  return {job.loaded, job.last_completion};
}

void StackCluster::release() {
  TRN3SIM_CHECK(impl_->measuring && impl_->jobs[0].held, "nothing was held back");
  impl_->release(0);
}

void StackCluster::warm_up() {
  const Impl::Job& job = impl_->jobs[0];
  TRN3SIM_CHECK(impl_->measuring && !job.active, "nothing is loaded");
  for (Core* core : job.cores) core->stream(kTensor).limiter().warm_up();
}

void StackCluster::release_limiters() {
  for (Core* core : impl_->jobs[0].cores) core->stream(kTensor).limiter().release();
}

void StackCluster::arm(std::function<void()> done) {
  impl_->arm(std::move(done));
}

void StackCluster::start(std::int64_t first_core, const models::TileProgram& program,
                         std::function<void()> done) {
  impl_->launch(static_cast<std::size_t>(first_core), program, models::Ahead::Everything,
                std::move(done));
}

void StackCluster::prefetch(std::int64_t first_core, const models::TileProgram& program,
                            models::Ahead ahead) {
  impl_->launch(static_cast<std::size_t>(first_core), program, ahead, {});
}

base::Time StackCluster::throttled(std::int64_t first_core) const {
  return impl_->limiters[static_cast<std::size_t>(first_core)].cost;
}

void StackCluster::inject(const Traffic& traffic, TrafficEnd& end, std::int32_t id) {
  impl_->inject(traffic, end, id);
}

void StackCluster::end_run() {
  impl_->end_due();
}

bool StackCluster::finished() const {
  return impl_->finished;
}

std::string StackCluster::waiting() const {
  std::string text;
  for (const Impl::Job& job : impl_->jobs)
    if (job.active)
      for (const Core* core : job.cores) text += core->waiting();
  if (text.empty() && !impl_->dma->group().idle()) text = "DMA has transfers in flight\n";
  return text;
}

std::vector<models::EngineWait> StackCluster::waits() const {
  std::vector<models::EngineWait> out;
  const Impl::Job& job = impl_->jobs[0];
  for (std::size_t c = 0; c < job.cores.size(); ++c)
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      const models::EngineStream& stream = std::as_const(*job.cores[c]).stream(e);
      for (std::size_t s = 0; s < stream.stalls().size(); ++s)
        if (stream.stalls()[s] > 0)
          out.push_back({c, e, s, stream.edges().edge(stream.stalls()[s])});
    }
  return out;
}

void StackCluster::record(std::size_t limit) {
  for (auto& core : impl_->cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) core->stream(e).record(limit);
  impl_->dma->record(limit);
}

std::vector<models::Activity> StackCluster::activity() const {
  std::vector<models::Activity> out;
  const Impl::Job& job = impl_->jobs[0];
  for (std::size_t c = 0; c < job.cores.size(); ++c)
    for (std::size_t e = 0; e < models::kEngines; ++e) {
      const models::EngineStream& stream = std::as_const(*job.cores[c]).stream(e);
      for (const models::InstructionRecord& r : stream.records())
        out.push_back({c, static_cast<std::int32_t>(e), r.op, r.dma, stream.edges().edge(r.start),
                       stream.edges().edge(r.end)});
    }
  for (const models::TransferRecord& r : impl_->dma->group().records())
    out.push_back({static_cast<std::size_t>(r.core), -1, models::Opcode::DmaStart, r.transfer,
                   r.begin, r.end});
  return out;
}

std::int64_t StackCluster::unrecorded() const {
  std::int64_t count = impl_->dma->group().unrecorded();
  for (const Core* core : impl_->jobs[0].cores)
    for (std::size_t e = 0; e < models::kEngines; ++e) count += core->stream(e).unrecorded();
  return count;
}

ClusterRun StackCluster::result() const {
  TRN3SIM_CHECK(impl_->finished,
                fmt::format("{}: the tile program has not ended; blocked:\n{}", name(), waiting()));
  return impl_->run;
}

}  // namespace trn3sim::modules
