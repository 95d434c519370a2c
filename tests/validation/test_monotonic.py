# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""More bandwidth never slows a run, and memory-bound work scales with what is served."""
import tempfile
import unittest

import runner

BANDWIDTHS = [2.45, 3.0, 3.6, 4.2, 4.9, 6.0, 7.4, 9.8]  # TB/s
DMA_LIMIT = 8 * 16 * 33e9  # bytes/s of a chip: cores x engines x plateau


def steps(trace, bandwidths=BANDWIDTHS):
    return [runner.summary("chip1.json", trace, f"chip.hbm.bandwidth={b}TB/s") for b in bandwidths]


class MonotonicTest(unittest.TestCase):
    def assert_never_rises(self, runs):
        for slower, faster in zip(runs, runs[1:]):
            self.assertLessEqual(faster["step_time_s"], slower["step_time_s"] * 1.001)

    def test_llama_never_slows(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_never_rises(steps(runner.generate(folder, "t.trace")))

    def test_main_work_never_slows_between_close_points(self):
        self.assert_never_rises(steps("llama7b_chip1.trace", [3.5, 3.55, 5.2, 5.3, 6.0, 6.2]))

    def test_residual_adds_scale_with_the_served_rate(self):
        # What the stack serves to this mix of two reads and a write is its own kernel's rate with
        # nothing else on it; the whole run must follow it within 5 % at every bandwidth below the
        # DMA limit, and the rate must stay within what the bus can carry.
        rates = []
        for bandwidth in BANDWIDTHS:
            _, r = runner.results("chip1.json", "residual_add.trace", f"chip.hbm.bandwidth={bandwidth}TB/s")
            bytes_per_rank = (r["hbm_read_bytes"] + r["hbm_write_bytes"]) / r["ranks"]
            achieved = bytes_per_rank / r["step_fs"] * 1e15
            served = max(k["hbm_bytes"] / k["alone_fs"] for k in r["kernels"]) * 1e15
            self.assertAlmostEqual(achieved / served, 1, delta=0.05)
            self.assertLess(achieved, 0.93 * bandwidth * 1e12 / 4)  # bw_derate of the raw peak
            rates.append(achieved)
        for lower, higher in zip(rates, rates[1:]):
            self.assertGreaterEqual(higher, 0.999 * lower)
        # Twice the bandwidth from 2.45 TB/s gives at least 1.6 times the rate: row misses and
        # turnarounds have nanosecond timings that do not shrink with the pin rate.
        self.assertGreater(rates[BANDWIDTHS.index(4.9)] / rates[0], 1.6)

    def test_residual_adds_stop_at_the_dma_limit(self):
        runs = steps("residual_add.trace", [7.4, 9.8])
        self.assertAlmostEqual(runs[1]["step_time_s"] / runs[0]["step_time_s"], 1, delta=0.01)
        self.assertGreaterEqual(runs[1]["step_time_s"], runs[1]["lower_bounds_s"]["dma"])

    def test_optimizer_scales_until_another_bound_is_named(self):
        previous = None
        for bandwidth in BANDWIDTHS:
            _, r = runner.results("chip1.json", "optimizer_only.trace", f"chip.hbm.bandwidth={bandwidth}TB/s")
            if previous is not None:
                ideal = previous[1] * previous[0] / bandwidth
                if r["step_fs"] > 1.05 * ideal:
                    # It no longer scales: the report must say what binds instead of HBM.
                    self.assertIn(r["kernels"][0]["bound"], ("dma", "vector", "scalar", "gpsimd"))
            previous = (bandwidth, r["step_fs"])


if __name__ == "__main__":
    unittest.main()
