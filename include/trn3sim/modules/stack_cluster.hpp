// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One HBM stack with the NeuronCores that share it, in full detail: engines, semaphores, DMA
// engines and the HBM controller. The same module is the bench that profiles kernels and a quarter
// of a detailed chip.
//
// A bench resets the cluster and runs one program: load(), arm(), result(). On a detailed chip the
// stack's state continues from program to program: start() runs a program on some of the cores,
// prefetch() loads the weights of the next one in the shadow of the running one, and inject() adds
// the traffic of messages and collectives. The limiter of TensorE belongs to the core: its state goes
// from program to program. Not modelled on a detailed chip: whether both programs'
// tiles fit in SBUF together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <systemc>

#include "trn3sim/config/chip_spec.hpp"
#include "trn3sim/models/cluster_run.hpp"
#include "trn3sim/models/instruction.hpp"
#include "trn3sim/modules/context.hpp"
#include "trn3sim/modules/stack_traffic.hpp"

namespace trn3sim::modules {

using models::ClusterRun;

class StackCluster : public sc_core::sc_module, public StackTraffic {
 public:
  // `reverse`: construct the parts in reverse order (for the tests that results do not depend on
  // it).
  StackCluster(const sc_core::sc_module_name& name, const config::ChipSpec& chip, Context& context,
               bool reverse = false);
  ~StackCluster() override;

  // Resets every model to its canonical state and loads a program; `served_cap` limits what DMA and
  // HBM together grant (0: no limit); with a limit the HBM stack is replaced by it and its idle
  // latency. The program must outlive the run.
  // With an `ahead` other than Everything, arm() begins only such loads, until release().
  void load(const models::TileProgram& program, base::Rate served_cap,
            models::Ahead ahead = models::Ahead::Everything);
  // The loaded program finds the limiter of TensorE released, whenever it begins to multiply; or
  // never meets it.
  void warm_up();
  void release_limiters();
  // Starts the loaded program now. `done` is called once, at its end.
  void arm(std::function<void()> done);
  // What has been loaded ahead, by the bytes of each core.
  struct Loaded {
    std::vector<std::int64_t> bytes;
    base::Time last;  // end of the last load
  };
  [[nodiscard]] Loaded loaded_ahead() const;
  // Lets the loaded program go on now; the times of its result are since now.
  void release();
  // Valid after `done`. Throws base::InternalError if the program has not finished (deadlock), with
  // who waits for what.
  [[nodiscard]] ClusterRun result() const;
  [[nodiscard]] bool finished() const;
  // Of the program that ran alone: what its engines waited for, by core, engine and semaphore.
  [[nodiscard]] std::vector<models::EngineWait> waits() const;
  // Keeps the first `limit` instructions of each engine and as many transfers of the programs loaded
  // from now on; 0: none.
  void record(std::size_t limit);
  // By core and engine, then the transfers in the order of their ends.
  [[nodiscard]] std::vector<models::Activity> activity() const;
  [[nodiscard]] std::int64_t unrecorded() const;
  // Who waits for what, for deadlock reports.
  [[nodiscard]] std::string waiting() const;

  // Detailed chips: starts a program now on the cores from `first_core`, which run none; `done` is
  // called at its end. If it was prefetched there, it goes on.
  void start(std::int64_t first_core, const models::TileProgram& program,
             std::function<void()> done);
  // Begins loads of the program that start() will be given next on these cores.
  void prefetch(std::int64_t first_core, const models::TileProgram& program, models::Ahead ahead);
  // What the limiter of TensorE cost the last program that ended there: longer passes on the array,
  // mean over its cores.
  [[nodiscard]] base::Time throttled(std::int64_t first_core) const;
  void inject(const Traffic& traffic, TrafficEnd& end, std::int32_t id) override;

 private:
  void end_run();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trn3sim::modules
