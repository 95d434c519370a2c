// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Vector kernels: tiles of [128 x width] stream through SBUF. A slot holds all the buffers of a
// tile; several slots rotate, so loads, compute and stores of neighbouring tiles overlap. Rows that
// a later pass needs again stay in their slot, or are read again by a loop of their own.
#include <algorithm>
#include <array>
#include <optional>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include "compile/kernel/program_parts.hpp"
#include "compile/kernel/vector_loops.hpp"
#include <fmt/format.h>

namespace trn3sim::compile {
namespace {

using models::DmaDirection;
using models::DmaTransfer;
using models::Engine;
using models::Instruction;
using models::Opcode;

constexpr std::int64_t kLanes = 128;
constexpr std::int64_t kRowBytes = 8192;  // of one descriptor: two packets, near the plateau
constexpr std::int64_t kLeastRowBytes = 512;
constexpr std::int64_t kSlots = 4;
constexpr int kLoadQueues = 3, kStoreQueues = 2;
constexpr std::array kStages = {Engine::Scalar, Engine::Vector, Engine::Gpsimd};

struct Rows {
  std::int64_t rows = 0, row_bytes = 0;
};

// A tile: elements per partition and, per stream of HBM data, its transfers.
struct Tile {
  std::int64_t width = 0;
  std::vector<std::vector<Rows>> loads, stores;
  static bool moves(const std::vector<std::vector<Rows>>& streams) {
    return std::ranges::any_of(streams, [](const auto& s) { return !s.empty(); });
  }
};

struct VectorPlan {
  std::int64_t width = 0, slots = kSlots, sbuf = 0;
};

VectorPlan plan_of(const KernelSpec& spec, const Loop& loop, const config::ChipSpec& chip) {
  VectorPlan plan;
  plan.slots = spec.streaming_loads ? kSlots : 1;
  const auto per_row = [&](std::int64_t bytes, std::int64_t width) {
    return static_cast<std::int64_t>((Int128(bytes) * width + spec.elems - 1) / spec.elems);
  };
  const std::int64_t temporary = std::max(2, base::element_bits(spec.in) / 8);
  const auto slot = [&](std::int64_t width) {
    return per_row(total(loop.loads), width) + per_row(total(loop.stores), width) +
           temporary * width;
  };
  const auto widest = [&](std::int64_t width) {
    std::int64_t row = 1;
    for (const Streams* streams : {&loop.loads, &loop.stores})
      if (!streams->empty())
        row = std::max(
            row, per_row(total(*streams), width) / static_cast<std::int64_t>(streams->size()));
    return row;
  };
  // At least four tiles per core if descriptors stay long enough; else as wide as rows and SBUF
  // allow.
  std::int64_t width = 64;
  const std::int64_t share = (spec.elems + spec.cores - 1) / spec.cores;
  const std::int64_t usable = chip.sbuf.usable_per_partition.count();
  while (widest(2 * width) <= kRowBytes && slot(2 * width) * kSlots <= usable &&
         2 * width <= (1 << 14) &&
         (2 * width * kLanes * kSlots <= share || widest(2 * width) <= kLeastRowBytes)) {
    width *= 2;
  }
  plan.width = width;
  plan.sbuf = slot(width) * plan.slots;
  if (plan.sbuf > usable) {
    throw base::UserError(spec.label(),
                          fmt::format("{} bytes per element do not fit into {} bytes per "
                                      "SBUF partition",
                                      plan.sbuf / width / plan.slots, usable));
  }
  return plan;
}

// Divides the bytes of one stream over `full` equal tiles; the last tile takes the remainder.
std::vector<std::vector<Rows>> divide(std::int64_t bytes, std::int64_t elems, std::int64_t width,
                                      std::int64_t full) {
  std::vector<std::vector<Rows>> out(2);
  const auto row = full > 0 ? static_cast<std::int64_t>(Int128(bytes) * width / elems) : 0;
  if (row > 0) out[0].push_back({kLanes, row});
  const std::int64_t rest = bytes - full * row * kLanes;
  if (rest > 0) {
    const std::int64_t tail = std::clamp((rest + kLanes - 1) / kLanes, std::int64_t{1}, kRowBytes);
    out[1].push_back({rest / tail, tail});
    if (rest % tail > 0) out[1].push_back({1, rest % tail});
  }
  return out;
}

// MX block scales among the stored bytes: of the copies of the weights.
std::int64_t scale_bytes(const KernelSpec& spec) {
  std::int64_t bytes = 0;
  for (const Epilogue& e : spec.epilogues)
    if (e.fn.find("quantize_mx") != std::string::npos)
      bytes += e.elems / 32 * vector_function(e.fn, spec.label()).copies;
  return bytes;
}

class VectorCore {
 public:
  VectorCore(const KernelSpec& spec, const Loop& loop, const VectorPlan& plan,
             models::TileProgram& program, models::CoreProgram& core)
      : spec_(spec), loop_(loop), plan_(plan), function_(loop.work), build_(program, core) {}

  // `elems`, `loads` and `stores`: of this core.
  void write(std::int64_t elems, const Streams& loads, const Streams& stores) {
    const std::int64_t per_tile = plan_.width * kLanes;
    full_ = elems / per_tile;
    tiles_[0].width = plan_.width;
    tiles_[1].width = (elems % per_tile + kLanes - 1) / kLanes;
    const auto fill = [&](const Streams& streams, auto member) {
      for (const Stream& s : streams) {
        const auto divided = divide(s.bytes, elems, plan_.width, full_);
        for (std::size_t t = 0; t < 2; ++t) (tiles_[t].*member).push_back(divided[t]);
      }
    };
    fill(loads, &Tile::loads);
    fill(stores, &Tile::stores);
    make_semaphores();
    for (const Engine engine : {Engine::Sync, Engine::Scalar, Engine::Vector, Engine::Gpsimd}) {
      build_.loop(engine, full_, [&] { tile(engine, tiles_[0]); });
      if (has_tail()) tile(engine, tiles_[1]);
    }
  }

 private:
  [[nodiscard]] bool has_tail() const {
    return tiles_[1].width > 0 || Tile::moves(tiles_[1].loads) || Tile::moves(tiles_[1].stores);
  }
  [[nodiscard]] const Tile& typical() const { return full_ > 0 ? tiles_[0] : tiles_[1]; }
  [[nodiscard]] bool loads() const { return Tile::moves(typical().loads); }
  [[nodiscard]] bool stores() const { return Tile::moves(typical().stores); }

  void make_semaphores() {
    for (const Engine stage : kStages) {
      if (function_.count(stage) == 0) continue;
      if (first_ == Engine::Sync) first_ = stage;
      last_ = stage;
    }
    TRN3SIM_CHECK(last_ != Engine::Sync, "a vector function needs a pass");
    for (int q = 0; q < kLoadQueues; ++q)
      in_full_[static_cast<std::size_t>(q)] = build_.semaphore();
    for (auto& s : handed_on_) s = build_.semaphore();
    for (int q = 0; q < kStoreQueues; ++q) {
      if (q < std::max<int>(1, static_cast<int>(loop_.stores.size()))) {
        slot_free_[static_cast<std::size_t>(q)] = build_.semaphore(plan_.slots);
      }
    }
    if (!stores()) slot_free_[1] = Semaphore{};
    out_full_ = build_.semaphore();
  }

  void tile(Engine engine, const Tile& t) {
    if (engine == Engine::Sync) {
      transfers(t.loads, DmaDirection::HbmToSbuf);
      return;
    }
    if (t.width > 0 || Tile::moves(t.loads) || Tile::moves(t.stores)) passes(engine, t);
    if (engine == Engine::Gpsimd) transfers(t.stores, DmaDirection::SbufToHbm);
  }

  // Loads signal in_full by queue; stores signal slot_free by queue. The first transfer of a tile
  // waits for the slot (loads) or the results (stores).
  void transfers(const std::vector<std::vector<Rows>>& streams, DmaDirection direction) {
    const bool load = direction == DmaDirection::HbmToSbuf;
    const int queues = load ? kLoadQueues : kStoreQueues;
    struct Item {
      DmaTransfer transfer;
      std::size_t queue;
    };
    std::vector<Item> items;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      for (const Rows& rows : streams[s]) {
        const auto queue = s % static_cast<std::size_t>(queues);
        DmaTransfer d;
        d.direction = direction;
        d.operand = static_cast<std::int32_t>(load ? s : loop_.loads.size() + s);
        d.rows = static_cast<std::int32_t>(rows.rows);
        d.row_bytes = static_cast<std::int32_t>(rows.row_bytes);
        if (!load) {
          d.scale_bytes = static_cast<std::int32_t>(Int128(rows.rows * rows.row_bytes) *
                                                    scale_bytes(spec_) / total(loop_.stores));
        }
        d.spill = (load ? loop_.loads : loop_.stores)[s].spill;
        d.queue = static_cast<std::int16_t>(load ? queue : queue + kLoadQueues);
        items.push_back({d, queue});
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool last =
          std::none_of(items.begin() + static_cast<std::ptrdiff_t>(i) + 1, items.end(),
                       [&](const Item& other) { return other.queue == items[i].queue; });
      if (last && load) add_signal(items[i].transfer, in_full_[items[i].queue]);
      if (last && !load && stores()) add_signal(items[i].transfer, slot_free_[items[i].queue]);
      if (i > 0) {
        build_.start(load ? Engine::Sync : Engine::Gpsimd, items[i].transfer);
      } else if (load && loads()) {
        build_.start(Engine::Sync, items[i].transfer, {slot_free_[0], slot_free_[1]});
      } else if (load) {
        build_.start(Engine::Sync, items[i].transfer);
      } else {
        build_.start(Engine::Gpsimd, items[i].transfer, {out_full_});
      }
    }
  }

  void passes(Engine engine, const Tile& t) {
    const std::int64_t count = function_.count(engine);
    std::int64_t done = 0;
    for (const auto& [pass, elems, follows] : function_.passes) {
      if (pass.engine != engine) continue;
      Instruction i;
      i.op = pass.op;
      if (spec_.fn == "cast" && !follows &&
          (spec_.out == base::DType::Mxfp8 || spec_.out == base::DType::Mxfp4)) {
        i.op = Opcode::QuantizeMx;
      }
      i.dtype = follows && base::element_bits(spec_.in) > 16 ? base::DType::Bf16 : spec_.in;
      i.two_inputs_sbuf = pass.op == Opcode::TensorTensor;
      i.transcendental = pass.transcendental;
      i.rows = kLanes;
      i.elements = static_cast<std::int32_t>(std::max<std::int64_t>(
          1, static_cast<std::int64_t>((Int128(t.width) * elems + spec_.elems - 1) / spec_.elems)));
      i.first_of_chain = done > 0;  // works on what the pass before made
      if (++done == 1) wait_for_input(engine, t, i);
      if (done == count) {
        if (engine != last_) {
          add_signal(i, handed_on_[static_cast<std::size_t>(engine == Engine::Scalar ? 0 : 1)]);
        } else {
          if (Tile::moves(t.stores)) add_signal(i, out_full_);
          if (!stores()) add_signal(i, slot_free_[0]);
        }
      }
      build_.emit(engine, i);
    }
  }

  void wait_for_input(Engine engine, const Tile& t, Instruction& i) {
    if (engine != first_) {
      // From the nearest earlier stage that has passes.
      const bool from_vector = engine == Engine::Gpsimd && function_.count(Engine::Vector) > 0;
      add_wait(i, handed_on_[from_vector ? 1 : 0]);
      return;
    }
    if (!loads()) {
      Instruction slot;  // not by the loads: this stage waits for the slot
      for (const Semaphore s : slot_free_) add_wait(slot, s);
      build_.emit(engine, slot);
    }
    std::array<bool, kLoadQueues> used{};
    for (std::size_t s = 0; s < t.loads.size(); ++s) {
      if (!t.loads[s].empty()) used[s % kLoadQueues] = true;
    }
    for (std::size_t q = 0; q < kLoadQueues; ++q) {
      if (used[q]) add_wait(i, in_full_[q]);
    }
  }

  const KernelSpec& spec_;
  const Loop& loop_;
  const VectorPlan& plan_;
  const Work& function_;
  CoreBuilder build_;
  std::int64_t full_ = 0;
  std::array<Tile, 2> tiles_;  // full tiles and the last one
  Engine first_ = Engine::Sync, last_ = Engine::Sync;
  std::array<Semaphore, kLoadQueues> in_full_;
  std::array<Semaphore, 2> handed_on_;  // by ScalarE, by VectorE
  std::array<Semaphore, kStoreQueues> slot_free_;
  Semaphore out_full_;
};

// The program of one loop over all tiles.
models::TileProgram compile_loop(const KernelSpec& spec, const Loop& loop,
                                 const config::ChipSpec& chip) {
  const VectorPlan plan = plan_of(spec, loop, chip);
  models::TileProgram program;
  for (const bool load : {true, false}) {
    int index = 0;
    for (const Stream& s : load ? loop.loads : loop.stores) {
      const char* name = s.spill ? "spill" : load ? "in" : "out";
      program.operands.push_back({fmt::format("{}{}", name, index++), s.bytes, false});
    }
  }
  const auto part = [&](std::int64_t bytes, std::int64_t core) {
    return static_cast<std::int64_t>(Int128(bytes) * (core + 1) / spec.cores -
                                     Int128(bytes) * core / spec.cores);
  };
  const auto parts = [&](Streams streams, std::int64_t core) {
    for (Stream& s : streams) s.bytes = part(s.bytes, core);
    return streams;
  };
  program.cores.resize(static_cast<std::size_t>(spec.cores));
  struct Share {
    std::int64_t elems;
    Streams loads, stores;
    bool operator==(const Share&) const = default;
  };
  std::optional<Share> previous;
  for (std::int64_t c = 0; c < spec.cores; ++c) {
    const Share share{part(spec.elems, c), parts(loop.loads, c), parts(loop.stores, c)};
    auto& core = program.cores[static_cast<std::size_t>(c)];
    if (previous && share == *previous) {
      core = program.cores[static_cast<std::size_t>(c - 1)];
    } else if (share.elems > 0 || total(share.loads) > 0 || total(share.stores) > 0) {
      VectorCore(spec, loop, plan, program, core)
          .write(std::max<std::int64_t>(1, share.elems), share.loads, share.stores);
    }
    previous = share;
  }
  program.sbuf_bytes_per_partition = plan.sbuf;
  return program;
}

}  // namespace

models::TileProgram compile_vector(const KernelSpec& spec, const config::ChipSpec& chip) {
  const std::vector<Loop> loops = loops_of(spec);
  if (loops.size() == 1) return compile_loop(spec, loops.front(), chip);
  ProgramParts parts;
  for (const Loop& loop : loops) {
    models::TileProgram program = compile_loop(spec, loop, chip);
    std::vector<std::string> names;
    for (const models::Operand& o : program.operands) names.push_back(o.name);
    parts.append(std::move(program), names);
  }
  return parts.take();
}

std::string describe_vector(const KernelSpec& spec, const config::ChipSpec& chip) {
  std::string text = spec.label();
  for (const Loop& loop : loops_of(spec)) {
    const VectorPlan plan = plan_of(spec, loop, chip);
    const Work& f = loop.work;
    text += fmt::format(
        "{} tiles of 128 x {}, {} slots; passes ScalarE {}, VectorE {}, GpSimdE {}; SBUF {} of "
        "{} B per partition; reads {} B, writes {} B",
        text == spec.label() ? ":" : "; then", plan.width, plan.slots, f.count(Engine::Scalar),
        f.count(Engine::Vector), f.count(Engine::Gpsimd), plan.sbuf,
        chip.sbuf.usable_per_partition.count(), total(loop.loads), total(loop.stores));
  }
  return text;
}

}  // namespace trn3sim::compile
