// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Elaborates the machine of one simulation: stacks, links, and the modules and runner of each rank.
#pragma once

#include <memory>
#include <vector>

#include "trn3sim/modules/cc_core.hpp"
#include "trn3sim/modules/detailed_chip.hpp"
#include "trn3sim/modules/detailed_player.hpp"
#include "trn3sim/modules/hbm_share.hpp"
#include "trn3sim/modules/host_port.hpp"
#include "trn3sim/modules/kernel_player.hpp"
#include "trn3sim/modules/link.hpp"
#include "trn3sim/modules/transfer_join.hpp"

#include "loop_skipper.hpp"
#include "machine_state.hpp"
#include "rank_runner.hpp"

namespace trn3sim::sim {

class Machine {
 public:
  // Makes all modules; must happen before the first sc_start. `run.shuffle` permutes the order of
  // construction, which must change nothing.
  Machine(const config::RunSpec& run, const topology::Graph& graph, const trace::Program& program,
          const compile::Plan& plan);

  [[nodiscard]] MachineState& state() { return state_; }
  [[nodiscard]] const MachineState& state() const { return state_; }
  // Runs the program from time zero to the end. Throws base::UserError on a deadlock.
  void run();

  [[nodiscard]] const std::vector<std::unique_ptr<RankRunner>>& ranks() const { return runners_; }
  [[nodiscard]] const modules::Fabric& fabric() const { return *fabric_; }
  [[nodiscard]] modules::Fabric& fabric() { return *fabric_; }
  [[nodiscard]] const modules::CcCore& cc(std::size_t rank) const { return *cc_cores_[rank]; }
  [[nodiscard]] modules::CcCore& cc(std::size_t rank) { return *cc_cores_[rank]; }
  [[nodiscard]] RankRunner& runner(std::size_t rank) { return *runners_[rank]; }
  [[nodiscard]] modules::HbmShare& share(std::size_t stack) { return *shares_[stack]; }
  [[nodiscard]] base::Rate stack_capacity() const { return stack_capacity_; }
  // Activations of SystemC processes by shares and links.
  [[nodiscard]] std::int64_t events() const;

 private:
  void prepare_tables();
  void prepare_opaque();
  void prepare_weights();
  [[nodiscard]] base::Rate group_engines() const;
  void make_shares(const std::vector<std::size_t>& order);
  void make_stack_units(std::size_t rank);
  void make_ranks(const std::vector<std::size_t>& order);
  void make_host_links();

  MachineState state_;
  base::Rate stack_capacity_;
  // One of the two for each chip.
  std::vector<std::unique_ptr<modules::HbmShare>> shares_;        // by chip x stacks + stack
  std::vector<std::unique_ptr<modules::DetailedChip>> detailed_;  // by chip
  modules::TransferJoin join_;
  std::unique_ptr<modules::Fabric> fabric_;
  std::vector<std::unique_ptr<RankRunner>> runners_;
  std::vector<std::unique_ptr<modules::ComputeUnit>> players_;
  std::vector<std::unique_ptr<modules::CcCore>> cc_cores_;
  std::vector<std::unique_ptr<modules::HostPort>> hosts_;
  std::unique_ptr<LoopSkipper> skipper_;
};

// 0 .. n-1, permuted by a seed (0: in order). Deterministic on every host.
std::vector<std::size_t> construction_order(std::size_t n, std::uint64_t seed);

}  // namespace trn3sim::sim
