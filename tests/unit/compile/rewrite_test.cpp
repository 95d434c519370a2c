// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "trn3sim/compile/plan.hpp"
#include "trn3sim/config/run_spec.hpp"

#include "compile/handover.hpp"
#include <gtest/gtest.h>

namespace trn3sim::compile {
namespace {

trace::Program main_job() {
  return trace::read(std::string(TRN3SIM_SOURCE_DIR) + "/configs/traces/llama7b.trace");
}

config::CompileSpec overlapping() {
  config::CompileSpec compile;
  compile.overlap_collectives = true;
  return compile;
}

using Names = std::vector<std::string>;

const trace::Block& block_of(const trace::Program& program, const std::string& id) {
  return *std::ranges::find(program.blocks, id, &trace::Block::id);
}

const trace::Op& op_of(const trace::Block& block, const std::string& id) {
  const auto it = std::ranges::find(block.ops, id, &trace::Op::id);
  EXPECT_NE(it, block.ops.end()) << id;
  return *it;
}

std::vector<std::string> deps_of(const trace::Block& block, const std::string& id) {
  std::vector<std::string> names;
  for (const std::int32_t d : op_of(block, id).deps)
    names.push_back(d < 0 ? "^" : block.ops[static_cast<std::size_t>(d)].id);
  return names;
}

TEST(Overlap, IsOffByDefault) {
  const trace::Program program = rewrite(main_job(), {});
  EXPECT_EQ(block_of(program, "layer_fwd").ops.size(),
            block_of(main_job(), "layer_fwd").ops.size());
}

// Chunk i of an all-gather feeds piece i of its GEMM and of the epilogue; the reduce-scatter takes
// the pieces of its own. Ops that need all rows wait for all pieces.
TEST(Overlap, CutsCollectivesWithTheirGemms) {
  const trace::Program program = rewrite(main_job(), overlapping());
  const trace::Block& layer = block_of(program, "layer_fwd");
  EXPECT_EQ(deps_of(layer, "ag1.2"), Names{"norm1"});
  EXPECT_EQ(deps_of(layer, "qkv.2"), Names{"ag1.2"});
  EXPECT_EQ(deps_of(layer, "rope.2"), Names{"qkv.2"});
  EXPECT_EQ(deps_of(layer, "attn"), (Names{"rope.0", "rope.1", "rope.2", "rope.3"}));
  EXPECT_EQ(deps_of(layer, "o.0"), Names{"attn"});
  EXPECT_EQ(deps_of(layer, "rs1.3"), Names{"o.3"});
  EXPECT_EQ(deps_of(layer, "down.1"), Names{"silu.1"});
  const auto& rope = std::get<trace::Vec>(op_of(layer, "rope.1").body);
  EXPECT_EQ(layer.ops[static_cast<std::size_t>(rope.fuse)].id, "qkv.1");
  EXPECT_EQ(std::get<trace::Gemm>(op_of(layer, "qkv.0").body).m, 1024);
}

// Weight gradients contract over the rows: they stay whole, and so does what only they need.
TEST(Overlap, LeavesWeightGradientsAlone) {
  const trace::Program program = rewrite(main_job(), overlapping());
  const trace::Block& layer = block_of(program, "layer_bwd");
  EXPECT_EQ(op_of(layer, "down_dw").deps.size(), 5U);  // four chunks and silu_again
  EXPECT_EQ(op_of(layer, "ag_x2").deps.size(), 1U);
  EXPECT_EQ(std::get<trace::Collective>(op_of(layer, "ag_x2").body).in, 8388608);
}

TEST(Overlap, KeepsTheWorkAndTheMemory) {
  const trace::Program before = main_job(), after = rewrite(before, overlapping());
  const trace::Totals a = trace::scan(before, 0), b = trace::scan(after, 0);
  EXPECT_EQ(a.model_flop, b.model_flop);
  EXPECT_EQ(a.activation_peak_bytes, b.activation_peak_bytes);
  const auto bytes = [](const trace::Totals& t) {
    std::int64_t sum = 0;
    for (const trace::GroupTotals& g : t.collectives) sum += g.in_bytes + g.out_bytes;
    return sum;
  };
  EXPECT_EQ(bytes(a), bytes(b));
  EXPECT_GT(b.ops, a.ops);
}

trace::Program program_of(const std::string& ops) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("trn3sim_rewrite_test_" + std::to_string(getpid()) + ".trace");
  std::ofstream(path) << R"({"trace":"trn3sim","v":1,"name":"t","mesh":[["tp",2]],)"
                      << R"("rank_unit":"logical_core","defaults":{"dtype":"bf16"}})"
                      << "\n"
                      << ops;
  const trace::Program program = trace::read(path);
  std::filesystem::remove(path);
  return program;
}

// The gathered operand is the weight: rows of the results do not follow its chunks.
TEST(Overlap, DoesNotCutGathersOfWeights) {
  const trace::Program program = rewrite(
      program_of(
          R"({"op":"coll","id":"w","kind":"all_gather","group":"tp","in":16777216,"out":33554432,"deps":["^"]}
{"op":"gemm","id":"g","m":4096,"n":4096,"k":4096,"deps":["w"]}
)"),
      overlapping());
  EXPECT_EQ(program.blocks.front().ops.size(), 2U);
}

std::string gather(const std::string& id, std::int64_t in, const std::string& rest) {
  return R"({"op":"coll","id":")" + id + R"(","kind":"all_gather","group":"tp","in":)" +
         std::to_string(in) + R"(,"out":)" + std::to_string(2 * in) + "," + rest + "}\n";
}

std::vector<std::string> ids_of(const trace::Block& block) {
  std::vector<std::string> ids;
  for (const trace::Op& op : block.ops) ids.push_back(op.id);
  return ids;
}

// Neighbours with the same dependencies; what waited for one waits for all.
TEST(Merge, MakesOneOfNeighbouringGathers) {
  const std::string ops = R"({"op":"vec","id":"n","fn":"add","elems":4096,"deps":["^"]})"
                          "\n" +
                          gather("a", 64, R"("deps":["n"],"alloc":10)") +
                          gather("b", 128, R"("deps":["n"],"alloc":20)") +
                          gather("c", 64, R"("deps":["^"])") +
                          R"({"op":"vec","id":"x","fn":"add","elems":4096,"deps":["a","b"]})"
                          "\n"
                          R"({"op":"vec","id":"y","fn":"add","elems":4096,"deps":["b","c"]})"
                          "\n";
  const trace::Program program = rewrite(program_of(ops), {});
  const trace::Block& block = program.blocks.front();
  EXPECT_EQ(ids_of(block), (Names{"n", "a+b", "c", "x", "y"}));
  const trace::Op& merged = op_of(block, "a+b");
  EXPECT_EQ(std::get<trace::Collective>(merged.body).in, 192);
  EXPECT_EQ(std::get<trace::Collective>(merged.body).out, 384);
  EXPECT_EQ(merged.alloc, 30);
  EXPECT_EQ(deps_of(block, "a+b"), Names{"n"});
  EXPECT_EQ(deps_of(block, "x"), Names{"a+b"});
  EXPECT_EQ(deps_of(block, "y"), (Names{"a+b", "c"}));

  config::CompileSpec off;
  off.merge_gathers = false;
  EXPECT_EQ(rewrite(program_of(ops), off).blocks.front().ops.size(), 6U);
}

TEST(Merge, StopsAt32MiBAndAtOtherKinds) {
  const std::int64_t half = 8 << 20;  // 16 MiB of result
  const std::string entry = R"("deps":["^"])";
  const auto ids = [](const std::string& ops) {
    return ids_of(rewrite(program_of(ops), {}).blocks.front());
  };
  EXPECT_EQ(ids(gather("a", half, entry) + gather("b", half, entry) + gather("c", 64, entry)),
            (Names{"a+b", "c"}));
  EXPECT_EQ(ids(gather("a", half, entry) + gather("b", half + 64, entry)), (Names{"a", "b"}));
  EXPECT_EQ(ids(gather("a", 64, entry) + gather("b", 64, entry + R"(,"dtype":"fp32")")),
            (Names{"a", "b"}));
  EXPECT_EQ(ids(gather("a", 64, entry) + gather("b", 64, R"("deps":["a"])")), (Names{"a", "b"}));
  const std::string reduce =
      R"({"op":"coll","id":"r","kind":"reduce_scatter","group":"tp","in":128,"out":64,"deps":["^"]})";
  EXPECT_EQ(ids(reduce + "\n" + gather("a", 64, entry)), (Names{"r", "a"}));
}

TEST(Merge, NumbersEpiloguesAnewAndEndsTheBlockWithAll) {
  const trace::Program program = rewrite(
      program_of(gather("a", 64, R"("deps":["^"])") + gather("b", 64, R"("deps":["^"])") +
                 R"({"op":"gemm","id":"g","m":64,"n":64,"k":64,"deps":["b"]})"
                 "\n"
                 R"({"op":"vec","id":"e","fn":"scale","elems":4096,"fuse":"g","deps":["g"]})"
                 "\n"),
      {});
  const trace::Block& block = program.blocks.front();
  EXPECT_EQ(ids_of(block), (Names{"a+b", "g", "e"}));
  EXPECT_EQ(std::get<trace::Vec>(op_of(block, "e").body).fuse, 1);
}

std::vector<std::int32_t> joins(const std::string& ops) {
  return handovers(program_of(ops).blocks.front(), base::DType::Bf16);
}

// 8 heads of 4096 x 4096 bf16 per layer, 32 layers, on top of what the trace keeps.
TEST(Probabilities, LiveUntilTheBackwardPassWithoutFlash) {
  config::CompileSpec compile;
  const std::int64_t flash = trace::peak_memory_bytes(rewrite(main_job(), compile), 0);
  compile.flash_attention = false;
  const std::int64_t through_hbm = trace::peak_memory_bytes(rewrite(main_job(), compile), 0);
  EXPECT_EQ(through_hbm - flash, 32LL * 8 * 4096 * 4096 * 2);
}

TEST(Probabilities, AreScratchWithoutABackwardPass) {
  config::CompileSpec compile;
  compile.flash_attention = false;
  const std::string forward =
      R"({"op":"attn","id":"f","b":1,"heads":2,"kv_heads":2,"sq":128,"skv":128,"d":64,"causal":true,"pass":"fwd")";
  const auto allocs = [&](const std::string& ops) {
    std::vector<std::int64_t> bytes;
    const trace::Program rewritten = rewrite(program_of(ops), compile);
    for (const trace::Op& op : rewritten.blocks.front().ops)
      bytes.push_back(op.alloc - op.free);
    return bytes;
  };
  using Bytes = std::vector<std::int64_t>;
  EXPECT_EQ(allocs(forward + "}\n"), Bytes{0});
  std::string again = forward, backward = forward;
  again.replace(again.find("\"f\""), 3, "\"r\"");
  backward.replace(backward.find("\"f\""), 3, "\"b\"").replace(backward.find("fwd"), 3, "bwd");
  const std::int64_t kept = 2 * 128 * 128 * 2;
  EXPECT_EQ(allocs(forward + "}\n" + backward + "}\n"), (Bytes{kept, -kept}));
  EXPECT_EQ(allocs(forward + "}\n" + again + R"(,"recompute":true})" + "\n" + backward + "}\n"),
            (Bytes{0, kept, -kept}));
}

TEST(Handover, VectorOpsTakeTheResultBeforeThemFromSbuf) {
  const trace::Program program = main_job();
  const trace::Block& layer = block_of(program, "layer_fwd");
  const std::vector<std::int32_t> joined = handovers(layer, base::DType::Bf16);
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    if (layer.ops[i].id == "norm2") {
      EXPECT_EQ(layer.ops[static_cast<std::size_t>(joined[i])].id, "add1");
    } else {
      EXPECT_EQ(joined[i], -1) << layer.ops[i].id;
    }
  }
}

TEST(Handover, NotPastOtherWorkNorForLateInputsNorOtherSizes) {
  const std::string add = R"({"op":"vec","id":"a","fn":"add","elems":4096,"deps":["^"]})";
  const std::string end = R"({"op":"vec","id":"b","fn":"add","elems":4096,"deps":["a")";
  EXPECT_EQ(joins(add + "\n" + end + "]}\n").back(), 0);
  EXPECT_EQ(joins(add + "\n" + R"({"op":"vec","id":"x","fn":"scale","elems":64,"deps":["^"]})" +
                  "\n" + end + "]}\n")
                .back(),
            -1);
  const std::string gather =
      R"({"op":"coll","id":"c","kind":"all_gather","group":"tp","in":64,"out":128,"deps":["^"]})";
  EXPECT_EQ(joins(add + "\n" + gather + "\n" + end + "]}\n").back(), 0);
  EXPECT_EQ(joins(add + "\n" + gather + "\n" + end + R"(,"c"]})" + "\n").back(), -1);
  EXPECT_EQ(joins(gather + "\n" + R"({"op":"vec","id":"a","fn":"add","elems":4096,"deps":["c"]})" +
                  "\n" + end + R"(,"c"]})" + "\n")
                .back(),
            1);
  EXPECT_EQ(joins(add + "\n" + R"({"op":"vec","id":"b","fn":"add","elems":64,"deps":["a"]})" + "\n")
                .back(),
            -1);
}

// A chain of additions is one kernel that reads one more tensor per op instead of two.
TEST(Handover, SavesTheLoads) {
  const auto run = config::load_run(std::string(TRN3SIM_SOURCE_DIR) + "/configs/chip1.json", {});
  const topology::Graph graph = topology::build(run.system);
  const trace::Program program = program_of(
      R"({"op":"vec","id":"a","fn":"add","elems":4096,"deps":["^"]}
{"op":"vec","id":"b","fn":"add","elems":4096,"deps":["a"]}
{"op":"vec","id":"c","fn":"rmsnorm","elems":4096,"deps":["b"]}
)");
  const Plan plan = place(program, graph, run);
  ASSERT_EQ(plan.kernels.size(), 1U);
  EXPECT_EQ(plan.kernels.front().rd, 3 * 8192);
  EXPECT_EQ(plan.kernels.front().wr, 3 * 8192);
  EXPECT_EQ(plan.kernels.front().epilogues.size(), 2U);
}

}  // namespace
}  // namespace trn3sim::compile
