// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// The streams of one core for a GEMM: SyncE loads, TensorE multiplies, ScalarE and VectorE evict,
// GpSimdE starts the stores (so that a store that waits does not hold up loads).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compile/kernel/gemm_blocks.hpp"
#include "compile/kernel/gemm_mapping.hpp"
#include "compile/kernel/gemm_prepare.hpp"
#include "compile/kernel/program_builder.hpp"

namespace trn3sim::compile {

class GemmCore {
 public:
  GemmCore(const KernelSpec& spec, const config::ChipSpec& chip, const GemmMapping& map,
           models::TileProgram& program, models::CoreProgram& core)
      : spec_(spec), chip_(chip), map_(map), eviction_(eviction_of(spec)), build_(program, core) {
    pack_ = contraction_pack(spec, chip);
    outer_operand_ = operand_of(spec, map.stationary_a == map.outer_stationary);
    inner_operand_ = operand_of(spec, map.stationary_a != map.outer_stationary);
  }

  void write(const GemmShape& shape);

 private:
  enum Queue : std::int16_t { kOuterQueue, kInnerQueue, kExtraQueue, kStoreQueue };
  enum OperandIndex : std::int32_t { kA, kB, kC, kFirstExtra };
  using DmaTransfer = models::DmaTransfer;
  using Engine = models::Engine;
  using Instruction = models::Instruction;
  using Opcode = models::Opcode;
  using Space = models::Space;

  [[nodiscard]] bool prepared() const {
    return outer_operand_.prepared() || inner_operand_.prepared();
  }
  // While a block is multiplied, the operands of the next one are prepared: see gemm_prepare.hpp.
  void write_prepared(std::int64_t batch);
  void prepare_tensor(const std::vector<TransposeGroup>& groups);
  void prepare_scalar(const std::vector<TransposeGroup>& groups);
  void prepare_vector(const std::vector<PreparePart>& parts);
  void evict_rows(Engine engine, const SubBlock& sub);

  [[nodiscard]] std::int64_t tiles_of(const SubBlock& sub, std::size_t path) const;
  void make_semaphores();
  [[nodiscard]] DmaTransfer panel(bool outer, std::int64_t k, std::int64_t width) const;
  void load(const Block& b);
  void load_extras(const Row& row);
  [[nodiscard]] Instruction array_op(Opcode op, std::int64_t rows, std::int64_t columns,
                                     std::int64_t elements) const;
  // `groups`: transposes per chunk, between the multiplies.
  void multiply(const SubBlock& sub, const std::vector<std::vector<TransposeGroup>>& groups);
  void multiply_chunk(const SubBlock& sub, std::int64_t k_rows, bool done,
                      const std::vector<TransposeGroup>& groups);
  void multiply_tiles(const SubBlock& sub, const Row& row, std::int64_t k_rows, bool done,
                      bool free);
  [[nodiscard]] Instruction evict(Opcode op, Space source, const Row& row,
                                  std::int64_t width) const;
  void copy_out(Engine engine, std::size_t path, const Row& row);
  void stage_scalar(const Row& row);
  void stage_vector(const Row& row);
  [[nodiscard]] std::int64_t pass_width(std::size_t pass, std::int64_t width) const;
  void store(const SubBlock& sub);
  void store_rows(const std::vector<Row>& rows);

  const KernelSpec& spec_;
  const config::ChipSpec& chip_;
  const GemmMapping& map_;
  Eviction eviction_;
  CoreBuilder build_;
  std::int64_t pack_ = 1;
  GemmOperand outer_operand_, inner_operand_;
  Sizes chunks_;  // of the contraction
  std::vector<std::vector<Block>> outer_steps_;
  Semaphore outer_full_, outer_free_, inner_full_, inner_free_, mid_full_, extra_full_, extra_free_;
  std::array<Semaphore, 2> psum_full_, psum_free_, out_full_, out_free_;
  std::array<Semaphore, 2> raw_full_, raw_free_, middle_full_, middle_free_;  // inner, outer
  Semaphore transposed_full_, transposed_free_;
};

}  // namespace trn3sim::compile
