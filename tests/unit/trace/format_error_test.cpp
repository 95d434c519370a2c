// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// One bad file per rule, with the exact message.
#include "unit/trace/trace_file.hpp"
#include <fmt/format.h>

namespace trn3sim::trace {
namespace {

const std::string kFine = R"({"op":"delay","id":"a","ns":1})"
                          "\n";

// The message for the given op lines after kHeader (line 1).
std::string op_complaint(const std::string& lines) {
  return complaint(kHeader + lines);
}

struct BadOp {
  std::string lines, message;
};

void expect_all(const std::vector<BadOp>& cases) {
  for (const BadOp& c : cases) EXPECT_EQ(op_complaint(c.lines), c.message) << c.lines;
}

TEST(FormatErrors, FineFileIsFine) {
  EXPECT_EQ(op_complaint(kFine), "");
}

TEST(FormatErrors, UnknownNames) {
  expect_all({
      {R"({"op":"gem","id":"a","m":1,"n":1,"k":1})",
       "FILE:2: unknown op \"gem\"; did you mean \"gemm\"?; known: gemm, attn, vec, scan, coll, "
       "send, recv, mem, delay, opaque, call, repeat, block, end"},
      {R"({"op":"gemm","id":"a","m":1,"n":1,"k":1,"acumulate":true})",
       "FILE:2: gemm \"a\": unknown field \"acumulate\"; did you mean \"accumulate\"?"},
      {R"({"op":"vec","id":"a","fn":"rmsnrm","elems":1})",
       "FILE:2: vec \"a\": unknown vector function \"rmsnrm\"; did you mean \"rmsnorm\"?"},
      {R"({"op":"gemm","id":"a","m":1,"n":1,"k":1,"dtype":"bf17"})",
       "FILE:2: gemm \"a\": \"dtype\": unknown value \"bf17\"; expected one of fp32, tf32, bf16, "
       "fp16, fp8, mxfp8, mxfp4; did you mean \"bf16\"?"},
      {R"({"op":"coll","id":"a","kind":"all_redux","group":"tp","in":4,"out":4})",
       "FILE:2: coll \"a\": \"kind\": unknown value \"all_redux\"; expected one of all_reduce, "
       "all_gather, reduce_scatter, all_to_all, broadcast, barrier; did you mean \"all_reduce\"?"},
      {R"({"op":"call","id":"a","block":"layer"})",
       "FILE:2: call \"a\": block \"layer\" is not defined before this line"},
      {R"({"id":"a"})", "FILE:2: \"op\" is required, but missing"},
      {R"({"op":"delay","id":"a"})", "FILE:2: delay \"a\": \"ns\" is required, but missing"},
  });
}

TEST(FormatErrors, ExtensionFieldsAreIgnored) {
  EXPECT_EQ(op_complaint(R"({"op":"delay","id":"a","ns":1,"x_note":"hello"})"), "");
}

TEST(FormatErrors, Dependencies) {
  expect_all({
      {R"({"op":"delay","id":"a","ns":1,"deps":["b"]})"
       "\n"
       R"({"op":"delay","id":"b","ns":1})",
       "FILE:2: delay \"a\": \"deps\": no earlier op \"b\" in this block"},
      {R"({"op":"delay","id":"a","ns":1,"deps":["a"]})",
       "FILE:2: delay \"a\": \"deps\": no earlier op \"a\" in this block"},
      {R"({"op":"delay","id":"norm1","ns":1})"
       "\n"
       R"({"op":"delay","id":"b","ns":1,"deps":["nrm1"]})",
       "FILE:3: delay \"b\": \"deps\": no earlier op \"nrm1\" in this block; did you mean "
       "\"norm1\"?"},
      {R"({"op":"delay","id":"a","ns":1})"
       "\n"
       R"({"op":"delay","id":"a","ns":1})",
       "FILE:3: delay \"a\": the id is used in this block before (line 2)"},
      {R"({"op":"delay","id":"a","ns":1})"
       "\n"
       R"({"op":"delay","id":"b","ns":1,"deps":["a","a"]})",
       "FILE:3: delay \"b\": \"deps\": \"a\" is given twice"},
      {R"({"op":"delay","id":"a","ns":1,"deps":"^"})",
       "FILE:2: delay \"a\": \"deps\": expected an array, got \"^\""},
      {R"({"op":"scan","id":"a","channels":4,"state":4})",
       "FILE:2: scan \"a\": \"seq\" is required, but missing"},
      {R"({"op":"delay","id":"^","ns":1})",
       "FILE:2: \"id\": expected a non-empty string other than \"^\", or an integer, "
       "got \"^\""},
  });
}

TEST(FormatErrors, Values) {
  expect_all({
      {R"({"op":"delay","id":"a","ns":1,"ns":2})", "FILE:2: field \"ns\" is given twice"},
      {R"({"op":"gemm","id":"a","m":0,"n":1,"k":1})",
       "FILE:2: gemm \"a\": \"m\": expected an integer from 1 to below 2^60, got 0"},
      {R"({"op":"gemm","id":"a","m":-4,"n":1,"k":1})",
       "FILE:2: gemm \"a\": \"m\": expected an integer from 1 to below 2^60, got -4"},
      {R"({"op":"gemm","id":"a","m":3.5,"n":1,"k":1})",
       "FILE:2: gemm \"a\": \"m\": expected an integer from 1 to below 2^60, got 3.5"},
      {R"({"op":"gemm","id":"a","m":"4","n":1,"k":1})",
       "FILE:2: gemm \"a\": \"m\": expected an integer from 1 to below 2^60, got \"4\""},
      {R"({"op":"gemm","id":"a","m":9223372036854775808,"n":1,"k":1})",
       "FILE:2: gemm \"a\": \"m\": expected an integer from 1 to below 2^60, got "
       "9223372036854775808"},
      {R"({"op":"gemm","id":"a","m":1048576,"n":1048576,"k":1048576})",
       "FILE:2: gemm \"a\": 2 m n k batch FLOP reach 2^60; are the sizes right?"},
      {R"({"op":"gemm","id":"a","m":1,"n":1,"k":1,"accumulate":1})",
       "FILE:2: gemm \"a\": \"accumulate\": expected true or false, got 1"},
      {R"({"op":"attn","id":"a","heads":6,"kv_heads":4,"sq":8,"skv":8,"d":2})",
       "FILE:2: attn \"a\": \"heads\" 6 is not a multiple of \"kv_heads\" 4"},
      {R"({"op":"opaque","id":"a"})",
       "FILE:2: opaque \"a\": needs at least one of \"flop\", \"bytes\" and \"ns\" above 0"},
      {R"({"op":"delay","id":"a","ns":1,"when":{"pp":2}})",
       "FILE:2: delay \"a\": \"when\": \"pp\" has coordinates 0 to 1, got 2"},
      {R"({"op":"delay","id":"a","ns":1,"when":{"ep":0}})",
       "FILE:2: delay \"a\": \"when\": the mesh has no axis \"ep\"; did you mean \"pp\"?"},
      {R"({"op":"delay","id":"a","ns":1,"free":8})",
       "FILE: rank 0 frees 8 bytes more than it has allocated"},
      {"[1]", "FILE:2: expected one JSON object per line, got [1]"},
  });
  EXPECT_EQ(op_complaint(R"({"op":"delay","id":"a","ns":1)").substr(0, 24),
            "FILE:2: not valid JSON: ");
  EXPECT_EQ(op_complaint(kFine + R"({"op":"delay","id":"b","ns":1}{"op":"x"})").substr(0, 24),
            "FILE:3: not valid JSON: ");
}

// tp has 4 ranks, dp 3.
TEST(FormatErrors, CollectivesWhoseMembersDisagree) {
  const auto coll = [](std::string_view kind, std::string_view group, int in, int out) {
    return fmt::format(R"({{"op":"coll","id":"a","kind":"{}","group":"{}","in":{},"out":{}}})",
                       kind, group, in, out);
  };
  expect_all({
      {coll("all_gather", "tp", 100, 300),
       "FILE:2: coll \"a\": all_gather over the 4 ranks of \"tp\": out must be 4 x in, got in 100 "
       "and out 300"},
      {coll("reduce_scatter", "dp", 100, 33),
       "FILE:2: coll \"a\": reduce_scatter over the 3 ranks of \"dp\": in must be 3 x out, got in "
       "100 and out 33"},
      {coll("all_reduce", "tp", 100, 96),
       "FILE:2: coll \"a\": all_reduce over the 4 ranks of \"tp\": in and out must be equal, got "
       "in "
       "100 and out 96"},
      {coll("all_to_all", "dp+tp", 100, 100),
       "FILE:2: coll \"a\": all_to_all over the 12 ranks of \"dp+tp\": in and out must be equal "
       "and "
       "a multiple of 12, got in 100 and out 100"},
      {coll("barrier", "tp", 1, 1),
       "FILE:2: coll \"a\": barrier over the 4 ranks of \"tp\": in and out must be 0, got in 1 and "
       "out 1"},
      {coll("all_reduce", "tpp", 4, 4),
       "FILE:2: coll \"a\": \"group\": the mesh has no axis \"tpp\"; did you mean \"pp\"?"},
      {coll("all_reduce", "tp+tp", 4, 4),
       "FILE:2: coll \"a\": \"group\": \"tp+tp\" names an axis twice"},
      {coll("all_reduce", "tp", 0, 0),
       "FILE:2: coll \"a\": \"in\": expected an integer from 1 to below 2^60, got 0\n"
       "FILE:2: coll \"a\": \"out\": expected an integer from 1 to below 2^60, got 0"},
  });
}

TEST(FormatErrors, Fusion) {
  const std::string gemm = R"({"op":"gemm","id":"g","m":8,"n":6,"k":2})"
                           "\n";
  const auto vec = [](std::string_view fn, int elems, std::string_view deps) {
    return fmt::format(R"({{"op":"vec","id":"v","fn":"{}","elems":{},"fuse":"g","deps":{}}})", fn,
                       elems, deps);
  };
  EXPECT_EQ(op_complaint(gemm + vec("gelu", 48, R"(["g"])")), "");      // all 8 x 6 results
  EXPECT_EQ(op_complaint(gemm + vec("silu_mul", 24, R"(["g"])")), "");  // gate and up: half
  EXPECT_EQ(op_complaint(gemm + vec("rope", 32, R"(["g"])")), "");      // q and k of q, k, v
  const std::string misfit =
      "FILE:3: vec \"v\": \"elems\" {} does not fit the 48 results of the gemm it is fused to (all "
      "of them; half for silu_mul; at most for rope)";
  expect_all({
      {gemm + vec("gelu", 24, R"(["g"])"), fmt::format(fmt::runtime(misfit), 24)},
      {gemm + vec("rope", 49, R"(["g"])"), fmt::format(fmt::runtime(misfit), 49)},
      {gemm + vec("gelu", 48, R"(["^"])"),
       "FILE:3: vec \"v\": \"fuse\": \"deps\" must name the gemm \"g\" too"},
      {vec("gelu", 48, "[]"),
       "FILE:2: vec \"v\": \"fuse\": \"g\" is no earlier gemm of this block"},
  });
}

// Rank = 12 pp + 4 dp + tp.
std::string message(std::string_view op, std::string_view peer, int pp, int bytes = 8) {
  return fmt::format(R"({{"op":"{}","id":"{}{}","peer":"{}","bytes":{},"when":{{"pp":{}}}}})"
                     "\n",
                     op, op, pp, peer, bytes, pp);
}

TEST(FormatErrors, PointToPoint) {
  // pp has 2 ranks: the first one has a next one, the second one has not.
  const std::string sends = message("send", "pp+1", 0);
  const std::string receives = message("recv", "pp-1", 1);
  EXPECT_EQ(op_complaint(sends + receives), "");
  expect_all({
      {message("send", "pp+1", 1),
       "FILE:2: send \"send1\": the rank at pp=1 has no peer \"pp+1\"; restrict it with \"when\""},
      {message("recv", "pp-1", 0),
       "FILE:2: recv \"recv0\": the rank at pp=0 has no peer \"pp-1\"; restrict it with \"when\""},
      {R"({"op":"send","id":"s","peer":"pp+1","bytes":8})",
       "FILE:2: send \"s\": the rank at pp=1 has no peer \"pp+1\"; restrict it with \"when\""},
      {message("send", "pp", 0),
       "FILE:2: send \"send0\": \"peer\": expected an axis and an offset such as \"pp+1\", got "
       "\"pp\""},
      {sends, "FILE:2: rank 0 sends 1 messages of 8 bytes (tag 0) to rank 12, which receives 0"},
      {receives,
       "FILE:2: rank 12 expects 1 messages of 8 bytes (tag 0) from rank 0, which sends 0"},
      {sends + message("recv", "pp-1", 1, 9),
       "FILE:2: rank 0 sends 1 messages of 8 bytes (tag 0) to rank 12, which receives 0\n"
       "FILE:3: rank 12 expects 1 messages of 9 bytes (tag 0) from rank 0, which sends 0"},
  });
  // A `when` on the call restricts what is called.
  EXPECT_EQ(op_complaint(R"({"op":"block","id":"b"})"
                         "\n"
                         R"({"op":"send","id":"s","peer":"pp+1","bytes":8})"
                         "\n"
                         R"({"op":"end"})"
                         "\n"
                         R"({"op":"call","id":"c","block":"b","when":{"pp":0}})"
                         "\n" +
                         receives),
            "");
}

TEST(FormatErrors, CollectivesThatSomeMembersMiss) {
  const auto coll = [](std::string_view id, int bytes, std::string_view when) {
    return fmt::format(
        R"({{"op":"coll","id":"{}","kind":"all_reduce","group":"tp","in":{},"out":{}{}}})"
        "\n",
        id, bytes, bytes, when);
  };
  // All members of the groups at pp 0 run it: fine.
  EXPECT_EQ(op_complaint(kFine + coll("c", 8, R"(,"when":{"pp":0})")), "");
  // Each member has a line of its own: fine.
  EXPECT_EQ(op_complaint(coll("c", 8, R"(,"when":{"tp":0})") + coll("d", 8, R"(,"when":{"tp":1})") +
                         coll("e", 8, R"(,"when":{"tp":2})") + coll("f", 8, R"(,"when":{"tp":3})")),
            "");
  EXPECT_EQ(
      op_complaint(coll("c", 8, R"(,"when":{"tp":0})") + coll("d", 8, "")),
      "FILE:2: the members of a group disagree: rank 0 runs all_reduce (in 8, out 8) 2 times, "
      "rank 1 runs it 1 times\n"
      "FILE:3: the members of a group disagree: rank 1 runs all_reduce (in 8, out 8) 1 times, "
      "rank 0 runs it 2 times");
}

TEST(FormatErrors, Blocks) {
  const std::string open = R"({"op":"block","id":"b"})"
                           "\n";
  const std::string end = R"({"op":"end"})"
                          "\n";
  expect_all({
      {open + kFine, "FILE:2: block \"b\" has no \"end\""},
      {open + end + kFine, "FILE:3: end of block \"b\": the block has no operations"},
      {end + kFine, "FILE:2: end: no block is open"},
      {open +
           R"({"op":"call","id":"c","block":"b"})"
           "\n" +
           end + kFine,
       "FILE:3: call \"c\": block \"b\" calls itself"},
      {open + kFine + end + open + kFine + end + kFine,
       "FILE:5: block \"b\": a block of this id is defined on line 2"},
      {open + kFine +
           R"({"op":"end","out":["z"]})"
           "\n" +
           kFine,
       "FILE:4: end of block \"b\": \"out\": no op \"z\" in this block"},
      {open + kFine + end,
       "FILE:4: the trace has no operation outside its blocks, so it does "
       "nothing"},
      {open + kFine + end + R"({"op":"repeat","id":"r","block":"b","times":0})",
       "FILE:5: repeat \"r\": \"times\": expected an integer from 1 to below 2^60, got 0"},
      {R"({"op":"block","id":"b","phase":"fwd"})"
       "\n" +
           kFine + end + kFine,
       "FILE:2: block \"b\": \"phase\": unknown value \"fwd\"; expected one of forward, backward, "
       "optimizer"},
  });
  // 2^40 times 2^40 delays.
  const std::string many = R"("times":1099511627776})"
                           "\n";
  EXPECT_EQ(op_complaint(open + kFine + end +
                         R"({"op":"block","id":"c"})"
                         "\n" +
                         R"({"op":"repeat","id":"r","block":"b",)" + many + end +
                         R"({"op":"repeat","id":"r","block":"c",)" + many),
            "FILE:8: the program runs 2^60 operations or more; are the repeats right?");
}

TEST(FormatErrors, AllProblemsUpToTwenty) {
  std::string lines;
  for (int i = 0; i < 3; ++i)
    lines += fmt::format(R"({{"op":"delay","id":"d{}","ns":-1}})"
                         "\n",
                         i);
  const std::string three = op_complaint(lines);
  EXPECT_EQ(std::count(three.begin(), three.end(), '\n'), 2);  // three lines
  for (int i = 3; i < 30; ++i)
    lines += fmt::format(R"({{"op":"delay","id":"d{}","ns":-1}})"
                         "\n",
                         i);
  const std::string many = op_complaint(lines);
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 20);  // twenty and the last one
  EXPECT_NE(many.find("\nFILE: stopped here; more problems may follow"), std::string::npos);
}

TEST(FormatErrors, Header) {
  const auto header = [](std::string_view rest) {
    return complaint(fmt::format(R"({{"trace":"trn3sim","v":1,"rank_unit":"chip",{}}})", rest) +
                     "\n" + kFine);
  };
  EXPECT_EQ(header(R"("mesh":[["tp",4]])"), "");
  EXPECT_EQ(header(R"("name":"t")"), "FILE:1: header: \"mesh\" is required, but missing");
  EXPECT_EQ(header(R"("mesh":[["tp",0]])"),
            "FILE:1: header: \"mesh\": expected pairs of a name (a-z, 0-9, _) and a size, such as "
            "[\"tp\",4], got [\"tp\",0]");
  EXPECT_EQ(header(R"("mesh":[["tp",4],["tp",2]])"),
            "FILE:1: header: \"mesh\": axis \"tp\" is given twice");
  EXPECT_EQ(header(R"("mesh":[["tp",4]],"memroy":[])"),
            "FILE:1: header: unknown field \"memroy\"; did you mean \"memory\"?");
  EXPECT_EQ(
      header(R"("mesh":[["tp",4]],"memory":[{"kind":"weights","bytes":-1}])"),
      "FILE:1: header \"memory\": \"bytes\": expected an integer from 0 to below 2^60, got -1");
  EXPECT_EQ(complaint(R"({"trace":"trn3sim","v":2,"rank_unit":"chip","mesh":[["tp",4]]})"
                      "\n"),
            "FILE:1: header: \"v\": this program reads version 1 of the format, not 2");
  EXPECT_EQ(complaint(R"({"trace":"trn3sim","v":1,"rank_unit":"chips","mesh":[["tp",4]]})"
                      "\n"),
            "FILE:1: header: \"rank_unit\": unknown value \"chips\"; expected one of chip, "
            "logical_core, core; did you mean \"chip\"?");
}

}  // namespace
}  // namespace trn3sim::trace
