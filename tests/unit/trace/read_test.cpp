// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/base/sha256.hpp"
#include "trn3sim/trace/writer.hpp"

#include "unit/trace/trace_file.hpp"

namespace trn3sim::trace {
namespace {

template <class T>
const T& body(const Program& program, std::size_t op) {
  return std::get<T>(program.blocks[0].ops.at(op).body);
}

TEST(Read, HeaderAndMemory) {
  const TempFile file(
      R"({"trace":"trn3sim","v":1,"name":"m","rank_unit":"chip","mesh":[["dp",2],["tp",4]],)"
      R"("defaults":{"dtype":"mxfp8"},"model":{"free":[1,{"x":2}]},"source":{},)"
      R"("tokens_per_step":4096,"memory":[{"kind":"weights","bytes":100},)"
      R"({"kind":"optimizer","bytes":50,"live":"optimizer"}]})"
      "\r\n"
      R"({"op":"delay","id":1,"ns":5})"
      "\r\n");
  const Program p = read(file.path());
  EXPECT_EQ(p.header.name, "m");
  EXPECT_EQ(p.header.rank_unit, base::RankUnit::Chip);
  EXPECT_EQ(p.header.mesh.ranks(), 8);
  EXPECT_EQ(p.header.dtype, DType::Mxfp8);
  EXPECT_EQ(p.header.tokens_per_step, 4096);
  ASSERT_EQ(p.header.memory.size(), 2U);
  EXPECT_EQ(p.header.memory[0].live, "always");
  EXPECT_EQ(p.header.memory[1].live, "optimizer");
  EXPECT_EQ(p.blocks[0].ops[0].id, "1");  // an integer id is its decimal text
  EXPECT_EQ(p.blocks[0].ops[0].line, 2U);
  EXPECT_EQ(peak_memory_bytes(p, 0), 150);
}

TEST(Read, EveryOp) {
  const Program p = program_of(
      R"({"op":"gemm","id":"g","m":2,"n":3,"k":4})"
      "\n"
      R"({"op":"gemm","id":"w","m":2,"n":3,"k":4,"batch":5,"dtype":"fp8","out":"fp32",)"
      R"("accumulate":true,"a":"grad","b":"act","deps":["g"],"alloc":10,"free":4,"when":{"tp":3}})"
      "\n"
      R"({"op":"attn","id":"a","b":2,"heads":8,"kv_heads":2,"sq":16,"skv":32,"d":4,)"
      R"("causal":true,"pass":"bwd","deps":["w","^"],"recompute":true})"
      "\n"
      R"({"op":"attn","id":"a2","heads":8,"sq":16,"skv":32,"d":4})"
      "\n"
      R"({"op":"vec","id":"v","fn":"add","elems":6,"rd":7,"wr":0,"dtype":"fp32","fuse":"g",)"
      R"("deps":["g"]})"
      "\n"
      R"({"op":"coll","id":"c","kind":"all_gather","group":"tp+dp","in":1,"out":12,"dtype":"fp32"})"
      "\n"
      R"({"op":"recv","id":"r","peer":"pp-1","bytes":9,"tag":7,"when":{"pp":1}})"
      "\n"
      R"({"op":"mem","id":"m","dir":"store","space":"storage","bytes":11})"
      "\n"
      R"({"op":"send","id":"s","peer":"pp+1","bytes":9,"tag":7,"when":{"pp":0}})"
      "\n"
      R"({"op":"opaque","id":"o","flop":1,"bytes":2,"ns":3,"dtype":"fp16"})"
      "\n"
      R"({"op":"scan","id":"x","channels":256,"state":16,"seq":512,"dtype":"fp32"})"
      "\n");
  const std::vector<Op>& ops = p.blocks[0].ops;
  EXPECT_EQ(ops[0].deps, std::vector<std::int32_t>{kEntry});  // none given: the block's entry
  const Gemm& g = body<Gemm>(p, 0);
  EXPECT_EQ(g.batch, 1);
  EXPECT_FALSE(g.dtype.has_value());
  EXPECT_EQ(g.a, Role::Activation);
  EXPECT_EQ(g.b, Role::Weight);
  const Gemm& w = body<Gemm>(p, 1);
  EXPECT_EQ(w.batch, 5);
  EXPECT_EQ(w.dtype, DType::Fp8);
  EXPECT_EQ(w.out, DType::Fp32);
  EXPECT_TRUE(w.accumulate);
  EXPECT_EQ(w.a, Role::Gradient);
  EXPECT_EQ(w.b, Role::Activation);
  EXPECT_EQ(ops[1].alloc, 10);
  EXPECT_EQ(ops[1].free, 4);
  EXPECT_EQ(ops[1].when, (std::vector<std::pair<int, std::int64_t>>{{2, 3}}));
  EXPECT_TRUE(runs_on(p, ops[1], 23));
  EXPECT_FALSE(runs_on(p, ops[1], 22));
  EXPECT_EQ(ops[2].deps, (std::vector<std::int32_t>{1, kEntry}));
  EXPECT_TRUE(ops[2].recompute);
  EXPECT_TRUE(body<Attention>(p, 2).backward);
  EXPECT_EQ(body<Attention>(p, 3).kv_heads, 8);  // default: as heads
  EXPECT_FALSE(body<Attention>(p, 3).causal);
  const Vec& v = body<Vec>(p, 4);
  EXPECT_EQ(v.rd, 7);
  EXPECT_EQ(v.wr, 0);
  EXPECT_EQ(v.fuse, 0);
  const Collective& c = body<Collective>(p, 5);
  EXPECT_EQ(c.kind, CollectiveKind::AllGather);
  EXPECT_EQ(c.group, "dp+tp");  // in mesh order
  EXPECT_EQ(c.axes, (std::vector<int>{1, 2}));
  EXPECT_EQ(c.dtype, DType::Fp32);
  const PointToPoint& r = body<PointToPoint>(p, 6);
  EXPECT_FALSE(r.send);
  EXPECT_EQ(r.axis, 0);
  EXPECT_EQ(r.offset, -1);
  EXPECT_EQ(r.tag, 7);
  EXPECT_TRUE(body<Memory>(p, 7).store);
  EXPECT_EQ(body<Memory>(p, 7).space, MemorySpace::Storage);
  EXPECT_EQ(body<Opaque>(p, 9).ns, 3);
  EXPECT_EQ(body<Opaque>(p, 9).dtype, DType::Fp16);
  EXPECT_EQ(body<Scan>(p, 10).b, 1);
  EXPECT_EQ(body<Scan>(p, 10).channels, 256);
  EXPECT_EQ(body<Scan>(p, 10).state, 16);
  EXPECT_EQ(body<Scan>(p, 10).seq, 512);
  EXPECT_EQ(body<Scan>(p, 10).dtype, DType::Fp32);
}

TEST(Read, BlocksAndTheirResults) {
  const Program p = program_of(R"({"op":"block","id":"b","phase":"backward"})"
                               "\n"
                               R"({"op":"delay","id":"x","ns":1})"
                               "\n"
                               R"({"op":"delay","id":"y","ns":1})"
                               "\n"
                               R"({"op":"end","out":["y"]})"
                               "\n"
                               R"({"op":"delay","id":"x","ns":1})"
                               "\n"  // ids are those of the block
                               R"({"op":"repeat","id":"r","block":"b","times":3,"deps":["x"]})"
                               "\n");
  ASSERT_EQ(p.blocks.size(), 2U);
  EXPECT_EQ(p.blocks[1].id, "b");
  EXPECT_EQ(p.blocks[1].phase, "backward");
  EXPECT_EQ(p.blocks[1].out, std::vector<std::int32_t>{1});
  EXPECT_EQ(body<Repeat>(p, 1).block, 1);
  EXPECT_EQ(body<Repeat>(p, 1).times, 3);
}

TEST(Read, ContentKeyIsTheTextsDigest) {
  const std::string lines = R"({"op":"delay","id":"x","ns":1})"
                            "\n";
  EXPECT_EQ(program_of(lines).content_sha256, base::sha256(kHeader + lines));
}

TEST(VecFunctions, AreListed) {
  EXPECT_EQ(vec_function_names().size(), 25U);
  ASSERT_NE(vec_function("silu_mul_bwd"), nullptr);
  EXPECT_EQ(vec_function("silu_mul_bwd")->inputs, 3);
  EXPECT_EQ(vec_function("silu_mul_bwd")->outputs, 2);
  EXPECT_EQ(vec_function("silu_mul_bwd")->flop_per_element, 14);
  EXPECT_EQ(vec_function("nothing"), nullptr);
}

TEST(Writer, QuotesAndOrders) {
  EXPECT_EQ(LineWriter("delay").text("id", "a\"b\\\n").number("ns", -1).flag("x_f", true).line(),
            "{\"op\":\"delay\",\"id\":\"a\\\"b\\\\\\u000a\",\"ns\":-1,\"x_f\":true}\n");
  EXPECT_EQ(LineWriter("").texts("deps", {"a", "^"}).json("j", "[1]").object(),
            "{\"deps\":[\"a\",\"^\"],\"j\":[1]}");
}

}  // namespace
}  // namespace trn3sim::trace
