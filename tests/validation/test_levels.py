# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Compiler levels and their switches: order, direction of each switch, and ranges of utilisation."""
import unittest

import runner

MAIN = ("ultraserver64.json", "llama7b.trace")
# A switch that is on never costs more than this.
TOLERANCE = 1.001


class LevelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.levels = {level: cls.job(f"level={level}") for level in ("stock", "tuned", "ideal")}

    @staticmethod
    def job(*switches):
        return runner.summary(*MAIN, *[f"compile.{s}" for s in switches])

    def step(self, level):
        return self.levels[level]["step_time_s"]

    def mfu(self, level):
        return self.levels[level]["mfu_estimated_percent"]

    def test_levels_are_ordered(self):
        self.assertGreater(self.step("stock"), 1.3 * self.step("tuned"))
        self.assertGreaterEqual(self.step("tuned"), self.step("ideal"))

    def test_levels_are_their_switches(self):
        on = ["fusion", "flash_attention", "memory_reuse", "fast_exponential", "prefetch",
              "merge_gathers"]
        built = self.job("level=stock", *[f"{s}=true" for s in on])
        self.assertEqual(built["step_time_s"], self.step("tuned"))
        built = self.job("level=tuned", "overlap_collectives=true")
        self.assertEqual(built["step_time_s"], self.step("ideal"))

    def test_each_switch_pays(self):
        # Least gain of each over a tuned step without it. Kernels of this size leave little SBUF to
        # prefetch into.
        least = {"fusion": 1.01, "flash_attention": 1.1, "memory_reuse": 1.02, "fast_exponential": 1.002,
                 "double_accumulators": 1.05, "streaming_loads": 1.05, "prefetch": 1.0002}
        for switch, gain in least.items():
            with self.subTest(switch):
                without = self.job(f"{switch}=false")["step_time_s"]
                self.assertGreater(without, gain * self.step("tuned"))

    def test_no_switch_slows_a_stock_step(self):
        for switch in ("fusion", "flash_attention", "memory_reuse", "fast_exponential", "prefetch",
                       "overlap_collectives"):
            with self.subTest(switch):
                step = self.job("level=stock", f"{switch}=true")["step_time_s"]
                self.assertLess(step, TOLERANCE * self.step("stock"))

    def test_overlap_hides_communication(self):
        tuned, ideal = (self.levels[level]["breakdown_percent"] for level in ("tuned", "ideal"))
        self.assertLess(ideal["exposed_communication"], 0.6 * tuned["exposed_communication"])

    def test_stock_mfu_is_in_the_expected_range(self):
        self.assertGreater(self.mfu("stock"), 35)
        self.assertLess(self.mfu("stock"), 50)

    @unittest.expectedFailure
    def test_tuned_mfu_is_in_the_expected_range(self):
        """Known shortfall: published hand-tuned steps reach 50 to 65 %, the model lies above.

        No power limit throttles the clock, no runtime gap between kernels is modelled, and each kernel has
        the predicted best mapping (docs/ablation.md). No factor brings it down.
        """
        self.assertGreater(self.mfu("tuned"), 50)
        self.assertLess(self.mfu("tuned"), 65)

    @unittest.expectedFailure
    def test_ideal_mfu_is_in_the_expected_range(self):
        """Known excess over 78 %: tuned is above it already, and chunked collectives hide half of
        the communication that was left (docs/ablation.md).
        """
        self.assertLessEqual(self.mfu("ideal"), 78)

    def test_spills(self):
        spilled, peak = {}, {}
        for name, switches in {"tuned": [], "no reuse": ["memory_reuse=false"],
                               "no flash": ["flash_attention=false"]}.items():
            _, r = runner.results(*MAIN, *[f"compile.{s}" for s in switches])
            spilled[name] = r["spill_save_bytes"] + r["spill_reload_bytes"]
            peak[name] = r["peak_memory_bytes"]
            self.assertLess(spilled[name], r["hbm_read_bytes"] + r["hbm_write_bytes"])
        self.assertEqual(spilled["tuned"], 0)
        self.assertGreater(spilled["no reuse"], 0)
        # S and P once each way in the forward pass; P twice, dP and dS in the backward pass: 4 + 7
        # tensors of 8 heads x 4096 x 4096 bf16, 32 layers, 16 micro-steps, 256 ranks.
        self.assertEqual(spilled["no flash"], 11 * 8 * 4096**2 * 2 * 32 * 16 * 256)
        # The probabilities of all layers wait for the backward pass.
        self.assertEqual(peak["no flash"] - peak["tuned"], 32 * 8 * 4096**2 * 2)


if __name__ == "__main__":
    unittest.main()
