# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Precision policies: what gets faster, what moves fewer bytes, and what stays."""
import tempfile
import unittest

import runner

CONFIG = "chip1.json"
FORMATS = ["bf16", "mxfp8", "mxfp4"]


class PrecisionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", seq=512, gbs=8)
            cls.trace_policy = runner.results(CONFIG, trace)[1]
            cls.runs = {f: runner.results(CONFIG, trace, f"precision.matmul={f}")[1] for f in FORMATS}
            cls.sparse = runner.results(CONFIG, trace, "precision.sparsity=4:16")[1]
            cls.refused = runner.run(
                "--config", CONFIG, "--trace", trace, "--set", "precision.matmul=mxfp8",
                "--set", "precision.sparsity=4:16", expect=2).stderr

    def total_energy(self, run):
        return run["energy_nj"]["total"]

    def test_bf16_is_what_the_trace_says(self):
        for key in ("step_fs", "hbm_read_bytes", "hbm_write_bytes", "hbm_scale_bytes"):
            self.assertEqual(self.runs["bf16"][key], self.trace_policy[key])

    def test_mxfp8_is_strictly_faster_and_mxfp4_never_slower(self):
        steps = [self.runs[f]["step_fs"] for f in FORMATS]
        self.assertLess(steps[1], 0.9 * steps[0])
        self.assertLessEqual(steps[2], steps[1])

    def test_no_free_lunch(self):
        # GEMMs become at most four times as fast; attention, vector work and collectives do not.
        self.assertGreater(self.runs["mxfp8"]["step_fs"], self.runs["bf16"]["step_fs"] / 4)
        # The arithmetic is the same: only its format changes.
        self.assertEqual(self.runs["mxfp8"]["hardware_flop"], self.runs["bf16"]["hardware_flop"])
        vector = [self.runs[f]["engine_busy_fs"]["vector"] for f in FORMATS]
        self.assertGreater(vector[1], vector[0], "VectorE quantises")

    def test_collectives_move_the_same_bytes(self):
        for f in FORMATS:
            self.assertEqual(self.runs[f]["bytes_sent"], self.runs["bf16"]["bytes_sent"])

    def test_only_mx_runs_have_scales(self):
        self.assertEqual(self.runs["bf16"]["hbm_scale_bytes"], 0)
        for f in FORMATS[1:]:
            scales = self.runs[f]["hbm_scale_bytes"]
            self.assertGreater(scales, 0)
            self.assertLess(scales, self.runs[f]["hbm_read_bytes"] / 16)

    def test_weight_bytes_follow_the_format(self):
        # The optimizer writes two copies of each weight: 8.25 bits of each for MXFP8, 4.25 for
        # MXFP4, and reads 16 bits for both.
        weights = {f: sum(k["hbm_bytes"] * k["count"] for k in self.runs[f]["kernels"]
                          if k["label"].startswith("adamw")) for f in FORMATS}
        extra8 = weights["mxfp8"] - weights["bf16"]
        extra4 = weights["mxfp4"] - weights["bf16"]
        self.assertAlmostEqual(extra4 / extra8, (16 + 2 * 4.25) / (16 + 2 * 8.25), delta=0.001)

    def test_sparse_weights_save_time_and_macs(self):
        self.assertLess(self.sparse["step_fs"], self.runs["bf16"]["step_fs"])
        self.assertLess(self.sparse["hardware_flop"], 0.7 * self.runs["bf16"]["hardware_flop"])

    def test_sparse_mx_is_refused(self):
        self.assertIn("precision.sparsity: 4:16 is for bf16, fp16 or tf32 products", self.refused)


if __name__ == "__main__":
    unittest.main()
