// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/trace/trace_file.hpp"

namespace trn3sim::trace {
namespace {

// The steps of a rank: "id" for an op, "+block.iteration" and "-block.iteration" around a block.
std::vector<std::string> walk(const Program& p, std::int64_t rank) {
  std::vector<std::string> seen;
  Cursor cursor(p, rank);
  for (Cursor::Step s = cursor.next(); s.event != Cursor::Event::End; s = cursor.next()) {
    const Block& block = p.blocks[static_cast<std::size_t>(s.block)];
    if (s.event == Cursor::Event::Op)
      seen.push_back(block.ops[static_cast<std::size_t>(s.op)].id);
    else
      seen.push_back((s.event == Cursor::Event::Enter ? "+" : "-") + block.id + "." +
                     std::to_string(s.iteration));
  }
  EXPECT_EQ(cursor.next().event, Cursor::Event::End);  // stays at the end
  return seen;
}

const std::string kNested = R"({"op":"block","id":"in"})"
                            "\n"
                            R"({"op":"delay","id":"a","ns":1})"
                            "\n"
                            R"({"op":"delay","id":"b","ns":1,"when":{"tp":1}})"
                            "\n"
                            R"({"op":"end"})"
                            "\n"
                            R"({"op":"block","id":"mid"})"
                            "\n"
                            R"({"op":"repeat","id":"r","block":"in","times":2})"
                            "\n"
                            R"({"op":"delay","id":"c","ns":1})"
                            "\n"
                            R"({"op":"end"})"
                            "\n"
                            R"({"op":"delay","id":"first","ns":1})"
                            "\n"
                            R"({"op":"repeat","id":"m","block":"mid","times":2,"when":{"pp":0}})"
                            "\n"
                            R"({"op":"call","id":"k","block":"in"})"
                            "\n";

TEST(Cursor, WalksLoopsInProgramOrder) {
  const Program p = program_of(kNested);
  // Rank 0 has pp 0 and tp 0: no b.
  EXPECT_EQ(walk(p, 0),
            (std::vector<std::string>{"first",  "+mid.0", "+in.0", "a",      "-in.0",  "+in.1",
                                      "a",      "-in.1",  "c",     "-mid.0", "+mid.1", "+in.0",
                                      "a",      "-in.0",  "+in.1", "a",      "-in.1",  "c",
                                      "-mid.1", "+in.0",  "a",     "-in.0"}));
  // Rank 13 = pp 1, dp 0, tp 1: the repeat does not run there, b does.
  EXPECT_EQ(walk(p, 13), (std::vector<std::string>{"first", "+in.0", "a", "b", "-in.0"}));
}

TEST(Cursor, EnterAndLeaveNameTheOpOfTheParent) {
  const Program p = program_of(kNested);
  Cursor cursor(p, 0);
  EXPECT_EQ(cursor.next().op, 0);  // "first"
  const Cursor::Step enter = cursor.next();
  EXPECT_EQ(enter.event, Cursor::Event::Enter);
  EXPECT_EQ(enter.block, 2);
  EXPECT_EQ(enter.op, 1);  // "m" of the top level
  Cursor::Step s = cursor.next();
  while (s.event != Cursor::Event::Leave || s.block != 2) s = cursor.next();
  EXPECT_EQ(s.op, 1);
  EXPECT_EQ(s.iteration, 0);
}

}  // namespace
}  // namespace trn3sim::trace
