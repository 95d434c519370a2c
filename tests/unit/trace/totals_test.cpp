// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "unit/trace/trace_file.hpp"

namespace trn3sim::trace {
namespace {

// Three levels of loops with every kind of number, and ops that only some ranks run.
const std::string kNested =
    R"({"op":"block","id":"fwd","phase":"forward"})"
    "\n"
    R"({"op":"gemm","id":"g","m":8,"n":6,"k":4,"batch":2,"alloc":100,"free":30})"
    "\n"
    R"({"op":"attn","id":"a","heads":2,"sq":8,"skv":8,"d":4,"causal":true,"deps":["g"],"alloc":7})"
    "\n"
    R"({"op":"coll","id":"c","kind":"all_gather","group":"tp","in":16,"out":64,"when":{"pp":0}})"
    "\n"
    R"({"op":"end"})"
    "\n"
    R"({"op":"block","id":"bwd","phase":"backward"})"
    "\n"
    R"({"op":"attn","id":"a","heads":2,"sq":8,"skv":8,"d":4,"causal":true,"pass":"bwd",)"
    R"("alloc":50,"free":57})"
    "\n"
    R"({"op":"gemm","id":"g","m":8,"n":6,"k":4,"recompute":true,"free":70})"
    "\n"
    R"({"op":"end"})"
    "\n"
    R"({"op":"block","id":"plain"})"
    "\n"
    R"({"op":"vec","id":"v","fn":"add","elems":5})"
    "\n"
    R"({"op":"coll","id":"c","kind":"all_reduce","group":"dp","in":4,"out":4})"
    "\n"
    R"({"op":"end"})"
    "\n"
    R"({"op":"block","id":"micro"})"
    "\n"
    R"({"op":"repeat","id":"f","block":"fwd","times":3,"alloc":1000,"free":1000})"
    "\n"
    R"({"op":"repeat","id":"b","block":"bwd","times":3,"deps":["f"]})"
    "\n"
    R"({"op":"call","id":"p","block":"plain"})"
    "\n"
    R"({"op":"end"})"
    "\n"
    R"({"op":"block","id":"opt","phase":"optimizer"})"
    "\n"
    R"({"op":"repeat","id":"p","block":"plain","times":2})"
    "\n"
    R"({"op":"opaque","id":"o","flop":1000})"
    "\n"
    R"({"op":"send","id":"s","peer":"pp+1","bytes":1,"when":{"pp":0}})"
    "\n"
    R"({"op":"recv","id":"r","peer":"pp-1","bytes":1,"when":{"pp":1}})"
    "\n"
    R"({"op":"end"})"
    "\n"
    R"({"op":"repeat","id":"m","block":"micro","times":4})"
    "\n"
    R"({"op":"call","id":"o","block":"opt","deps":["m"]})"
    "\n";

struct Brute {
  std::int64_t ops = 0, peak = 0;
  double full = 0, causal = 0, again = 0;
  std::map<std::string, std::int64_t> ops_by_phase;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> collectives;  // count, in bytes
};

// The same totals from the unrolled program.
Brute brute(const Program& p, std::int64_t rank) {
  Brute b;
  std::int64_t live = 0;
  std::vector<std::string> phases{""};
  std::vector<const Op*> callers;
  Cursor cursor(p, rank);
  std::vector<std::int32_t> blocks{0};
  for (Cursor::Step s = cursor.next(); s.event != Cursor::Event::End; s = cursor.next()) {
    const Block& block = p.blocks[static_cast<std::size_t>(s.block)];
    if (s.event == Cursor::Event::Op) {
      const Op& op = block.ops[static_cast<std::size_t>(s.op)];
      ++b.ops;
      ++b.ops_by_phase[phases.back()];
      b.full += flop_full(op);
      b.causal += flop_causal(op);
      b.again += flop_recompute(op);
      live += op.alloc;
      b.peak = std::max(b.peak, live);
      live -= op.free;
      if (const auto* c = std::get_if<Collective>(&op.body)) {
        auto& [count, in] = b.collectives[std::string(collective_name(c->kind)) + " " + c->group +
                                          " " + phases.back()];
        ++count;
        in += c->in;
      }
      continue;
    }
    const bool enter = s.event == Cursor::Event::Enter;
    if (!enter) blocks.pop_back(), phases.pop_back();
    const Op& op =
        p.blocks[static_cast<std::size_t>(blocks.back())].ops[static_cast<std::size_t>(s.op)];
    const auto* repeat = std::get_if<Repeat>(&op.body);
    const std::int64_t times = repeat != nullptr ? repeat->times : 1;
    if (enter && s.iteration == 0) live += op.alloc;
    if (!enter && s.iteration == times - 1) live -= op.free;
    b.peak = std::max(b.peak, live);
    if (enter) {
      blocks.push_back(s.block);
      phases.push_back(block.phase.empty() ? phases.back() : block.phase);
    }
  }
  EXPECT_EQ(live, 0);
  return b;
}

TEST(Totals, AgreeWithTheUnrolledProgram) {
  const Program p = program_of(kNested);
  for (std::int64_t rank : {0, 5, 12, 23}) {
    const Totals t = scan(p, rank);
    const Brute b = brute(p, rank);
    EXPECT_EQ(t.ops, b.ops);
    EXPECT_EQ(t.model_flop, b.full);
    EXPECT_EQ(t.model_flop_causal, b.causal);
    EXPECT_EQ(t.recompute_flop, b.again);
    EXPECT_EQ(t.activation_peak_bytes, b.peak);
    std::map<std::string, std::int64_t> ops_by_phase;
    for (const PhaseTotals& phase : t.phases) ops_by_phase[phase.phase] += phase.ops;
    EXPECT_EQ(ops_by_phase, b.ops_by_phase);
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> collectives;
    for (const GroupTotals& g : t.collectives)
      collectives[g.kind + " " + g.group + " " + g.phase] = {g.count, g.in_bytes};
    EXPECT_EQ(collectives, b.collectives);
  }
}

TEST(Totals, AreTheNumbersByHand) {
  const Totals t = scan(program_of(kNested), 0);
  // Per micro-step 3 x 3 forward, 3 x 2 backward, 2 plain = 17; optimizer 2 x 2 + 2 = 6.
  EXPECT_EQ(t.ops, 4 * 17 + 6);
  // gemm 2 x 8 x 6 x 4 x 2 = 768; one attention product 2 x 2 x 8 x 8 x 4 = 1024: forward 2,
  // backward 4.
  EXPECT_EQ(t.model_flop, 12 * (768 + 6 * 1024) + 1000);
  EXPECT_EQ(t.model_flop_causal, 12 * (768 + 3 * 1024) + 1000);
  // The recomputed gemm (no batch) is 384, the scores of the backward pass one product.
  EXPECT_EQ(t.recompute_flop, 12 * (384 + 1024));
  // Forward leaves 77 bytes per iteration and holds 100 during its gemm: 1000 + 2 x 77 + 100 in the
  // third one. Backward starts from 3 x 77 and adds 50.
  EXPECT_EQ(t.activation_peak_bytes, 1000 + 2 * 77 + 100);
  ASSERT_EQ(t.phases.size(), 4U);
  EXPECT_EQ(t.phases[0].phase, "forward");
  EXPECT_EQ(t.phases[1].phase, "backward");
  EXPECT_EQ(t.phases[2].phase, "");
  EXPECT_EQ(t.phases[3].phase, "optimizer");
  ASSERT_EQ(t.collectives.size(), 3U);
  EXPECT_EQ(t.collectives[0].kind, "all_gather");
  EXPECT_EQ(t.collectives[0].count, 12);
  EXPECT_EQ(t.collectives[0].in_bytes, 12 * 16);
  EXPECT_EQ(t.collectives[0].out_bytes, 12 * 64);
  EXPECT_EQ(t.collectives[2].phase, "optimizer");  // the block without a phase has its caller's
  EXPECT_EQ(t.collectives[2].count, 2);
  EXPECT_EQ(t.ops_by_kind,
            (std::vector<std::pair<std::string, std::int64_t>>{
                {"gemm", 24}, {"attn", 24}, {"vec", 6}, {"coll", 18}, {"send", 1}, {"opaque", 1}}));
  // Rank 12 is pp 1: no gather, and a receive for the send.
  EXPECT_EQ(scan(program_of(kNested), 12).ops, 4 * 14 + 6);
}

TEST(Totals, LoopsAreNotUnrolled) {
  const std::string open = R"({"op":"block","id":"b"})"
                           "\n"
                           R"({"op":"gemm","id":"g","m":1,"n":1,"k":1})"
                           "\n"
                           R"({"op":"end"})"
                           "\n";
  const Totals t = scan(
      program_of(open + R"({"op":"repeat","id":"r","block":"b","times":1000000000000000})"), 0);
  EXPECT_EQ(t.ops, 1'000'000'000'000'000);
  EXPECT_EQ(t.model_flop, 2e15);
}

TEST(Totals, MemoryIsHeaderPlusActivations) {
  const TempFile file(R"({"trace":"trn3sim","v":1,"rank_unit":"chip","mesh":[["tp",2]],)"
                      R"("memory":[{"kind":"weights","bytes":1000},{"kind":"grads","bytes":2000}]})"
                      "\n"
                      R"({"op":"delay","id":"a","ns":1,"alloc":30})"
                      "\n"
                      R"({"op":"delay","id":"b","ns":1,"alloc":30,"free":60})"
                      "\n");
  EXPECT_EQ(peak_memory_bytes(read(file.path()), 1), 3060);
}

TEST(SumOverOps, MultipliesLoopsAndSumsEachBlockOnce) {
  // b1 calls b0 twice, b2 calls b1 twice, ... b49: 2^49 runs of one op, but 50 blocks.
  std::string text = kHeader;
  text += R"({"op":"block","id":"b0"})"
          "\n"
          R"({"op":"delay","id":"d","ns":1})"
          "\n"
          R"({"op":"end"})"
          "\n";
  for (int b = 1; b < 50; ++b) {
    const std::string call = R"({"op":"call","block":"b)" + std::to_string(b - 1) + R"(","id":")";
    text += R"({"op":"block","id":"b)" + std::to_string(b) + "\"}\n" + call + "x\"}\n" + call +
            "y\"}\n" +
            R"({"op":"end"})"
            "\n";
  }
  text += R"({"op":"repeat","id":"r","block":"b49","times":3})"
          "\n";
  const TempFile file(text);
  const Program program = read(file.path());
  int asked = 0;
  const double sum = sum_over_ops(program, -1, [&](std::int32_t, std::int32_t) {
    ++asked;
    return 1.0;
  });
  EXPECT_EQ(sum, 3.0 * static_cast<double>(std::int64_t{1} << 49));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace trn3sim::trace
