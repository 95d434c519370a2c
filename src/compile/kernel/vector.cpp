// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Vector kernels: tiles of [128 x width] stream through SBUF. A slot holds all the buffers of a
// tile; several slots rotate, so loads, compute and stores of neighbouring tiles overlap.
#include <algorithm>
#include <array>

#include "trn3sim/base/error.hpp"

#include "compile/kernel/kernels.hpp"
#include "compile/kernel/program_builder.hpp"
#include "compile/kernel/vector_functions.hpp"
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

// The work of one core.
struct Share {
  std::int64_t elems = 0, rd = 0, wr = 0;
  auto operator<=>(const Share&) const = default;
};

struct VectorPlan {
  std::int64_t width = 0, slots = kSlots, sbuf = 0;
  int load_streams = 0, store_streams = 0;
};

const VectorFunction& function_of(const KernelSpec& spec) {
  return vector_function(spec.fn, spec.label());
}

// The passes of the function and of what follows it, with the elements of each.
struct Work {
  struct Item {
    Pass pass;
    std::int64_t elems;
    bool follows;
  };
  std::vector<Item> passes;
  [[nodiscard]] std::int64_t count(Engine engine) const {
    return std::ranges::count_if(passes, [&](const Item& i) { return i.pass.engine == engine; });
  }
};

Work work_of(const KernelSpec& spec) {
  Work work;
  for (const Pass& pass : function_of(spec).passes)
    work.passes.push_back({pass, spec.elems, false});
  for (const Epilogue& e : spec.epilogues) {
    for (const Pass& pass : vector_function(e.fn, spec.label()).passes)
      work.passes.push_back({pass, e.elems, true});
  }
  return work;
}

VectorPlan plan_of(const KernelSpec& spec, const config::ChipSpec& chip) {
  const VectorFunction& f = function_of(spec);
  VectorPlan plan;
  plan.load_streams = spec.rd > 0 ? std::max(1, f.inputs) : 0;
  plan.store_streams = spec.wr > 0 ? std::max(1, f.outputs) : 0;
  const auto per_row = [&](std::int64_t bytes, int streams, std::int64_t width) {
    return streams == 0
               ? 0
               : static_cast<std::int64_t>((Int128(bytes) * width + spec.elems - 1) / spec.elems);
  };
  const std::int64_t temporary = std::max(2, base::element_bits(spec.in) / 8);
  const auto slot = [&](std::int64_t width) {
    return per_row(spec.rd, plan.load_streams, width) +
           per_row(spec.wr, plan.store_streams, width) + temporary * width;
  };
  const auto widest = [&](std::int64_t width) {
    const std::int64_t in =
        per_row(spec.rd, plan.load_streams, width) / std::max(1, plan.load_streams);
    const std::int64_t out =
        per_row(spec.wr, plan.store_streams, width) / std::max(1, plan.store_streams);
    return std::max({in, out, std::int64_t{1}});
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
  plan.sbuf = slot(width) * kSlots;
  if (plan.sbuf > usable) {
    throw base::UserError(spec.label(),
                          fmt::format("{} bytes per element do not fit into {} bytes per "
                                      "SBUF partition",
                                      plan.sbuf / width / kSlots, usable));
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

// MX block scales among the stored bytes: of both copies of the weights.
std::int64_t scale_bytes(const KernelSpec& spec) {
  std::int64_t bytes = 0;
  for (const Epilogue& e : spec.epilogues)
    if (e.fn == "quantize_mxfp8" || e.fn == "quantize_mxfp4") bytes += e.elems / 32 * 2;
  return bytes;
}

class VectorCore {
 public:
  VectorCore(const KernelSpec& spec, const VectorPlan& plan, models::TileProgram& program,
             models::CoreProgram& core)
      : spec_(spec), plan_(plan), function_(work_of(spec)), build_(program, core) {}

  void write(const Share& share) {
    const std::int64_t per_tile = plan_.width * kLanes;
    full_ = share.elems / per_tile;
    tiles_[0].width = plan_.width;
    tiles_[1].width = (share.elems % per_tile + kLanes - 1) / kLanes;
    const auto fill = [&](std::int64_t bytes, int streams, auto member) {
      for (int i = 0; i < streams; ++i) {
        const std::int64_t part = bytes * (i + 1) / streams - bytes * i / streams;
        const auto divided = divide(part, share.elems, plan_.width, full_);
        for (std::size_t t = 0; t < 2; ++t) (tiles_[t].*member).push_back(divided[t]);
      }
    };
    fill(share.rd, plan_.load_streams, &Tile::loads);
    fill(share.wr, plan_.store_streams, &Tile::stores);
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
      if (q < std::max(1, plan_.store_streams)) {
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
        d.operand =
            static_cast<std::int32_t>(load ? s : static_cast<std::size_t>(plan_.load_streams) + s);
        d.rows = static_cast<std::int32_t>(rows.rows);
        d.row_bytes = static_cast<std::int32_t>(rows.row_bytes);
        if (!load) {
          d.scale_bytes = static_cast<std::int32_t>(Int128(rows.rows * rows.row_bytes) *
                                                    scale_bytes(spec_) / spec_.wr);
        }
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
      i.dtype = follows ? base::DType::Bf16 : spec_.in;
      i.two_inputs_sbuf = pass.op == Opcode::TensorTensor;
      i.transcendental = pass.transcendental;
      i.rows = kLanes;
      i.elements = static_cast<std::int32_t>(std::max<std::int64_t>(
          1, static_cast<std::int64_t>((Int128(t.width) * elems + spec_.elems - 1) / spec_.elems)));
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
  const VectorPlan& plan_;
  const Work function_;
  CoreBuilder build_;
  std::int64_t full_ = 0;
  std::array<Tile, 2> tiles_;  // full tiles and the last one
  Engine first_ = Engine::Sync, last_ = Engine::Sync;
  std::array<Semaphore, kLoadQueues> in_full_;
  std::array<Semaphore, 2> handed_on_;  // by ScalarE, by VectorE
  std::array<Semaphore, kStoreQueues> slot_free_;
  Semaphore out_full_;
};

}  // namespace

models::TileProgram compile_vector(const KernelSpec& spec, const config::ChipSpec& chip) {
  const VectorPlan plan = plan_of(spec, chip);
  models::TileProgram program;
  for (int i = 0; i < plan.load_streams; ++i) {
    program.operands.push_back(
        {fmt::format("in{}", i),
         spec.rd * (i + 1) / plan.load_streams - spec.rd * i / plan.load_streams, false});
  }
  for (int i = 0; i < plan.store_streams; ++i) {
    program.operands.push_back(
        {fmt::format("out{}", i),
         spec.wr * (i + 1) / plan.store_streams - spec.wr * i / plan.store_streams, false});
  }
  const auto part = [&](std::int64_t total, std::int64_t core) {
    return static_cast<std::int64_t>(Int128(total) * (core + 1) / spec.cores -
                                     Int128(total) * core / spec.cores);
  };
  program.cores.resize(static_cast<std::size_t>(spec.cores));
  Share previous;
  for (std::int64_t c = 0; c < spec.cores; ++c) {
    const Share share{part(spec.elems, c), part(spec.rd, c), part(spec.wr, c)};
    auto& core = program.cores[static_cast<std::size_t>(c)];
    if (c > 0 && share == previous) {
      core = program.cores[static_cast<std::size_t>(c - 1)];
    } else if (share.elems > 0 || share.rd > 0 || share.wr > 0) {
      VectorCore(spec, plan, program, core)
          .write({std::max<std::int64_t>(1, share.elems), share.rd, share.wr});
    }
    previous = share;
  }
  program.sbuf_bytes_per_partition = plan.sbuf;
  return program;
}

std::string describe_vector(const KernelSpec& spec, const config::ChipSpec& chip) {
  const VectorPlan plan = plan_of(spec, chip);
  const Work f = work_of(spec);
  return fmt::format(
      "{}: tiles of 128 x {}, {} slots; passes ScalarE {}, VectorE {}, GpSimdE {}; SBUF {} of "
      "{} B per partition; reads {} B, writes {} B",
      spec.label(), plan.width, plan.slots, f.count(Engine::Scalar), f.count(Engine::Vector),
      f.count(Engine::Gpsimd), plan.sbuf, chip.sbuf.usable_per_partition.count(), spec.rd, spec.wr);
}

}  // namespace trn3sim::compile
