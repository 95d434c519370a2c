// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/generate/synthetic.hpp"

#include "trn3sim/trace/writer.hpp"

#include <fmt/format.h>

namespace trn3sim::generate {
namespace {

using trace::LineWriter;

std::string header(std::string_view name, std::string_view kind, std::int64_t bytes) {
  const std::string memory = LineWriter("").text("kind", kind).number("bytes", bytes).object();
  return LineWriter("")
      .text("trace", "trn3sim")
      .number("v", 1)
      .text("name", name)
      .text("rank_unit", "logical_core")
      .json("mesh", "[[\"tp\",4]]")
      .json("defaults", "{\"dtype\":\"bf16\"}")
      .number("tokens_per_step", 0)
      .json("memory", fmt::format("[{}]", memory))
      .line();
}

std::string repeated(const std::string& op, std::string_view phase, std::int64_t times) {
  LineWriter block("block");
  block.text("id", "slice");
  if (!phase.empty()) block.text("phase", phase);
  return block.line() + op + LineWriter("end").line() +
         LineWriter("repeat")
             .text("id", "slices")
             .text("block", "slice")
             .number("times", times)
             .line();
}

}  // namespace

std::string generate_residual_add() {
  constexpr std::int64_t kElems = std::int64_t{1} << 28;
  constexpr std::int64_t kTensorBytes = kElems * 2;
  const std::string add =
      LineWriter("vec").text("id", "add").text("fn", "add").number("elems", kElems).line();
  return header("residual-add", "buffers", 3 * kTensorBytes) + repeated(add, "", 16);
}

std::string generate_optimizer_only() {
  constexpr std::int64_t kElems = 100'000'000;
  constexpr std::int64_t kSlices = 16;
  constexpr std::int64_t kRead = 16;   // fp32 gradient, master weight, m, v
  constexpr std::int64_t kWrite = 14;  // fp32 master weight, m, v; bf16 weight
  constexpr std::int64_t kState = 18;  // the above plus the gradient, resident
  const std::string adamw = LineWriter("vec")
                                .text("id", "adamw")
                                .text("fn", "adamw")
                                .number("elems", kElems)
                                .number("rd", kRead * kElems)
                                .number("wr", kWrite * kElems)
                                .text("dtype", "fp32")
                                .line();
  return header("optimizer-only", "optimizer", kState * kElems * kSlices) +
         repeated(adamw, "optimizer", kSlices);
}

}  // namespace trn3sim::generate
