// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/link_model.hpp"
#include "trn3sim/models/share_model.hpp"

#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::Bytes;
using base::Rate;
using base::Time;

constexpr std::int64_t kNs = 1'000'000;  // femtoseconds; remaining work rounds up by less than 1 fs

// A kernel that takes 100 ns at rate 10 and 200 ns at rate 5.
KernelProfile streaming() {
  KernelProfile p;
  p.duration = Time(100 * kNs);
  p.curve = {{Rate(5), Time(200 * kNs)}, {Rate(10), Time(100 * kNs)}};
  p.counts.hbm_read_bytes = 1000;
  return p;
}

TEST(WaterFill, GivesEveryoneItsDemandWhenItFits) {
  EXPECT_EQ(water_fill(Rate(10), {Rate(3), Rate(7)}), (std::vector<Rate>{Rate(3), Rate(7)}));
}

TEST(WaterFill, LargeDemandsShareWhatSmallOnesLeave) {
  // 12 for {2, 9, 9}: the small one gets 2, the others (12 - 2) / 2 = 5 each.
  EXPECT_EQ(water_fill(Rate(12), {Rate(9), Rate(2), Rate(9)}),
            (std::vector<Rate>{Rate(5), Rate(2), Rate(5)}));
}

TEST(WaterFill, EqualDemandsGetTheSameWhateverTheirOrder) {
  // 11 for three that want more than 11 / 3: nobody gets the remainder.
  EXPECT_EQ(water_fill(Rate(11), {Rate(9), Rate(9), Rate(9)}),
            (std::vector<Rate>{Rate(3), Rate(3), Rate(3)}));
  EXPECT_EQ(water_fill(Rate(11), {Rate(9), Rate(8), Rate(7)}),
            (std::vector<Rate>{Rate(3), Rate(3), Rate(3)}));
}

TEST(ShareModel, AFlowAloneHasNoMoreThanTheStack) {
  ShareModel share(Rate(10));
  const auto flow = share.add_flow(Time(0), Rate(15));
  EXPECT_EQ(share.granted(flow), Rate(10));
}

TEST(ShareModel, AKernelAloneTakesItsProfileExactly) {
  const KernelProfile p = streaming();
  ShareModel share(Rate(10));
  const auto k = share.add_kernel(Time(1000 * kNs), p, Time(0));
  EXPECT_EQ(share.next_end(), Time(1100 * kNs));
  std::vector<ShareModel::Handle> done;
  share.take_finished(Time(1100 * kNs - 1), done);
  EXPECT_TRUE(done.empty());
  share.take_finished(Time(1100 * kNs), done);
  EXPECT_EQ(done, (std::vector<ShareModel::Handle>{k}));
  EXPECT_EQ(share.next_end(), base::kTimeMax);
}

TEST(ShareModel, HiddenWorkIsNotDoneAgain) {
  const KernelProfile p = streaming();
  ShareModel share(Rate(10));
  share.add_kernel(Time(0), p, Time(40 * kNs));
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 60.0 * kNs, 1);
}

TEST(ShareModel, AFlowSlowsTheKernelWhileItLasts) {
  const KernelProfile p = streaming();
  ShareModel share(Rate(10));
  share.add_kernel(Time(0), p, Time(0));
  // Half done at 50. A flow that wants 5 halves the rate: the other half takes 100 instead of 50.
  const auto flow = share.add_flow(Time(50 * kNs), Rate(5));
  EXPECT_EQ(share.granted(flow), Rate(5));
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 150.0 * kNs, 1);
  // It leaves at 100, half of the half done: 25 fs at full speed remain.
  share.remove_flow(Time(100 * kNs), flow);
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 125.0 * kNs, 1);
}

TEST(ShareModel, DeferredLoadsGetWhatTheOthersLeave) {
  // The kernel moves 1000 bytes in 100 ns, all that there is; the loads wait for the 1/64 that is
  // never denied, and have everything once it has ended.
  KernelProfile p = streaming(), loads = streaming();
  p.counts.hbm_read_bytes = loads.counts.hbm_read_bytes = 64'000;
  for (KernelProfile* k : {&p, &loads})
    k->curve = {{Rate(320'000'000'000), Time(200 * kNs)}, {Rate(640'000'000'000), Time(100 * kNs)}};
  ShareModel share(Rate(640'000'000'000));
  const auto kernel = share.add_kernel(Time(0), p, Time(0));
  const auto late = share.add_deferred(Time(0), loads);
  EXPECT_EQ(share.granted(kernel), Rate(640'000'000'000));
  EXPECT_EQ(share.granted(late), Rate(10'000'000'000));
  EXPECT_EQ(share.next_end(), Time(100 * kNs)) << "nothing is taken from the kernel";
  std::vector<ShareModel::Handle> done;
  share.take_finished(Time(100 * kNs), done);
  EXPECT_EQ(share.granted(late), Rate(640'000'000'000));
  EXPECT_GT(share.next_end(), Time(195 * kNs));
  // Half way it is taken back: 1/64 was done in the shadow, then half of the time passed.
  const double part = static_cast<double>(share.withdraw(Time(150 * kNs), late)) /
                      static_cast<double>(ShareModel::kWholeKernel);
  EXPECT_NEAR(part, 0.5 + 1.0 / 64, 0.001);
  EXPECT_EQ(share.next_end(), base::kTimeMax);
}

TEST(ShareModel, TheEnginesOfARankAreSharedByWhatItRuns) {
  // The stack has plenty. The first rank's engines carry 10 and its flow wants 5 of them: its
  // kernel is left with 5, half speed. The second rank's kernel feels nothing.
  const KernelProfile p = streaming();
  ShareModel share(Rate(100), Rate(10));
  const auto slow = share.add_kernel(Time(0), p, Time(0), {0, {}});
  share.add_flow(Time(0), Rate(5));
  const auto fast = share.add_kernel(Time(0), p, Time(0), {1, {}});
  EXPECT_EQ(share.granted(slow), Rate(5));
  EXPECT_EQ(share.granted(fast), Rate(10));
  EXPECT_EQ(share.next_end(), Time(100 * kNs));
  std::vector<ShareModel::Handle> done;
  share.take_finished(Time(100 * kNs), done);
  EXPECT_EQ(done, (std::vector<ShareModel::Handle>{fast}));
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 200.0 * kNs, 1);
}

TEST(ShareModel, SettlingAtTheSameTimeChangesNothing) {
  const KernelProfile p = streaming();
  ShareModel share(Rate(10));
  share.add_kernel(Time(0), p, Time(0));
  for (int i = 0; i < 10; ++i)
    share.remove_flow(Time(30 * kNs), share.add_flow(Time(30 * kNs), Rate(5)));
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 100.0 * kNs, 1);
}

TEST(ShareModel, TwoKernelsShareAndFinishTogether) {
  const KernelProfile p = streaming();
  ShareModel share(Rate(10));
  share.add_kernel(Time(0), p, Time(0));
  share.add_kernel(Time(0), p, Time(0));
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 200.0 * kNs, 1);  // 5 B/fs each
  std::vector<ShareModel::Handle> done;
  share.take_finished(Time(200 * kNs + 1), done);
  EXPECT_EQ(done.size(), 2U);
}

TEST(LinkModel, CutsThroughWithTheTail) {
  LinkModel first(Rate(base::kFemtosPerSecond), Time(7));       // 1 B/fs
  LinkModel second(Rate(2 * base::kFemtosPerSecond), Time(5));  // 2 B/fs
  const auto a = first.send(Time(0), Bytes(100), Rate(0), Time(0), Time(0));
  EXPECT_EQ(a.head_out, Time(7));
  EXPECT_EQ(a.tail_out, Time(107));
  // The second link could send in 50 fs but the tail comes at 107: sum of latencies + bytes / min.
  const auto b = second.send(a.head_out, Bytes(100), Rate(0), a.tail_out, Time(7));
  EXPECT_EQ(b.tail_out, Time(112));
  EXPECT_FALSE(second.idle(Time(106)));
  EXPECT_TRUE(second.idle(Time(107)));
}

TEST(LinkModel, ASlowEndCapsTheRate) {
  LinkModel link(Rate(base::kFemtosPerSecond), Time(0));
  EXPECT_EQ(
      link.send(Time(0), Bytes(100), Rate(base::kFemtosPerSecond / 4), Time(0), Time(0)).tail_out,
      Time(400));
  EXPECT_EQ(link.busy(), Time(400));
  EXPECT_EQ(link.bytes(), Bytes(100));
}

}  // namespace
}  // namespace trn3sim::models
