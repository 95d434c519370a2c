// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Flash attention, backward. Blocks of 512 keys outside, tiles of 128 queries inside. Per tile:
//   TensorE   S = Q K^T and dP = dO V^T                    [queries x keys]
//   ScalarE   P = exp(S - row statistic)
//   VectorE   dS = P (dP - D)
//   TensorE   dV += P^T dO, dK += dS^T Q                   P and dS are stationary: no transposes
//   TensorE   transposes of dS, 128 keys at a time; ScalarE copies them to SBUF
//   TensorE   dQ = dS K; VectorE adds it to the running sum in SBUF
// dV and dK of a block accumulate in one PSUM bank each; GpSimdE evicts them. D = rowsum(dO O) is
// made once per query tile, in the first block. Step f of the TensorE stream is: dV, dK of f; dQ of
// f - 1; transposes of f; S, dP of f + 2. So S of f + 2 follows a wait for P of f, dP of f + 2 a
// wait for dS of f, and transposes of f a wait for the copy of f - 1: two banks for S, two for dP
// and one for transposes need no `free` semaphore. Q, K and dO are read in both layouts
// (contraction over d, and over s). Keys and values are read by block. Queries of a head stay in
// SBUF for all its blocks if they fit, else they stream by chunk for every block.
#include <algorithm>

#include "compile/kernel/attention_backward_plan.hpp"
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

using Item = BackwardItem;
using Load = BackwardLoad;

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kAhead = 2;   // S and dP, in PSUM banks; 1 without double accumulators
constexpr std::int64_t kAddLag = 2;  // tiles between dS and the addition of dQ on VectorE
constexpr std::int64_t kStoreLag = 4;
enum Queue : std::int16_t { kQueryQueue, kKeyQueue, kQueryStoreQueue, kKeyStoreQueue };
enum OperandIndex : std::int32_t { kQ, kK, kV, kO, kDo, kStats, kDq, kDk, kDv };

class BackwardCore {
 public:
  BackwardCore(const KernelSpec& spec, const BackwardPlan& plan, const AttentionShare& share,
               models::TileProgram& program, models::CoreProgram& core)
      : spec_(spec), plan_(plan), share_(share), build_(program, core) {}

  void write() {
    make_semaphores();
    for_each_run(share_.groups,
                 [&](std::int64_t heads, std::int64_t times) { group_run(heads, times); });
  }

 private:
  using Stage = std::function<void(const Item&)>;

  void make_semaphores() {
    query_full_ = build_.semaphore();
    query_free_ = build_.semaphore(plan_.query_ring * (plan_.resident ? chunks_of(share_) : 1));
    key_full_ = build_.semaphore();
    key_free_ = build_.semaphore(kKeyRing);
    scores_full_ = build_.semaphore();
    dp_full_ = build_.semaphore();
    p_to_vector_ = build_.semaphore();
    p_to_tensor_ = build_.semaphore();
    ds_full_ = build_.semaphore();
    transposed_full_ = build_.semaphore();
    copied_full_ = build_.semaphore();
    dq_full_ = build_.semaphore();
    dq_free_ = build_.semaphore(1);
    result_full_ = build_.semaphore();
    result_free_ = build_.semaphore(kResults);
    dv_full_ = build_.semaphore();
    dv_free_ = build_.semaphore(1);
    dk_full_ = build_.semaphore();
    dk_free_ = build_.semaphore(1);
    evicted_ = build_.semaphore();
    key_result_free_ = build_.semaphore(2);
  }

  void group_run(std::int64_t heads, std::int64_t count) {
    const std::vector<Item> items = items_of(share_, plan_, heads);
    const std::vector<Load> loads = loads_of_head(share_, plan_);
    build_.loop(Engine::Sync, count * heads, [&] {
      build_.runs(Engine::Sync, loads, [&](const Load& l) {
        if (l.keys > 0) load_keys(l.keys);
        if (l.queries > 0) load_queries(l.queries, l.outputs);
      });
    });
    pipeline<Item, 4>(
        build_, Engine::Tensor, items, count, {0, -1, 0, spec_.double_accumulators ? kAhead : 1},
        {Stage([&](const Item& i) { key_gradients(i); }),
         Stage([&](const Item& i) { query_gradient(i); }),
         Stage([&](const Item& i) { transpose(i); }), Stage([&](const Item& i) { scores(i); })});
    pipeline<Item, 2>(build_, Engine::Vector, items, count, {0, -kAddLag},
                      {Stage([&](const Item& i) { score_gradient(i); }),
                       Stage([&](const Item& i) { add_query(i); })});
    pipeline<Item, 3>(build_, Engine::Scalar, items, count, {0, -1, -kStoreLag},
                      {Stage([&](const Item& i) { exponentials(i); }),
                       Stage([&](const Item& i) { copy_transposed(i); }),
                       Stage([&](const Item& i) { store_query(i); })});
    build_.loop(Engine::Gpsimd, count, [&] {
      std::vector<Item> ends;
      std::ranges::copy_if(items, std::back_inserter(ends), [](const Item& i) { return i.end; });
      for (Item& i : ends) {  // only what eviction reads
        Item only;
        only.block = i.block;
        only.add_keys = i.add_keys;
        only.store_keys = i.store_keys;
        i = only;
      }
      build_.runs(Engine::Gpsimd, ends, [&](const Item& i) { evict_keys(i); });
    });
  }

  // The transfers of one load are on one queue, in order: the last one signals for all.
  struct Part {
    OperandIndex operand;
    std::int64_t rows, row_bytes;
  };
  void start_loads(Queue queue, Semaphore full, Semaphore free, const std::vector<Part>& parts) {
    std::size_t index = 0;
    for (const auto& [operand, rows, row_bytes] : parts) {
      DmaTransfer t;
      t.operand = operand;
      t.queue = queue;
      t.rows = static_cast<std::int32_t>(rows);
      t.row_bytes = static_cast<std::int32_t>(row_bytes);
      if (index + 1 == parts.size()) add_signal(t, full);
      build_.start(Engine::Sync, t, {index == 0 ? free : Semaphore{}});
      ++index;
    }
  }

  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const {
    return base::storage_bytes(spec_.in, elements);
  }

  void load_keys(std::int64_t keys) {
    const std::int64_t together = keys % 4 == 0 ? 4 : 1;
    start_loads(kKeyQueue, key_full_, key_free_,
                {{kK, spec_.d, bytes(keys)},
                 {kV, spec_.d, bytes(keys)},
                 {kK, keys / together, bytes(together * spec_.d)}});
  }

  void load_queries(std::int64_t rows, bool outputs) {
    const std::int64_t together = rows % 4 == 0 ? 4 : 1;
    const std::int64_t row = bytes(together * spec_.d);
    std::vector<Part> parts = {{kQ, spec_.d, bytes(rows)}, {kDo, spec_.d, bytes(rows)}};
    if (outputs) {
      parts.push_back({kStats, 1, rows * 4});
      parts.push_back({kO, rows / together, row});
    }
    parts.push_back({kDo, rows / together, row});
    parts.push_back({kQ, rows / together, row});
    start_loads(kQueryQueue, query_full_, query_free_, parts);
  }

  [[nodiscard]] Instruction array_op(Opcode op, std::int64_t rows, std::int64_t columns,
                                     std::int64_t elements) const {
    Instruction i = lane(op, Space::Sbuf, spec_.in, rows, elements);
    i.destination = op == Opcode::LoadStationary ? Space::Sbuf : Space::Psum;
    i.columns = static_cast<std::int16_t>(columns);
    return i;
  }

  // S, then dP: products over d of [d x queries] and [d x keys].
  void scores(const Item& item) {
    for (const bool dp : {false, true}) {
      for (std::int64_t d = 0; d < spec_.d; d += kLanes) {
        const std::int64_t rows = std::min(kLanes, spec_.d - d);
        Instruction weights = array_op(Opcode::LoadStationary, rows, item.rows, item.rows);
        if (!dp && d == 0 && item.wait_query) add_wait(weights, query_full_);
        if (!dp && d == 0 && item.begin) add_wait(weights, key_full_);
        build_.emit(Engine::Tensor, weights);
        Instruction mm = array_op(Opcode::MultiplyMoving, rows, item.rows, item.width);
        if (d + kLanes >= spec_.d) add_signal(mm, dp ? dp_full_ : scores_full_);
        build_.emit(Engine::Tensor, mm);
      }
    }
  }

  void exponentials(const Item& item) {
    Instruction i = lane(Opcode::Activation, Space::Psum, base::DType::Fp32, item.rows, item.width);
    i.transcendental = true;
    add_wait(i, scores_full_);
    add_signal(i, p_to_vector_);
    add_signal(i, p_to_tensor_);
    build_.emit(Engine::Scalar, i);
  }

  void score_gradient(const Item& item) {
    std::vector<Instruction> list;
    if (item.first_block) {  // D of this query tile
      list.push_back(
          lane(Opcode::TensorTensor, Space::Sbuf, base::DType::Bf16, item.rows, spec_.d));
      list.back().two_inputs_sbuf = true;
    }
    if (item.masked) {
      list.push_back(lane(Opcode::Select, Space::Sbuf, base::DType::Bf16, item.rows,
                          std::min(kLanes, item.width)));
    }
    list.push_back(
        lane(Opcode::ScalarTensorTensor, Space::Psum, base::DType::Fp32, item.rows, item.width));
    for (std::size_t i = 1; i < list.size(); ++i) list[i].first_of_chain = true;
    add_wait(list.front(), dp_full_);
    add_wait(list.front(), p_to_vector_);
    add_signal(list.back(), ds_full_);
    for (const Instruction& i : list) build_.emit(Engine::Vector, i);
  }

  // dV from P, dK from dS: stationary [queries x 128 keys], moving [queries x d].
  void key_gradients(const Item& item) {
    for (const bool dk : {false, true}) {
      for (std::int64_t k = 0; k < item.width; k += kLanes) {
        const std::int64_t columns = std::min(kLanes, item.width - k);
        const bool end = k + kLanes >= item.width;
        Instruction weights = array_op(Opcode::LoadStationary, item.rows, columns, columns);
        if (k == 0) add_wait(weights, dk ? ds_full_ : p_to_tensor_);
        build_.emit(Engine::Tensor, weights);
        Instruction mm = array_op(Opcode::MultiplyMoving, item.rows, columns, spec_.d);
        if (k == 0 && item.begin) add_wait(mm, dk ? dk_free_ : dv_free_);
        if (end && item.end) add_signal(mm, dk ? dk_full_ : dv_full_);
        if (end && dk && item.free_query > 0) add_signal(mm, query_free_, item.free_query);
        build_.emit(Engine::Tensor, mm);
      }
    }
  }

  void transpose(const Item& item) {
    for (std::int64_t k = 0; k < item.width; k += kLanes) {
      Instruction t = lane(Opcode::Transpose, Space::Sbuf, spec_.in, item.rows,
                           std::min(kLanes, item.width - k));
      t.destination = Space::Psum;
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
    build_.emit(Engine::Scalar, copy);
  }

  void query_gradient(const Item& item) {
    for (std::int64_t k = 0; k < item.width; k += kLanes) {
      const std::int64_t rows = std::min(kLanes, item.width - k);
      Instruction weights = array_op(Opcode::LoadStationary, rows, item.rows, item.rows);
      if (k == 0) add_wait(weights, copied_full_);
      build_.emit(Engine::Tensor, weights);
      Instruction mm = array_op(Opcode::MultiplyMoving, rows, item.rows, spec_.d);
      if (k == 0) add_wait(mm, dq_free_);
      if (k + kLanes >= item.width) {
        add_signal(mm, dq_full_);
        if (item.end) add_signal(mm, key_free_);
      }
      build_.emit(Engine::Tensor, mm);
    }
  }

  void add_query(const Item& item) {
    Instruction i = lane(item.first_block ? Opcode::TensorCopy : Opcode::TensorTensor, Space::Psum,
                         base::DType::Fp32, item.rows, spec_.d);
    add_wait(i, dq_full_);
    add_signal(i, dq_free_);
    build_.emit(Engine::Vector, i);
    if (!item.query_done) return;
    Instruction scale =
        lane(Opcode::TensorScalar, Space::Sbuf, base::DType::Fp32, item.rows, spec_.d);
    scale.first_of_chain = true;
    add_wait(scale, result_free_);
    add_signal(scale, result_full_);
    build_.emit(Engine::Vector, scale);
  }

  void store_query(const Item& item) {
    if (!item.query_done) return;
    DmaTransfer t;
    t.direction = DmaDirection::SbufToHbm;
    t.operand = kDq;
    t.queue = kQueryStoreQueue;
    t.rows = static_cast<std::int32_t>(item.rows);
    t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.out, spec_.d));
    add_signal(t, result_free_);
    build_.start(Engine::Scalar, t, {result_full_});
  }

  // The heads of a group add up in SBUF; the last one's result is stored. If other cores have heads
  // of the same group, the store adds to HBM.
  void evict_keys(const Item& item) {
    const std::int64_t width = per_partition(item.block, spec_.d);
    for (const bool dk : {false, true}) {
      Instruction i = lane(item.add_keys ? Opcode::TensorTensor : Opcode::TensorCopy, Space::Psum,
                           base::DType::Fp32, std::min(kLanes, item.block), width);
      add_wait(i, dk ? dk_full_ : dv_full_);
      if (item.store_keys && !dk) add_wait(i, key_result_free_);
      add_signal(i, dk ? dk_free_ : dv_free_);
      if (item.store_keys && dk) add_signal(i, evicted_);
      build_.emit(Engine::Gpsimd, i);
    }
    if (!item.store_keys) return;
    const std::int64_t together = item.block % 4 == 0 ? 4 : 1;
    for (const bool dk : {false, true}) {
      DmaTransfer t;
      t.direction = DmaDirection::SbufToHbm;
      t.operand = dk ? kDk : kDv;
      t.queue = kKeyStoreQueue;
      t.accumulate = share_.shared_group;
      t.rows = static_cast<std::int32_t>(item.block / together);
      t.row_bytes = static_cast<std::int32_t>(base::storage_bytes(spec_.out, together * spec_.d));
      if (dk) add_signal(t, key_result_free_);
      build_.start(Engine::Gpsimd, t, {dk ? Semaphore{} : evicted_});
    }
  }

  const KernelSpec& spec_;
  const BackwardPlan& plan_;
  const AttentionShare& share_;
  CoreBuilder build_;
  Semaphore query_full_, query_free_, key_full_, key_free_;
  Semaphore scores_full_, dp_full_, p_to_vector_, p_to_tensor_, ds_full_, transposed_full_,
      copied_full_;
  Semaphore dq_full_, dq_free_, result_full_, result_free_;
  Semaphore dv_full_, dv_free_, dk_full_, dk_free_, evicted_, key_result_free_;
};

}  // namespace

models::TileProgram compile_attention_backward(const KernelSpec& spec,
                                               const config::ChipSpec& chip) {
  const BackwardPlan plan = backward_plan(spec, chip);
  models::TileProgram program;
  const std::int64_t q = spec.batch * spec.heads * spec.sq * spec.d;
  const std::int64_t k = spec.batch * spec.kv_heads * spec.skv * spec.d;
  const auto in = [&](std::int64_t elements) { return base::storage_bytes(spec.in, elements); };
  const auto out = [&](std::int64_t elements) { return base::storage_bytes(spec.out, elements); };
  program.operands = {
      {"q", in(q), false},   {"k", in(k), false},
      {"v", in(k), false},   {"o", in(q), false},
      {"do", in(q), false},  {"stats", spec.batch * spec.heads * spec.sq * 4, false},
      {"dq", out(q), false}, {"dk", out(k), false},
      {"dv", out(k), false}};
  const std::vector<AttentionShare> shares = divide_attention(spec, false);
  program.cores.resize(shares.size());
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (c > 0 && shares[c] == shares[c - 1]) {
      program.cores[c] = program.cores[c - 1];
    } else if (!shares[c].groups.empty()) {
      BackwardCore(spec, plan, shares[c], program, program.cores[c]).write();
    }
  }
  program.sbuf_bytes_per_partition = plan.sbuf;
  program.psum_banks = spec.double_accumulators ? 8 : 6;
  return program;
}

std::string describe_attention_backward(const KernelSpec& spec, const config::ChipSpec& chip) {
  const BackwardPlan plan = backward_plan(spec, chip);
  return fmt::format(
      "{}: blocks of {} keys outside, tiles of {} queries inside; queries {} in SBUF; "
      "SBUF {} of {} B per partition",
      spec.label(), plan.block, kQueryTile, plan.resident ? "stay" : "stream", plan.sbuf,
      chip.sbuf.usable_per_partition.count());
}

}  // namespace trn3sim::compile
