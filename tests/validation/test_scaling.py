# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The same work per chip on 1, 16 and 64 chips."""
import unittest

import runner


class ScalingTest(unittest.TestCase):
    def test_micro_steps_weak_scale_at_most_100_percent(self):
        runs = [runner.results(config, trace)[1] for config, trace in (
            ("chip1.json", "llama7b_chip1.trace"), ("instance16.json", "llama7b_instance16.trace"),
            ("ultraserver64.json", "llama7b.trace"))]

        def phase(r, name):
            return next(p["busy_fs"] for p in r["phases"] if p["phase"] == name)

        micro = [phase(r, "forward") + phase(r, "backward") for r in runs]
        for bigger in micro[1:]:
            self.assertGreaterEqual(bigger, 0.999 * micro[0])  # efficiency at most 100 %
            self.assertLess(bigger, 1.05 * micro[0])           # nothing in them crosses chips
        # ZeRO-1: each rank updates 1/dp of its parameters, so one chip pays most for AdamW.
        def adamw(r):
            total = sum(k["total_fs"] for k in r["kernels"] if k["label"].startswith("adamw"))
            return total / r["ranks"]
        self.assertAlmostEqual(adamw(runs[0]) / adamw(runs[1]) / 16, 1, delta=0.1)
        self.assertAlmostEqual(adamw(runs[1]) / adamw(runs[2]) / 4, 1, delta=0.1)


if __name__ == "__main__":
    unittest.main()
