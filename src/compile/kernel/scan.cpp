// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Selective scan (Mamba), as in the AWS Neuron tutorial "Fused Mamba". Tiles of 128 channels and up
// to 512 steps; per tile and state:
//   TensorE   B and C of the state, broadcast to all partitions (a product with ones)
//   ScalarE   exp(A delta)
//   VectorE   (delta u) B, the scan, its product with C, the sum over the states
// VectorE binds: its operands in PSUM cost half of those in SBUF, and its last three instructions
// each need the one before.
#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/attention_plan.hpp"
#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using base::DType;
using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kSlots = 2;
constexpr std::int64_t kBroadcasts = 3;  // PSUM banks of B, and of C
enum OperandIndex : std::int32_t { kDelta, kU, kA, kB, kC, kY };
enum Queue : std::int16_t { kChannelQueue, kInputQueue, kStateQueue, kStoreQueue };

struct ScanPlan {
  std::int64_t width = 0;  // steps of a tile
  std::int64_t sbuf = 0;
};

ScanPlan plan_of(const KernelSpec& spec, const config::ChipSpec& chip) {
  const std::int64_t element = base::element_bits(spec.in) / 8;
  constexpr std::int64_t kWide = 4;  // bytes of an intermediate
  ScanPlan plan;
  // One bank holds a tile.
  for (plan.width = chip.psum.bank_bytes_per_partition.count() / kWide;; plan.width /= 2) {
    const std::int64_t inputs = 2 * element, states = 2 * spec.n * element;
    const std::int64_t between = (kSlots + 4) * kWide, results = kSlots * kWide;
    plan.sbuf =
        plan.width * (kSlots * (inputs + states) + between + results) + kSlots * spec.n * kWide;
    if (plan.sbuf <= chip.sbuf.usable_per_partition.count()) return plan;
    if (plan.width <= 32)
      throw base::UserError(
          spec.label(), fmt::format("{} states do not fit into {} SBUF bytes per partition", spec.n,
                                    chip.sbuf.usable_per_partition.count()));
  }
}

// Equal tiles and what is left.
struct Run {
  std::int64_t size, count;
};
std::vector<Run> runs_of(std::int64_t total, std::int64_t tile) {
  std::vector<Run> runs;
  if (total >= tile) runs.push_back({tile, total / tile});
  if (total % tile > 0) runs.push_back({total % tile, 1});
  return runs;
}

class ScanCore {
 public:
  ScanCore(const KernelSpec& spec, const ScanPlan& plan, models::TileProgram& program,
           models::CoreProgram& core)
      : spec_(spec), plan_(plan), build_(program, core) {}

  void write(std::int64_t channels) {
    make_semaphores();
    Instruction ones = lane(Opcode::Iota, Space::Sbuf, spec_.in, 1, kLanes);
    add_signal(ones, ones_full_);
    build_.emit(Engine::Gpsimd, ones);
    Instruction wait;
    add_wait(wait, ones_full_);
    build_.emit(Engine::Tensor, wait);
    for (const Engine engine :
         {Engine::Sync, Engine::Tensor, Engine::Scalar, Engine::Vector, Engine::Gpsimd})
      for (const Run& tiles : runs_of(channels, kLanes))
        build_.loop(engine, tiles.count * spec_.batch, [&] { channel_tile(engine, tiles.size); });
  }

 private:
  void make_semaphores() {
    for (Semaphore* s : {&ones_full_, &a_full_, &delta_scalar_, &delta_vector_, &u_full_, &b_full_,
                         &c_full_, &b_wide_, &c_wide_, &decay_full_, &y_full_})
      *s = build_.semaphore();
    for (Semaphore* s : {&a_free_, &slot_free_, &decay_free_, &y_free_})
      *s = build_.semaphore(kSlots);
    b_wide_free_ = build_.semaphore(kBroadcasts);
    c_wide_free_ = build_.semaphore(kBroadcasts);
  }

  void channel_tile(Engine engine, std::int64_t rows) {
    if (engine == Engine::Sync)
      build_.start(engine, transfer(kA, kChannelQueue, rows, spec_.n, {a_full_}), {a_free_});
    if (engine == Engine::Scalar) {
      Instruction wait;
      add_wait(wait, a_full_);
      build_.emit(engine, wait);
    }
    for (const Run& steps : runs_of(spec_.k, plan_.width))
      build_.loop(engine, steps.count, [&] { tile(engine, rows, steps.size); });
    if (engine == Engine::Scalar) {
      Instruction done;
      add_signal(done, a_free_);
      build_.emit(engine, done);
    }
  }

  void tile(Engine engine, std::int64_t rows, std::int64_t width) {
    switch (engine) {
      case Engine::Sync:
        return loads(rows, width);
      case Engine::Tensor:
        return broadcasts(rows, width);
      case Engine::Scalar:
        return exponentials(rows, width);
      case Engine::Vector:
        return scans(rows, width);
      case Engine::Gpsimd:
        return build_.start(engine, transfer(kY, kStoreQueue, rows, width, {y_free_}), {y_full_});
    }
  }

  [[nodiscard]] DmaTransfer transfer(OperandIndex operand, Queue queue, std::int64_t rows,
                                     std::int64_t elements,
                                     const std::vector<Semaphore>& signals) const {
    DmaTransfer t;
    t.direction = operand == kY ? DmaDirection::SbufToHbm : DmaDirection::HbmToSbuf;
    t.operand = operand;
    t.queue = queue;
    t.rows = static_cast<std::int32_t>(rows);
    t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.in, elements));
    for (const Semaphore s : signals) add_signal(t, s);
    return t;
  }

  void loads(std::int64_t rows, std::int64_t width) {
    build_.start(Engine::Sync,
                 transfer(kDelta, kInputQueue, rows, width, {delta_scalar_, delta_vector_}),
                 {slot_free_});
    build_.start(Engine::Sync, transfer(kU, kInputQueue, rows, width, {u_full_}));
    build_.start(Engine::Sync, transfer(kB, kStateQueue, spec_.n, width, {b_full_}));
    build_.start(Engine::Sync, transfer(kC, kStateQueue, spec_.n, width, {c_full_}));
  }

  void broadcasts(std::int64_t rows, std::int64_t width) {
    Instruction ones = lane(Opcode::LoadStationary, Space::Sbuf, spec_.in, 1, rows);
    ones.columns = static_cast<std::int16_t>(rows);
    add_wait(ones, b_full_);
    add_wait(ones, c_full_);
    build_.emit(Engine::Tensor, ones);
    build_.loop(Engine::Tensor, spec_.n, [&] {
      for (const bool b : {true, false}) {
        Instruction wide = lane(Opcode::MultiplyMoving, Space::Sbuf, spec_.in, 1, width);
        wide.columns = static_cast<std::int16_t>(rows);
        wide.destination = Space::Psum;
        add_wait(wide, b ? b_wide_free_ : c_wide_free_);
        add_signal(wide, b ? b_wide_ : c_wide_);
        build_.emit(Engine::Tensor, wide);
      }
    });
  }

  void exponentials(std::int64_t rows, std::int64_t width) {
    Instruction wait;
    add_wait(wait, delta_scalar_);
    build_.emit(Engine::Scalar, wait);
    build_.loop(Engine::Scalar, spec_.n, [&] {
      Instruction decay = lane(Opcode::Activation, Space::Sbuf, spec_.in, rows, width);
      decay.transcendental = true;
      add_wait(decay, decay_free_);
      add_signal(decay, decay_full_);
      build_.emit(Engine::Scalar, decay);
    });
  }

  [[nodiscard]] Instruction product(Space other, std::int64_t rows, std::int64_t width) const {
    Instruction i = lane(Opcode::TensorTensor, other, spec_.in, rows, width);
    i.two_inputs_sbuf = other == Space::Sbuf;
    return i;
  }

  void scans(std::int64_t rows, std::int64_t width) {
    Instruction delta_u = product(Space::Sbuf, rows, width);
    add_wait(delta_u, delta_vector_);
    add_wait(delta_u, u_full_);
    add_wait(delta_u, y_free_);
    build_.emit(Engine::Vector, delta_u);
    build_.loop(Engine::Vector, spec_.n, [&] {
      Instruction input = product(Space::Psum, rows, width);
      add_wait(input, b_wide_);
      add_signal(input, b_wide_free_);
      Instruction scan = lane(Opcode::TensorTensorScan, Space::Sbuf, spec_.in, rows, width);
      scan.two_inputs_sbuf = scan.first_of_chain = true;
      add_wait(scan, decay_full_);
      add_signal(scan, decay_free_);
      Instruction output = product(Space::Psum, rows, width);
      output.first_of_chain = true;
      add_wait(output, c_wide_);
      add_signal(output, c_wide_free_);
      Instruction sum = product(Space::Sbuf, rows, width);
      sum.first_of_chain = true;
      for (const Instruction& i : {input, scan, output, sum}) build_.emit(Engine::Vector, i);
    });
    Instruction done;
    add_signal(done, slot_free_);
    add_signal(done, y_full_);
    build_.emit(Engine::Vector, done);
  }

  const KernelSpec& spec_;
  const ScanPlan& plan_;
  CoreBuilder build_;
  Semaphore ones_full_, a_full_, a_free_, slot_free_, delta_scalar_, delta_vector_, u_full_;
  Semaphore b_full_, c_full_, b_wide_, c_wide_, b_wide_free_, c_wide_free_;
  Semaphore decay_full_, decay_free_, y_full_, y_free_;
};

}  // namespace

models::TileProgram compile_scan(const KernelSpec& spec, const config::ChipSpec& chip) {
  const ScanPlan plan = plan_of(spec, chip);
  models::TileProgram program;
  const auto bytes = [&](std::int64_t elements) { return base::storage_bytes(spec.in, elements); };
  const std::int64_t steps = spec.batch * spec.k;
  program.operands = {{"delta", bytes(spec.m * steps), false}, {"u", bytes(spec.m * steps), false},
                      {"A", bytes(spec.m * spec.n), true},     {"B", bytes(spec.n * steps), false},
                      {"C", bytes(spec.n * steps), false},     {"y", bytes(spec.m * steps), false}};
  program.cores.resize(static_cast<std::size_t>(spec.cores));
  for (std::int64_t c = 0; c < spec.cores; ++c) {
    const std::int64_t channels = spec.m * (c + 1) / spec.cores - spec.m * c / spec.cores;
    if (channels > 0)
      ScanCore(spec, plan, program, program.cores[static_cast<std::size_t>(c)]).write(channels);
  }
  program.sbuf_bytes_per_partition = plan.sbuf;
  program.psum_banks = 2 * kBroadcasts;
  return program;
}

std::string describe_scan(const KernelSpec& spec, const config::ChipSpec& chip) {
  const ScanPlan plan = plan_of(spec, chip);
  return fmt::format(
      "{}: tiles of {} channels x {} steps, states in turn; B and C broadcast by TensorE, exp on "
      "ScalarE, scan on VectorE; SBUF {} of {} B per partition",
      spec.label(), kLanes, plan.width, plan.sbuf, chip.sbuf.usable_per_partition.count());
}

}  // namespace trn3sim::compile
