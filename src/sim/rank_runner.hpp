// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One rank: its sequencer, and the resources that run its ops. Keeps the rank's clock of time
// classes and its counts.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "trn3sim/modules/cc_core.hpp"
#include "trn3sim/modules/host_port.hpp"
#include "trn3sim/modules/compute_unit.hpp"
#include "trn3sim/sim/sequencer.hpp"

#include "machine_state.hpp"

namespace trn3sim::sim {

struct KernelCount {
  std::int64_t executions = 0;
  std::int64_t total_fs = 0;
  std::int64_t limited_fs = 0;  // longer passes on the array, mean over cores
};

struct LabelCount {
  std::int64_t instances = 0;  // counted by the lowest rank of each group
  std::int64_t total_fs = 0;   // own start to own end
  std::int64_t members = 0;
};

struct RankStats {
  std::array<std::int64_t, stats::kTimeClasses> class_fs{};
  std::vector<KernelCount> kernels;    // by Plan::kernels, opaque kernels at the end
  std::vector<std::int64_t> phase_fs;  // by SequencerTables::phases
  std::vector<LabelCount> labels;      // by Plan::labels
  std::int64_t compute_active_fs = 0;
  base::Time finished_at;
};

class RankRunner : public IssueSink, public modules::PlayerEnd, public modules::TransferEnd {
 public:
  RankRunner(MachineState& machine, std::int64_t rank);

  // The modules are made by the machine, which owns them.
  void attach(modules::ComputeUnit& player, modules::CcCore& cc, modules::HostPort& host);
  void start();

  void issue(std::int32_t queue, const Ticket& ticket) override;
  void loop_boundary(const LoopBoundary& boundary) override;
  void kernel_ended() override;
  void transfer_ended(std::int32_t queue) override;

  [[nodiscard]] const RankStats& stats() const { return stats_; }
  [[nodiscard]] const Sequencer& sequencer() const { return sequencer_; }
  // Closes the clock at the end of the step (other ranks may have run longer).
  void close(base::Time end);
  // State relative to now, for the detection of repetition. False if the rank is not alone with
  // its loop: a collective of a set outside `sets` is running.
  bool fingerprint(base::StateHash& hash, const LoopBoundary& loop, const std::vector<bool>& sets);
  // Goes on as if `iterations` of the loop and `delta` of time had passed.
  void jump(const LoopBoundary& loop, std::int64_t iterations, base::Time delta, base::Time chain);
  [[nodiscard]] Sequencer& sequencer() { return sequencer_; }
  template <class F>
  void visit_counters(F&& f) {
    sequencer_.visit_counters(f);
    for (std::int64_t& c : stats_.class_fs) f(c);
    for (std::int64_t& c : stats_.phase_fs) f(c);
    for (KernelCount& k : stats_.kernels) {
      f(k.executions);
      f(k.total_fs);
      f(k.limited_fs);
    }
    for (LabelCount& l : stats_.labels) {
      f(l.instances);
      f(l.total_fs);
      f(l.members);
    }
    f(stats_.compute_active_fs);
  }

  // What the rank is waiting for, for deadlock reports.
  [[nodiscard]] std::string waiting() const;

 private:
  struct Running {
    Ticket ticket;
    base::Time start;
    bool busy = false;
  };
  // Kernel executions that the running compute op still needs after the current one.
  struct Pieces {
    std::int32_t left = 0;
    std::int32_t last = -1;
    std::size_t kernel = 0;  // running now
    base::Time start;
  };
  void settle();
  void enter_phase(std::int32_t phase);
  void settle_phase();
  void complete(std::int32_t queue);
  void issue_kernel(const Ticket& ticket);
  static base::Time overlap(const models::KernelProfile& p);
  [[nodiscard]] base::Time least_time(const models::KernelProfile& profile, bool first_piece) const;
  [[nodiscard]] modules::KernelWork work_of(std::size_t kernel) const;
  void prefetch_next();
  void issue_collective(std::int32_t queue, const Ticket& ticket);
  void issue_message(std::int32_t queue, const Ticket& ticket, const trace::PointToPoint& op);
  void issue_host(std::int32_t queue, const Ticket& ticket);
  void end_collective(const Ticket& ticket, base::Time start);
  void play(std::size_t kernel, base::Time hidden);
  void book_kernel();
  void record(std::int32_t queue, base::Time start, std::int64_t kernel) const;
  [[nodiscard]] std::size_t kernel_of(const Ticket& ticket) const;
  [[nodiscard]] const models::KernelProfile& profile(std::size_t kernel) const;
  [[nodiscard]] const trace::Op& op_of(const Ticket& ticket) const;
  [[nodiscard]] const compile::OpPlan& plan_of(const Ticket& ticket) const;

  MachineState& machine_;
  std::int64_t rank_;
  Sequencer sequencer_;
  modules::ComputeUnit* player_ = nullptr;
  modules::CcCore* cc_ = nullptr;
  modules::HostPort* host_ = nullptr;
  std::vector<Running> running_;  // by queue
  Pieces pieces_;
  bool kernel_running_ = false;
  std::int64_t collectives_ = 0, host_ops_ = 0;  // running now
  base::Time settled_;
  std::int32_t phase_ = 0;
  base::Time phase_since_;
  RankStats stats_;
};

}  // namespace trn3sim::sim
