# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The main job obeys physics, recomputed here from results.json and not by the program."""
import unittest

import runner


class PhysicsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        _, cls.results = runner.results("ultraserver64.json", "llama7b.trace")
        cls.summary = runner.summary("ultraserver64.json", "llama7b.trace")

    def test_step_is_above_the_compute_roofline(self):
        # 6 x parameters in matmuls x tokens is a floor for the model work of a dense step.
        matmul_parameters = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32000 * 4096
        flop = 6 * matmul_parameters * 1024 * 4096
        peak = 64 * 8 * 2 * 128 * 128 * 2.4e9
        self.assertGreater(self.summary["step_time_s"], flop / peak)
        self.assertLess(self.summary["step_time_s"], 4 * flop / peak)

    def test_model_flop_matches_the_closed_form(self):
        # Forward and backward: 6 P per token, and attention 12 L h s per token (full scores).
        matmul_parameters = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32000 * 4096
        per_token = 6 * matmul_parameters + 12 * 32 * 4096 * 4096
        self.assertAlmostEqual(self.results["model_flop"] / (per_token * 1024 * 4096), 1, delta=1e-9)

    def test_breakdown_adds_up_exactly(self):
        self.assertEqual(sum(self.results["breakdown"]["mean_fs"].values()), self.results["step_fs"])

    def test_breakdown_reproduces_mfu(self):
        # Matmuls at peak are what the tensor engines must do; with causal skipping less than the
        # full-attention model work, with recomputation more.
        s = self.summary
        ideal = 100 * self.results["tensor_ideal_fs"] / self.results["step_fs"]
        self.assertLess(abs(s["hfu_estimated_percent"] - ideal), 0.5)
        self.assertLessEqual(ideal, s["breakdown_percent"]["compute"] + 1e-9)
        # What causal attention leaves out: half of 12 L h s per token; what flash attention does
        # again: the scores of the backward pass, 2 L h s per token full, half of it causal. Tiles
        # on the diagonal run whole, which is at most 1 point here.
        per_token_full = 12 * 32 * 4096 * 4096
        tokens = self.results["tokens_per_step"]
        peak = self.results["peak_geometry_flop_per_s"] * s["step_time_s"]
        skipped = 100 * 0.5 * per_token_full * tokens / peak
        again = 100 * 0.5 * per_token_full / 6 * tokens / peak
        self.assertLess(abs(ideal - again + skipped - s["mfu_estimated_percent"]), 1.0)

    def test_mfu_lies_between_what_is_published_and_what_is_possible(self):
        # Published for Trainium3 and dense BF16 training: 43 % with the stock compiler and about
        # 60 % with hand-written kernels, on the headline peak (SemiAnalysis, Trainium3 deep dive,
        # 2025). The model has no power throttling and no software gaps, so it may lie above, but
        # never above the share that its own executed matmuls leave at the array's peak.
        s = self.summary
        self.assertGreater(s["mfu_estimated_percent"], 50)
        most = 100 * self.results["model_flop"] / self.results["hardware_flop"]
        self.assertLess(s["mfu_estimated_percent"], most)
        self.assertLess(s["hfu_estimated_percent"], 78.0)

    def test_bounds(self):
        for name, bound in self.summary["lower_bounds_s"].items():
            self.assertLessEqual(bound, self.summary["step_time_s"], name)
        self.assertTrue(all(c["passed"] for c in self.results["checks"]))

    def test_energy_adds_up(self):
        energy = self.results["energy_nj"]
        self.assertEqual(energy["total"], sum(v for k, v in energy.items() if k != "total"))
        # Nothing can use less than the static power of 64 chips, or much more than their TDP.
        watts = self.summary["energy_j"] / self.summary["step_time_s"] / 64
        self.assertGreater(watts, 144)
        self.assertLess(watts, 800 / 0.9)

    def test_bytes_arrive(self):
        self.assertEqual(self.results["bytes_sent"], self.results["bytes_received"])
        # Ring all-gathers and reduce-scatters over tp: 3 shards of 8 MiB each, 195 + 130 of them
        # per micro-step and rank; the optimizer's traffic comes on top.
        tensor_parallel = 256 * 16 * (195 + 130) * 3 * 8 * 2**20
        self.assertGreater(self.results["bytes_sent"], tensor_parallel)
        self.assertLess(self.results["bytes_sent"], 1.1 * tensor_parallel)


if __name__ == "__main__":
    unittest.main()
