// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "trn3sim/modules/hbm_share.hpp"
#include "trn3sim/modules/link.hpp"

#include "support/kernel_test.hpp"

namespace trn3sim::modules {
namespace {

using base::Bytes;
using base::Rate;
using base::Time;

constexpr std::int64_t kOneBytePerFs = base::kFemtosPerSecond;

// Three stacks in a row: 0 -> 1 -> 2, links of 1 B/fs with latencies 10 and 20 fs.
topology::Graph row() {
  topology::Graph g;
  for (int i = 0; i < 3; ++i) {
    topology::Node n;
    n.name = std::to_string(i);
    g.add_node(n);
  }
  g.add_link({topology::LinkKind::OnDie, "n0->n1", topology::NodeId{0}, topology::NodeId{1},
              Rate(kOneBytePerFs), Time(10)});
  g.add_link({topology::LinkKind::OnDie, "n1->n2", topology::NodeId{1}, topology::NodeId{2},
              Rate(kOneBytePerFs), Time(20)});
  return g;
}

struct Arrivals : MessageSink {
  explicit Arrivals(const Context& c) : context(c) {}
  void delivered(const Message& m) override { log.emplace_back(m.order, context.now()); }
  const Context& context;
  std::vector<std::pair<std::uint64_t, Time>> log;
};

class FabricTest : public test::KernelTest {
 protected:
  topology::Graph graph = row();
  Fabric fabric{graph, context};
  Arrivals arrivals{context};
  topology::Route first{topology::LinkId{0}}, both{topology::LinkId{0}, topology::LinkId{1}};

  void elaborate() {
    std::vector<std::size_t> order(graph.links().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    fabric.elaborate(order);
  }
  Message message(std::uint64_t order, const topology::Route& route, std::int64_t bytes) {
    Message m;
    m.order = order;
    m.route = &route;
    m.bytes = Bytes(bytes);
    m.sink = &arrivals;
    return m;
  }
};

TEST_F(FabricTest, AnIdlePathTakesLatenciesAndOneTransfer) {
  elaborate();
  fabric.send(message(1, both, 1000));
  sc_core::sc_start();
  // 10 + 20 latency, 1000 at 1 B/fs, cut through.
  ASSERT_EQ(arrivals.log.size(), 1U);
  EXPECT_EQ(arrivals.log[0].second, Time(1030));
}

TEST_F(FabricTest, MessagesOfOneInstantGoByOrderNotByCall) {
  elaborate();
  fabric.send(message(9, first, 100));
  fabric.send(message(2, first, 100));
  Message urgent = message(5, first, 100);
  urgent.priority = 0;
  fabric.send(urgent);
  sc_core::sc_start();
  // 2, 5, 9 one after another: 100 each plus the latency of 10.
  ASSERT_EQ(arrivals.log.size(), 3U);
  EXPECT_EQ(arrivals.log[0], std::pair(std::uint64_t{2}, Time(110)));
  EXPECT_EQ(arrivals.log[1], std::pair(std::uint64_t{5}, Time(210)));
  EXPECT_EQ(arrivals.log[2], std::pair(std::uint64_t{9}, Time(310)));
  EXPECT_EQ(fabric.link(0).model().bytes(), Bytes(300));
  EXPECT_EQ(fabric.link(0).model().queued(), Time(100 + 200));
}

TEST_F(FabricTest, APriorityClassGoesFirst) {
  elaborate();
  Message low = message(1, first, 100);
  low.priority = 3;
  fabric.send(low);
  fabric.send(message(7, first, 100));
  sc_core::sc_start();
  ASSERT_EQ(arrivals.log.size(), 2U);
  EXPECT_EQ(arrivals.log[0].first, 7U);
}

struct Ends : KernelEnd {
  explicit Ends(const Context& c) : context(c) {}
  void kernel_part_ended() override { at.push_back(context.now()); }
  const Context& context;
  std::vector<Time> at;
};

TEST_F(FabricTest, AShareEndsKernelsOnTime) {
  models::KernelProfile p;
  p.duration = Time(100);
  p.curve = {{Rate(5), Time(200)}, {Rate(10), Time(100)}};
  p.counts.hbm_read_bytes = 1000;
  HbmShare share("share", Rate(10), Rate(0), context);
  Ends ends(context);
  share.start_kernel(p, Time(0), {}, ends);
  const auto flow = share.open_flow(Rate(5), {});  // half speed from the start
  sc_core::sc_start(to_sc(Time(100)));         // half done
  EXPECT_TRUE(ends.at.empty());
  share.close_flow(flow);  // the rest at full speed: 50
  sc_core::sc_start();
  EXPECT_EQ(ends.at, (std::vector<Time>{Time(150)}));
}

}  // namespace
}  // namespace trn3sim::modules
