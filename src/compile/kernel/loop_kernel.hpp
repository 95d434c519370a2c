// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The streams of one core for a GEMM with an explicit loop nest. Nothing is rolled up: every matmul
// is two instructions of TensorE, in the order of the nest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compile/kernel/gemm_mapping.hpp"
#include "compile/kernel/loop_nest.hpp"
#include "compile/kernel/program_builder.hpp"

namespace trn3sim::compile {

// Throws base::UserError naming file and key for a mapping that the kernel or the chip does not
// take.
models::TileProgram compile_loops(const KernelSpec& spec, const config::ChipSpec& chip,
                                  const config::MappingSpec& mapping);
std::string describe_loops(const KernelSpec& spec, const config::ChipSpec& chip,
                           const config::MappingSpec& mapping);

// SBUF bytes per partition of a full transfer.
std::int64_t transfer_bytes(const GemmOperand& operand, const config::OperandMapping& map,
                            std::int64_t pack);

class LoopCore {
 public:
  LoopCore(const KernelSpec& spec, const config::ChipSpec& chip, const config::LoopMapping& map,
           models::TileProgram& program, models::CoreProgram& core);

  void write(const GemmShape& shape);

 private:
  using Engine = models::Engine;
  using Instruction = models::Instruction;

  // An operand on its way to the array.
  struct Side {
    RegionKind kind = kLoadA;
    std::size_t free = kM;  // its free dimension
    GemmOperand operand;
    const config::OperandMapping* map = nullptr;
    LoadPlan plan;
    std::int64_t tokens = 1;                // of `room` that a transfer takes
    std::vector<Semaphore> loaded;          // by ring
    std::int64_t started = 0, awaited = 0;  // transfers so far
    Semaphore room;                         // for what loads fill
    Semaphore ready, ready_room;            // what the array reads, if it is transposed in between
  };

  void make_semaphores();
  [[nodiscard]] std::int64_t most_squares(const Side& side) const;
  [[nodiscard]] std::int64_t squares(const Side& side, std::size_t matmul) const;
  void share_pool();
  void loads();
  void load_region(Side& side, std::size_t matmul);
  // Adds the waits for the next `count` transfers: of the first ring to the instruction, of the
  // others to ones before it.
  void wait_for_loads(Side& side, std::int64_t count, Instruction& instruction);
  void matmuls();
  void transpose_tiles(std::size_t matmul);
  void multiply(std::size_t matmul);
  void copy_transposed(std::size_t matmul);
  void evict();
  void evict_tile(const Accumulation& tile, std::size_t path, bool opens_store);
  void store();
  [[nodiscard]] std::size_t path_of(std::size_t tile) const { return paths_ == 1 ? 0 : tile % 2; }
  [[nodiscard]] Engine evictor(std::size_t path) const;

  const KernelSpec& spec_;
  const config::ChipSpec& chip_;
  const config::LoopMapping& map_;
  CoreBuilder build_;
  std::int64_t pack_;
  bool stationary_a_;
  std::array<Side, 2> sides_;
  LoopNest nest_;
  std::vector<Accumulation> tiles_;
  std::vector<std::int32_t> opens_, closes_;  // per matmul: the tile that it begins and ends, or -1
  std::size_t paths_ = 1;                     // of eviction
  std::array<Semaphore, 2> psum_full_, psum_free_, out_full_, out_free_;
  Semaphore transposed_, transposed_free_;
};

}  // namespace trn3sim::compile
