// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Flash attention, forward. Per tile of 128 queries and up to 512 keys:
//   TensorE   scores = Q K^T
//   VectorE   row maximum of the scores, new running maximum, (part of) the exponentials
//   ScalarE   (part of) the exponentials with row sums; or, if VectorE makes all exponentials, a
//   copy
//             of the scores to SBUF with the row maximum (two-stage activation)
//   TensorE   transposes of the probabilities, 128 keys at a time
//   ScalarE, VectorE or GpSimdE   copy of the transposes from PSUM to SBUF
//   TensorE   output += P V
//   VectorE or GpSimdE   rescale of the running output
// TensorE makes scores `ahead` tiles ahead, so the engines overlap. The order of its stream makes
// most buffer hand-backs implicit: scores f + ahead are issued after the transposes of f, which
// waited for the exponentials of f, so `ahead` PSUM banks and probability buffers need no
// `free` semaphore; the transposes of f + 1 follow P V of f - 1, which waited for the copy of f -
// 1, so two banks and two buffers do. Keys lie in HBM as [d, skv], queries as [d, sq], values and
// outputs as [s, d], by head.
#include <algorithm>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/attention_forward_plan.hpp"
#include "compile/kernel/attention_plan.hpp"
#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;
using models::Space;

constexpr std::int64_t kLanes = 128;
// Tiles between scores and, on VectorE, the copy and the rescale of a tile. TensorE waits for both
// with scores `ahead` tiles further, so one accumulator bounds them to 1 and 2.
constexpr std::int64_t copy_lag(bool double_accumulators) {
  return double_accumulators ? 2 : 1;
}
constexpr std::int64_t rescale_lag(bool double_accumulators) {
  return double_accumulators ? 4 : 2;
}
// Stores on ScalarE: VectorE must not wait for one that comes after work for its next step.
constexpr std::int64_t store_lag(bool double_accumulators) {
  return rescale_lag(double_accumulators) + (double_accumulators ? 2 : 3);
}
enum Queue : std::int16_t { kQueryQueue, kKeyQueue, kValueQueue, kStoreQueue };
enum OperandIndex : std::int32_t { kQ, kK, kV, kO, kStats };

using Item = ForwardItem;

class ForwardCore {
 public:
  ForwardCore(const KernelSpec& spec, const config::ChipSpec& chip, const ForwardPlan& plan,
              const AttentionShare& share, models::TileProgram& program, models::CoreProgram& core)
      : spec_(spec), chip_(chip), plan_(plan), share_(share), build_(program, core) {
    for (std::int64_t k = 0; k < share.keys; k += kKeyChunk) {
      key_chunks_.push_back(std::min(kKeyChunk, share.keys - k));
    }
    for (std::size_t t = 0; t < share.tiles.size(); t += kQueryChunk) {
      std::int64_t rows = 0;
      for (std::size_t i = t; i < std::min(share.tiles.size(), t + kQueryChunk); ++i) {
        rows += share.tiles[i].rows;
      }
      query_chunks_.push_back(rows);
    }
  }

  void write() {
    make_semaphores();
    for_each_run(share_.groups,
                 [&](std::int64_t heads, std::int64_t times) { group_run(heads, times); });
  }

 private:
  using Stage = std::function<void(const Item&)>;

  void make_semaphores() {
    const auto chunks = static_cast<std::int64_t>(key_chunks_.size());
    query_full_ = build_.semaphore();
    query_free_ = build_.semaphore(kQueryRing);
    key_full_ = build_.semaphore();
    key_free_ = build_.semaphore(plan_.key_buffers * chunks);
    value_full_ = build_.semaphore();
    value_free_ = build_.semaphore(plan_.key_buffers * chunks);
    scores_full_ = build_.semaphore();
    maximum_full_ = build_.semaphore();
    scalar_p_full_ = build_.semaphore();
    vector_p_full_ = build_.semaphore();
    transposed_full_ = build_.semaphore();
    copied_full_ = build_.semaphore();
    output_full_ = build_.semaphore();
    output_free_ = build_.semaphore(spec_.double_accumulators ? 2 : 1);
    result_full_ = build_.semaphore();
    result_free_ = build_.semaphore(kOutputs);
  }

  void group_run(std::int64_t heads, std::int64_t count) {
    const std::vector<Item> items = items_of(share_, plan_, heads);
    build_.loop(Engine::Sync, count, [&] { load(heads); });
    pipeline<Item, 3>(
        build_, Engine::Tensor, items, count, {plan_.ahead, 1, 0},
        {Stage([&](const Item& i) { scores(i); }), Stage([&](const Item& i) { transpose(i); }),
         Stage([&](const Item& i) { output(i); })});
    const Stage copy = [&](const Item& i) { copy_transposed(i); };
    const Stage none = [](const Item&) {};
    const bool vector_rescales = plan_.balance.rescaler == Engine::Vector;
    const auto copy_on = [&](Engine e) { return plan_.balance.copier == e ? copy : none; };
    const auto rescale_on = [&](Engine e) {
      return plan_.balance.rescaler == e ? Stage([this, e](const Item& i) { rescale(e, i); })
                                         : none;
    };
    const std::int64_t lag = vector_rescales ? -rescale_lag(spec_.double_accumulators) : 0;
    const std::int64_t vector_copy =
        plan_.balance.copier == Engine::Vector ? -copy_lag(spec_.double_accumulators) : 0;
    const std::int64_t scalar_copy = plan_.balance.copier == Engine::Scalar ? -1 : 0;
    // Copies and rescales of other tiles stand between VectorE's dependent steps.
    pipeline<Item, 4>(build_, Engine::Vector, items, count, {0, vector_copy, lag, 0},
                      {Stage([&](const Item& i) { row_maximum(i); }), copy_on(Engine::Vector),
                       rescale_on(Engine::Vector), Stage([&](const Item& i) { exponentials(i); })});
    pipeline<Item, 3>(build_, Engine::Scalar, items, count,
                      {0, scalar_copy, -store_lag(spec_.double_accumulators)},
                      {Stage([&](const Item& i) { scalar_scores(i); }), copy_on(Engine::Scalar),
                       Stage([&](const Item& i) { store(i); })});
    pipeline<Item, 2>(build_, Engine::Gpsimd, items, count, {0, vector_rescales ? 0 : -2},
                      {copy_on(Engine::Gpsimd), rescale_on(Engine::Gpsimd)});
  }

  void load(std::int64_t heads) {
    const auto query = [&](std::int64_t rows) {
      build_.start(Engine::Sync, load_of(kQ, kQueryQueue, spec_.d, rows, query_full_),
                   {query_free_});
    };
    query(query_chunks_.front());
    build_.runs(Engine::Sync, key_chunks_, [&](std::int64_t keys) {
      build_.start(Engine::Sync, load_of(kK, kKeyQueue, spec_.d, keys, key_full_), {key_free_});
      // Four keys lie together in a partition, so descriptors are longer than a row of a head.
      const std::int64_t together = keys % 4 == 0 ? 4 : 1;
      build_.start(Engine::Sync,
                   load_of(kV, kValueQueue, keys / together, together * spec_.d, value_full_),
                   {value_free_});
    });
    for (std::size_t i = 1; i < query_chunks_.size(); ++i) query(query_chunks_[i]);
    build_.loop(Engine::Sync, heads - 1, [&] { build_.runs(Engine::Sync, query_chunks_, query); });
  }

  [[nodiscard]] DmaTransfer load_of(OperandIndex operand, Queue queue, std::int64_t rows,
                                    std::int64_t elements, Semaphore full) const {
    DmaTransfer t;
    t.operand = operand;
    t.queue = queue;
    t.rows = static_cast<std::int32_t>(rows);
    t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.in, elements));
    add_signal(t, full);
    return t;
  }

  [[nodiscard]] Instruction array_op(Opcode op, std::int64_t rows, std::int64_t columns,
                                     std::int64_t elements) const {
    Instruction i = lane(op, Space::Sbuf, spec_.in, rows, elements);
    i.destination = op == Opcode::LoadStationary ? Space::Sbuf : Space::Psum;
    i.columns = static_cast<std::int16_t>(columns);
    return i;
  }

  void scores(const Item& item) {
    for (std::int64_t d = 0; d < spec_.d; d += kLanes) {
      const std::int64_t rows = std::min(kLanes, spec_.d - d);
      const bool end = d + kLanes >= spec_.d;
      Instruction weights = array_op(Opcode::LoadStationary, rows, item.rows, item.rows);
      if (d == 0 && item.wait_query) add_wait(weights, query_full_);
      if (end && item.free_query) add_signal(weights, query_free_);
      build_.emit(Engine::Tensor, weights);
      Instruction mm = array_op(Opcode::MultiplyMoving, rows, item.rows, item.width);
      if (d == 0 && item.wait_keys) add_wait(mm, key_full_);
      if (end) add_signal(mm, scores_full_);
      if (end && item.free_keys)
        add_signal(mm, key_free_, static_cast<std::int64_t>(key_chunks_.size()));
      build_.emit(Engine::Tensor, mm);
    }
  }

  [[nodiscard]] std::int64_t scalar_width(const Item& item) const {
    return item.width * plan_.balance.scalar_eighths / 8;
  }
  [[nodiscard]] bool scalar_part() const { return plan_.balance.scalar_eighths > 0; }
  [[nodiscard]] bool vector_part() const { return plan_.balance.scalar_eighths < 8; }
  [[nodiscard]] bool scalar_maximum() const { return plan_.balance.maximum == Engine::Scalar; }

  // VectorE's first step: mask and row maximum, or the new running maximum of ScalarE's.
  void row_maximum(const Item& item) {
    const Space scores = scalar_maximum() ? Space::Sbuf : Space::Psum;
    std::vector<Instruction> list;
    if (item.masked) {
      list.push_back(
          lane(Opcode::Select, scores, base::DType::Fp32, item.rows, std::min(kLanes, item.width)));
      list.back().destination = scores;
    }
    list.push_back(scalar_maximum() ? running_maximum(item.rows)
                                    : row_maximum_of(item.rows, item.width));
    list.back().first_of_chain = item.masked && !scalar_maximum();
    if (scalar_maximum() || !scalar_part()) list.push_back(rescale_factor(item.rows));
    add_wait(list.front(), scalar_maximum() ? maximum_full_ : scores_full_);
    for (const Instruction& i : list) build_.emit(Engine::Vector, i);
  }

  // Its second step: the running maximum if it made the row maximum, then its exponentials.
  void exponentials(const Item& item) {
    std::vector<Instruction> list;
    const bool between = plan_.balance.vector_interleaves();
    if (!scalar_maximum()) {
      list.push_back(running_maximum(item.rows));
      list.back().first_of_chain = !between;
      if (scalar_part()) add_signal(list.back(), maximum_full_);
    }
    if (vector_part()) {
      list.push_back(vector_exponentials(
          plan_.balance, item.rows, std::max<std::int64_t>(1, item.width - scalar_width(item))));
      list.back().first_of_chain = !scalar_maximum() || !between;
      add_signal(list.back(), vector_p_full_);
    }
    for (const Instruction& i : list) build_.emit(Engine::Vector, i);
  }

  // The maximum of a tile on the diagonal includes masked scores: any bound of the row will do.
  void scalar_scores(const Item& item) {
    if (scalar_maximum()) {
      Instruction copy = copy_maximum(item.rows, item.width);
      add_wait(copy, scores_full_);
      add_signal(copy, maximum_full_);
      build_.emit(Engine::Scalar, copy);
      return;
    }
    if (!scalar_part()) return;
    std::vector<Instruction> list =
        scalar_exponentials(item.rows, std::max<std::int64_t>(1, scalar_width(item)));
    add_wait(list.front(), maximum_full_);
    add_signal(list.back(), scalar_p_full_);
    for (const Instruction& i : list) build_.emit(Engine::Scalar, i);
  }

  void transpose(const Item& item) {
    for (std::int64_t k = 0; k < item.width; k += kLanes) {
      Instruction t = lane(Opcode::Transpose, Space::Sbuf, spec_.in, item.rows,
                           std::min(kLanes, item.width - k));
      t.destination = Space::Psum;
      if (k == 0) {
        if (scalar_part()) add_wait(t, scalar_p_full_);
        if (vector_part()) add_wait(t, vector_p_full_);
      }
      if (k + kLanes >= item.width) add_signal(t, transposed_full_);
      build_.emit(Engine::Tensor, t);
    }
  }

  void copy_transposed(const Item& item) {
    Instruction copy =
        lane(Opcode::TensorCopy, Space::Psum, base::DType::Bf16, std::min(kLanes, item.width),
             (item.width + kLanes - 1) / kLanes * item.rows);
    add_wait(copy, transposed_full_);
    add_signal(copy, copied_full_);
    build_.emit(plan_.balance.copier, copy);
  }

  void output(const Item& item) {
    for (std::int64_t k = 0; k < item.width; k += kLanes) {
      const std::int64_t rows = std::min(kLanes, item.width - k);
      Instruction weights = array_op(Opcode::LoadStationary, rows, item.rows, item.rows);
      if (k == 0) add_wait(weights, copied_full_);
      build_.emit(Engine::Tensor, weights);
      Instruction mm = array_op(Opcode::MultiplyMoving, rows, item.rows, spec_.d);
      if (k == 0) {
        add_wait(mm, output_free_);
        if (item.wait_keys) add_wait(mm, value_full_);
      }
      if (k + kLanes >= item.width) {
        add_signal(mm, output_full_);
        if (item.free_keys)
          add_signal(mm, value_free_, static_cast<std::int64_t>(key_chunks_.size()));
      }
      build_.emit(Engine::Tensor, mm);
    }
  }

  void rescale(Engine engine, const Item& item) {
    Instruction i = lane(item.first ? Opcode::TensorCopy : Opcode::ScalarTensorTensor, Space::Psum,
                         base::DType::Fp32, item.rows, spec_.d);
    add_wait(i, output_full_);
    add_signal(i, output_free_);
    build_.emit(engine, i);
    if (!item.first) build_.emit(engine, running_sum(item.rows));
    if (!item.last) return;
    Instruction reciprocal = lane(Opcode::Reciprocal, Space::Sbuf, base::DType::Fp32, item.rows, 1);
    Instruction normalise =
        lane(Opcode::TensorScalar, Space::Sbuf, base::DType::Fp32, item.rows, spec_.d);
    reciprocal.first_of_chain = normalise.first_of_chain = true;
    add_wait(normalise, result_free_);
    add_signal(normalise, result_full_);
    build_.emit(engine, reciprocal);
    build_.emit(engine, normalise);
  }

  // Finished query tiles and, at the end of a head, its row statistics (fp32, one per query).
  void store(const Item& item) {
    if (!item.last) return;
    DmaTransfer t;
    t.direction = DmaDirection::SbufToHbm;
    t.operand = kO;
    t.queue = kStoreQueue;
    t.rows = static_cast<std::int32_t>(item.rows);
    t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.out, spec_.d));
    add_signal(t, result_free_);
    build_.start(Engine::Scalar, t, {result_full_});
    if (!item.head_end) return;
    t.signals = {};
    t.operand = kStats;
    const auto tiles = static_cast<std::int64_t>(share_.tiles.size());
    const std::int64_t partial = item.rows < kQueryTile ? 1 : 0;
    if (tiles > partial) {
      t.rows = static_cast<std::int32_t>(kQueryTile);
      t.row_bytes = static_cast<std::int32_t>((tiles - partial) * 4);
      build_.start(Engine::Scalar, t);
    }
    if (partial > 0) {
      t.rows = static_cast<std::int32_t>(item.rows);
      t.row_bytes = 4;
      build_.start(Engine::Scalar, t);
    }
  }

  const KernelSpec& spec_;
  const config::ChipSpec& chip_;
  const ForwardPlan& plan_;
  const AttentionShare& share_;
  CoreBuilder build_;
  std::vector<std::int64_t> key_chunks_, query_chunks_;
  Semaphore query_full_, query_free_, key_full_, key_free_, value_full_, value_free_;
  Semaphore scores_full_, maximum_full_, scalar_p_full_, vector_p_full_, transposed_full_,
      copied_full_;
  Semaphore output_full_, output_free_, result_full_, result_free_;
};

}  // namespace

models::TileProgram compile_attention_forward(const KernelSpec& spec,
                                              const config::ChipSpec& chip) {
  const ForwardPlan plan = plan_forward(spec, chip);
  models::TileProgram program;
  const auto bytes = [&](std::int64_t heads, std::int64_t s) {
    return base::storage_bytes(spec.in, spec.batch * heads * s * spec.d);
  };
  program.operands = {
      {"q", bytes(spec.heads, spec.sq), false},
      {"k", bytes(spec.kv_heads, spec.skv), false},
      {"v", bytes(spec.kv_heads, spec.skv), false},
      {"o", base::storage_bytes(spec.out, spec.batch * spec.heads * spec.sq * spec.d), false},
      {"stats", spec.batch * spec.heads * spec.sq * 4, false}};
  const std::vector<AttentionShare> shares = divide_attention(spec, true);
  program.cores.resize(shares.size());
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (c > 0 && shares[c] == shares[c - 1]) {
      program.cores[c] = program.cores[c - 1];
    } else if (!shares[c].groups.empty()) {
      ForwardCore(spec, chip, plan, shares[c], program, program.cores[c]).write();
    }
  }
  program.sbuf_bytes_per_partition = plan.sbuf;
  program.psum_banks = plan.ahead + (spec.double_accumulators ? 4 : 3);
  return program;
}

std::string describe_attention_forward(const KernelSpec& spec, const config::ChipSpec& chip) {
  const ForwardPlan plan = plan_forward(spec, chip);
  const auto name = [](Engine e) {
    return e == Engine::Vector ? "VectorE" : e == Engine::Scalar ? "ScalarE" : "GpSimdE";
  };
  return fmt::format(
      "{}: tiles of {} queries x {} keys, row maximum on {}, {} of 8 exponentials on ScalarE, "
      "copies "
      "on {}, rescale on {}; keys and values of {} heads in SBUF; SBUF {} of {} B per partition",
      spec.label(), kQueryTile, plan.key_tile, name(plan.balance.maximum),
      plan.balance.scalar_eighths, name(plan.balance.copier), name(plan.balance.rescaler),
      plan.key_buffers, plan.sbuf, chip.sbuf.usable_per_partition.count());
}

}  // namespace trn3sim::compile
