// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/sim/sequencer.hpp"

#include <string>
#include <systemc>
#include <vector>

#include <gtest/gtest.h>

namespace trn3sim::sim {
namespace {

trace::Op op(std::string id, trace::Body body, std::vector<std::int32_t> deps) {
  trace::Op o;
  o.id = std::move(id);
  o.body = std::move(body);
  o.deps = std::move(deps);
  return o;
}

trace::Vec vec() {
  trace::Vec v;
  v.fn = "copy";
  v.elems = 1;
  return v;
}

trace::Collective coll() {
  trace::Collective c;
  c.group = "tp";
  c.axes = {0};
  return c;
}

trace::Block block(std::string id, std::vector<trace::Op> ops, std::vector<std::int32_t> out = {}) {
  trace::Block b;
  b.id = std::move(id);
  b.ops = std::move(ops);
  b.out = std::move(out);
  return b;
}

// Records what is issued; ops complete when the test says so.
class Recorder : public IssueSink {
 public:
  Recorder(trace::Program program, std::int64_t rank) : program_(std::move(program)) {
    plan_.ops.resize(program_.blocks.size());
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      plan_.ops[b].resize(program_.blocks[b].ops.size());
      for (std::size_t i = 0; i < plan_.ops[b].size(); ++i) {
        if (std::holds_alternative<trace::Collective>(program_.blocks[b].ops[i].body))
          plan_.ops[b][i].collective = 0;
        const auto* v = std::get_if<trace::Vec>(&program_.blocks[b].ops[i].body);
        plan_.ops[b][i].fused = v != nullptr && v->fuse >= 0;
      }
    }
    tables_ = make_tables(program_, plan_, 4);
    sequencer_ = std::make_unique<Sequencer>(tables_, rank, *this);
    sequencer_->start();
  }
  void issue(std::int32_t queue, const Ticket& t) override {
    issued.push_back(name(t));
    running.emplace_back(queue, t);
  }
  // Completes the running op of that name.
  void complete(const std::string& id) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (name(running[i].second) != id) continue;
      const auto [queue, ticket] = running[i];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      sequencer_->complete(queue, ticket);
      return;
    }
    FAIL() << id << " is not running";
  }
  [[nodiscard]] std::string name(const Ticket& t) const {
    return program_.blocks[static_cast<std::size_t>(t.block)]
        .ops[static_cast<std::size_t>(t.op)]
        .id;
  }
  Sequencer& sequencer() { return *sequencer_; }

  std::vector<std::string> issued;
  std::vector<std::pair<std::int32_t, Ticket>> running;

 private:
  trace::Program program_;
  compile::Plan plan_;
  SequencerTables tables_;
  std::unique_ptr<Sequencer> sequencer_;
};

trace::Program program_of(std::vector<trace::Block> blocks) {
  trace::Program p;
  p.header.mesh = base::Mesh({{"tp", 2}});
  p.blocks = std::move(blocks);
  return p;
}

using Names = std::vector<std::string>;

TEST(Sequencer, IssuesInOrderPerQueueAndOverlapsQueues) {
  // a -> c (collective) -> b; d depends on a only, but waits behind b in the compute queue.
  Recorder r(program_of({block("main", {op("a", vec(), {trace::kEntry}), op("c", coll(), {0}),
                                        op("b", vec(), {1}), op("d", vec(), {0})})}),
             0);
  EXPECT_EQ(r.issued, Names({"a"}));
  r.complete("a");
  EXPECT_EQ(r.issued, Names({"a", "c"}));
  r.complete("c");
  EXPECT_EQ(r.issued, Names({"a", "c", "b"}));
  r.complete("b");
  EXPECT_EQ(r.issued, Names({"a", "c", "b", "d"}));
  EXPECT_FALSE(r.sequencer().finished());
  r.complete("d");
  EXPECT_TRUE(r.sequencer().finished());
  EXPECT_EQ(r.sequencer().completed_ops(), 4);
}

TEST(Sequencer, KnowsWhetherTheNextOpHasItsInputs) {
  Recorder r(program_of({block("main", {op("a", vec(), {trace::kEntry}),
                                        op("c", coll(), {trace::kEntry}), op("b", vec(), {1})})}),
             0);
  const auto next = [&] { return r.sequencer().next_is_ready(kQueueCompute); };
  EXPECT_FALSE(next());  // b waits for c
  r.complete("c");
  EXPECT_TRUE(next());
  r.complete("a");
  EXPECT_FALSE(next());  // b runs, nothing waits
}

TEST(Sequencer, AnIndependentOpRunsBesideACollective) {
  Recorder r(program_of({block(
                 "main", {op("c", coll(), {trace::kEntry}), op("v", vec(), {trace::kEntry})})}),
             0);
  EXPECT_EQ(r.issued.size(), 2U);
}

TEST(Sequencer, RepeatsAreSequentialThroughTheirOuts) {
  trace::Repeat repeat;
  repeat.block = 1;
  repeat.times = 3;
  // In the body x is the only out, y (a collective after x) need not be done for the next
  // iteration.
  Recorder r(
      program_of({block("main", {op("loop", repeat, {trace::kEntry}), op("end", vec(), {0})}),
                  block("body", {op("x", vec(), {trace::kEntry}), op("y", coll(), {0})}, {0})}),
      0);
  EXPECT_EQ(r.issued, Names({"x"}));
  r.complete("x");
  EXPECT_EQ(r.issued, Names({"x", "x", "y"}));
  r.complete("x");
  EXPECT_EQ(r.issued, Names({"x", "x", "y", "x"}));
  r.complete("x");  // outs of the last iteration release "end"
  EXPECT_EQ(r.issued.back(), "end");
  for (int i = 0; i < 3; ++i) r.complete("y");
  r.complete("end");
  EXPECT_TRUE(r.sequencer().finished());
}

TEST(Sequencer, FusedOpsCompleteWithTheirGemm) {
  trace::Gemm g;
  g.m = g.n = g.k = 1;
  trace::Vec fused = vec();
  fused.fuse = 0;
  Recorder r(program_of({block(
                 "main", {op("g", g, {trace::kEntry}), op("f", fused, {0}), op("n", vec(), {1})})}),
             0);
  EXPECT_EQ(r.issued, Names({"g"}));
  r.complete("g");
  EXPECT_EQ(r.issued, Names({"g", "n"}));
  r.complete("n");
  EXPECT_TRUE(r.sequencer().finished());
}

TEST(Sequencer, SkipsOpsOfOtherRanks) {
  trace::Op only_one = op("one", vec(), {trace::kEntry});
  only_one.when = {{0, 1}};
  const auto blocks = [&] {
    return std::vector<trace::Block>{block("main", {only_one, op("v", vec(), {0})})};
  };
  EXPECT_EQ(Recorder(program_of(blocks()), 0).issued, Names({"v"}));
  EXPECT_EQ(Recorder(program_of(blocks()), 1).issued, Names({"one"}));
}

TEST(Sequencer, LongestChainFollowsDependencies) {
  trace::Call call;
  call.block = 1;
  Recorder r(program_of({block("main", {op("a", vec(), {trace::kEntry}), op("call", call, {0}),
                                        op("z", vec(), {1})}),
                         block("body", {op("b", vec(), {trace::kEntry})})}),
             0);
  // a 10, b 5 after it, z 1 after that.
  const auto run = [&](const std::string& id, std::int64_t fs) {
    const Ticket t = r.running.front().second;
    EXPECT_EQ(r.name(t), id);
    r.sequencer().set_chain_end(t, r.sequencer().chain_start(t) + base::Time(fs));
    r.complete(id);
  };
  run("a", 10);
  run("b", 5);
  run("z", 1);
  EXPECT_EQ(r.sequencer().longest_chain(), base::Time(16));
}

}  // namespace
}  // namespace trn3sim::sim

int sc_main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  setenv("SC_COPYRIGHT_MESSAGE", "DISABLE", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
