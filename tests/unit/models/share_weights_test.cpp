// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/models/share_weights.hpp"

#include "trn3sim/models/hbm.hpp"
#include "trn3sim/models/share_model.hpp"

#include "support/test_chip.hpp"
#include <gtest/gtest.h>

namespace trn3sim::models {
namespace {

using base::Rate;
using base::Time;

class ShareWeightsTest : public ::testing::Test {
 protected:
  config::ChipSpec chip = test::test_chip();
  Rate engines{chip.dma.plateau_rate.count() * chip.dma.engines * chip.cores_per_stack()};
  Rate capacity = std::min(engines, streaming_rate(chip.hbm, chip.stacks));
  ShareWeights weights{chip, capacity};

  // DMA engines busy for as long as `bytes` take them in full packets, `times` over.
  KernelProfile moving(std::int64_t reads, std::int64_t writes, std::int64_t times) const {
    KernelProfile p;
    p.counts.hbm_read_bytes = reads;
    p.counts.hbm_write_bytes = writes;
    p.dma_busy = base::transfer_time(base::Bytes((reads + writes) * times), engines);
    return p;
  }
};

TEST_F(ShareWeightsTest, LongReadsInFullPacketsAreNearTheUnit) {
  // Engines that wait for memory with eight descriptors in flight lose a tenth or so.
  EXPECT_GE(weights.of(moving(1 << 20, 0, 1), engines).stack, kUnitWeight);
  EXPECT_LT(weights.of(moving(1 << 20, 0, 1), engines).stack, kUnitWeight * 5 / 4);
  EXPECT_EQ(weights.of(KernelProfile{}, engines).stack, kUnitWeight) << "nothing to weigh";
}

TEST_F(ShareWeightsTest, PacketsThatTakeTheEnginesTwiceAsLongWeighTwice) {
  EXPECT_NEAR(static_cast<double>(weights.of(moving(1 << 30, 0, 2), engines).stack), 2.0 * kUnitWeight,
              2);
}

TEST_F(ShareWeightsTest, WritesBetweenReadsCostTurnarounds) {
  const Rate half = mixed_rate(chip, chip.cores_per_stack(), 1, 2);
  ASSERT_LT(half, mixed_rate(chip, chip.cores_per_stack(), 0, 1)) << "turnarounds must cost something";
  const double expected = static_cast<double>(capacity.count()) / static_cast<double>(half.count());
  EXPECT_NEAR(static_cast<double>(weights.of(moving(1 << 20, 1 << 20, 1), engines).stack),
              expected * kUnitWeight, 2);
}

TEST_F(ShareWeightsTest, ReadsBesideWritesCostWhatTheirMixCosts) {
  const auto rate_of_each = [&](std::int64_t writes_of_first, std::int64_t writes_of_second) {
    ShareModel share(capacity);
    share.use_mix(weights.mix());
    const auto claim = [&](std::int64_t writes) {
      return Claim{0, {weights.mix().at(writes), kUnitWeight, writes}};
    };
    const auto first = share.add_flow(Time(0), capacity, claim(writes_of_first));
    share.add_flow(Time(0), capacity, claim(writes_of_second));
    return static_cast<double>(share.granted(first).count());
  };
  // Half of the bytes are written, whoever writes them.
  const double mixed = rate_of_each(kUnitWeight / 2, kUnitWeight / 2);
  EXPECT_NEAR(2 * mixed, static_cast<double>(mixed_rate(chip, chip.cores_per_stack(), 1, 2).count()),
              0.002 * mixed);
  EXPECT_NEAR(rate_of_each(0, kUnitWeight), mixed, 0.002 * mixed);
  EXPECT_GT(rate_of_each(0, 0), 1.05 * mixed);
}

TEST_F(ShareWeightsTest, AKernelGetsLessDataOutOfItsGrantByItsWeight) {
  // Alone 100 ns at rate 10, 200 ns at rate 5. A flow takes 5 of 15. At weight 1 the kernel has
  // the 10 it needs; at weight 2 its 10 carry 5 of data.
  KernelProfile p;
  p.duration = Time(100'000'000);
  p.curve = {{Rate(5), Time(200'000'000)}, {Rate(10), Time(100'000'000)}};
  ShareModel share(Rate(15));
  share.add_flow(Time(0), Rate(5));
  share.add_kernel(Time(0), p, Time(0));
  EXPECT_EQ(share.next_end(), Time(100'000'000));
  ShareModel weighed(Rate(15));
  weighed.add_flow(Time(0), Rate(5));
  weighed.add_kernel(Time(0), p, Time(0), {0, {2 * kUnitWeight, kUnitWeight}});
  EXPECT_EQ(weighed.next_end(), Time(200'000'000));
}

TEST_F(ShareWeightsTest, CopiesTakeWhatTheBenchMeasured) {
  // Alone 100 ns with all the engines of a core; two copies want more than the stack has. The bench
  // says 160 ns, more than even shares would give.
  KernelProfile p;
  const Rate core(engines.count() / chip.cores_per_stack());
  const std::int64_t bytes = core.count() / 10'000'000;  // in 100 ns
  p.counts.hbm_read_bytes = bytes;
  p.duration = Time(100'000'000);
  p.dma_busy = p.duration;
  p.curve = {{Rate(core.count() / 4), Time(400'000'000)}, {core, Time(100'000'000)}};
  p.copies = 2;
  p.shared = Time(160'000'000);
  const ByteWeights w = weights.of(p, core);
  ShareModel share(capacity, core);
  share.add_kernel(Time(0), p, Time(0), {0, w});
  share.add_kernel(Time(0), p, Time(0), {1, w});
  EXPECT_NEAR(static_cast<double>(share.next_end().count()), 160e6, 1e6);
  p.shared = p.duration;  // they do not feel each other
  const ByteWeights light = weights.of(p, core);
  EXPECT_LT(light.stack, w.stack);
  ShareModel free(capacity, core);
  free.add_kernel(Time(0), p, Time(0), {0, light});
  free.add_kernel(Time(0), p, Time(0), {1, light});
  EXPECT_EQ(free.next_end(), p.duration);
}

}  // namespace
}  // namespace trn3sim::models
