// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One engine's in-order instruction stream: runs ahead through its nodes until a token is missing.
// All times are integer cycles of the engine's clock; femtoseconds appear at semaphores and DMA.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trn3sim/models/clock.hpp"
#include "trn3sim/models/dma_group.hpp"
#include "trn3sim/models/semaphore_bank.hpp"
#include "trn3sim/models/tensor_pipeline.hpp"

namespace trn3sim::models {

struct CycleInterval {
  std::int64_t start, end;
};

// What a stream may do before release(): everything, transfers that load, those that load weights.
enum class Ahead : std::uint8_t { Everything, Loads, Weights };

// An instruction as it ran, for timelines.
struct InstructionRecord {
  Opcode op = Opcode::Nop;
  std::int32_t dma = -1;  // transfer that a DmaStart started
  std::int64_t start = 0, end = 0;  // cycles
};

class EngineStream {
 public:
  EngineStream(const config::ChipSpec& chip, Engine engine, std::int32_t core);

  // Until release() the stream stops before what `ahead` does not allow.
  void load(const TileProgram& program, const CoreProgram& core, Ahead ahead = Ahead::Everything);
  // The instructions left start at `at` or later.
  void release(base::Time at);

  // Runs until done, blocked or asking for a port. Appends DMA triggers; returns the bits
  // (1 << Engine) of the streams of this core that got the tokens they wait for.
  std::uint32_t run(SemaphoreBank& semaphores, std::vector<DmaTrigger>& triggers);

  // Ports (bits 1 << Port) that some instruction of the program uses. The stream asks for those in
  // `contested` before each of their uses, none after load().
  [[nodiscard]] std::uint8_t ports() const { return ports_; }
  void contest(std::uint8_t contested) { contested_ = contested; }
  // The next instruction has its tokens and asks for these ports since asked(); 0: it does not.
  [[nodiscard]] std::uint8_t asking() const { return asking_; }
  [[nodiscard]] base::Time asked() const { return edges_.edge(free_); }
  // It has the ports from `at` on; returns when it gives them back. Like run(), but for the rest.
  base::Time grant(base::Time at, SemaphoreBank& semaphores, std::vector<DmaTrigger>& triggers,
                   std::uint32_t& woken);
  // The next instruction, if one is left and it lacks tokens: who has to signal them; none has to
  // if it waits for release().
  struct Lacks {
    std::uint32_t engines = 0;  // bits 1 << Engine
    bool dma = false;
  };
  [[nodiscard]] Lacks lacks(const SemaphoreBank& semaphores) const;
  [[nodiscard]] base::Time dma_latency() const { return dma_latency_; }

  [[nodiscard]] bool done() const { return position_ == nodes_.size(); }
  // End of the last instruction, results visible.
  [[nodiscard]] base::Time end() const { return edges_.edge(end_); }
  [[nodiscard]] base::Time busy() const { return edges_.edge(busy_); }
  // Some instruction is under way: on TensorE loads too, and passes until their last result is in
  // PSUM. What a profiler shows as the engine's active time.
  [[nodiscard]] base::Time active() const { return edges_.edge(active_); }
  [[nodiscard]] std::int64_t instructions() const { return executed_; }
  // First and last compute instruction; kTimeMax and 0 if there is none.
  [[nodiscard]] base::Time first_compute() const {
    return first_compute_ < 0 ? base::kTimeMax : edges_.edge(first_compute_);
  }
  [[nodiscard]] base::Time last_compute() const { return edges_.edge(last_compute_); }
  // Of TensorE: its limiter in cycles of this program's clock, to hand over from the program before
  // and to the next; the time that its passes took longer because of it.
  [[nodiscard]] DidtLimiter& limiter() { return pipeline_.limiter(); }
  [[nodiscard]] const DidtLimiter& limiter() const { return pipeline_.limiter(); }
  // Goes on with the limiter of an earlier program, whose clock began `ago` before this one's
  // (negative: after it).
  void continue_limiter(const DidtLimiter& before, base::Time ago);
  [[nodiscard]] base::Time limited() const { return edges_.edge(pipeline_.limited()); }
  // No busy interval of the future starts before this; kTimeMax if there is none to come.
  [[nodiscard]] base::Time next_busy_bound() const {
    return computes_ && !done() ? edges_.edge(free_) : base::kTimeMax;
  }
  // Busy intervals in ascending order, merged where they touch; the owner may clear them.
  [[nodiscard]] std::vector<CycleInterval>& intervals() { return intervals_; }
  [[nodiscard]] const ClockEdges& edges() const { return edges_; }
  // Cycles by semaphore that the engine (of TensorE: the array) had nothing to do because a token was
  // late. Of several late tokens the last one counts.
  [[nodiscard]] const std::vector<std::int64_t>& stalls() const { return stalls_; }
  // Keeps the first `limit` instructions; what comes later is counted. 0: none.
  void record(std::size_t limit) { record_limit_ = limit; }
  [[nodiscard]] const std::vector<InstructionRecord>& records() const { return records_; }
  [[nodiscard]] std::int64_t unrecorded() const { return unrecorded_; }
  // "multiply_moving (node 12) waits for 2 of semaphore 3 (has 1, signalled by DMA)".
  [[nodiscard]] std::string waiting(const SemaphoreBank& semaphores) const;

 private:
  enum class Kind : std::uint8_t { Lane, Tensor, Dma, Nop };
  struct Op {
    std::int64_t cycles = 0;
    std::int64_t latency = 0;  // of its accesses, beside the next instruction
    Opcode op = Opcode::Nop;
    Kind kind = Kind::Nop;
    std::uint8_t waits = 0, signals = 0, ports = 0;
    Ahead ahead = Ahead::Everything;  // the narrowest that allows it
    std::int32_t dma = -1;
    std::array<SemaphoreWait, 3> wait{};
    std::array<SemaphoreSignal, 2> signal{};
  };
  struct Loop {
    std::uint32_t begin;
    std::int32_t left;
  };

  // The loop marks up to the next instruction.
  void enter_loops();
  // Takes the tokens of `op`; the cycle at which it may start.
  std::int64_t take(const Op& op, SemaphoreBank& semaphores);
  // Executes `op`, the next instruction, at `ready` or later; returns the streams woken.
  std::uint32_t execute(const Op& op, std::int64_t ready, SemaphoreBank& semaphores,
                        std::vector<DmaTrigger>& triggers);
  Op decode(const TileProgram& program, const Instruction& instruction) const;
  // Issues the instruction at `ready` or later; returns the cycle at which its results are visible.
  std::int64_t issue(const Op& op, std::int64_t ready);
  void occupy(std::int64_t start, std::int64_t end);
  void under_way(std::int64_t start, std::int64_t end);
  void note(const Op& op, std::int64_t start, std::int64_t end);

  const config::ChipSpec* chip_;
  Engine engine_;
  std::int32_t core_;
  ClockEdges edges_;
  std::int64_t engine_latency_;  // cycles
  base::Time dma_latency_;
  TensorPipeline pipeline_;
  std::vector<StreamNode> nodes_;  // Instruction nodes index ops_
  std::vector<Op> ops_;
  std::uint8_t ports_ = 0, contested_ = 0, asking_ = 0;
  bool computes_ = false;  // has compute instructions
  Ahead ahead_ = Ahead::Everything;
  std::vector<Loop> loops_;
  std::size_t position_ = 0;
  std::int64_t free_ = 0;  // cycle at which the engine can issue the next instruction
  std::int64_t end_ = 0, busy_ = 0, executed_ = 0;
  std::int64_t active_ = 0, active_until_ = 0;
  std::int64_t first_compute_ = -1, last_compute_ = 0;
  std::vector<CycleInterval> intervals_;
  std::vector<std::int64_t> stalls_;  // by semaphore
  std::size_t record_limit_ = 0;
  std::vector<InstructionRecord> records_;
  std::int64_t unrecorded_ = 0;
};

}  // namespace trn3sim::models
