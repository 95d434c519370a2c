# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Same inputs, same bytes, whatever the order of construction and profiling."""
import tempfile
import unittest

import runner


class DeterminismTest(unittest.TestCase):
    def test_shuffled_orders_change_no_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            traces = (("instance16.json", dict(dp=16, gbs=16, overlap_grad_reduce=True), ()),
                      ("torus16.json", dict(tp=1, dp=16, gbs=16, vocab=8192, rank_unit="chip"), ()),
                      ("chip1.json", dict(tp=8, rank_unit="core"), ("collectives.algorithm=mesh",)),
                      ("torus16.json", dict(tp=8, dp=16, gbs=16, rank_unit="core"), ("collectives.algorithm=mesh",)))
            for n, (config, plan, sets) in enumerate(traces):
                trace = runner.generate(folder, f"t{n}.trace", **plan)
                expected, _ = runner.results(config, trace, *sets)
                again, _ = runner.results(config, trace, *sets)
                self.assertEqual(expected, again)
                for seed in (1, 2, 3):
                    shuffled, _ = runner.results(config, trace, *sets, f"run.shuffle={seed}")
                    self.assertEqual(expected, shuffled, (plan, seed))

    def test_loops_slept_through_change_no_byte(self):
        plans = (("chip1.json", dict(layers=5, gbs=6)),
                 ("chip1.json", dict(layers=4, tp=8, gbs=4, rank_unit="core")),
                 ("instance16.json", dict(layers=5, dp=16, gbs=64, overlap_grad_reduce=True)))
        # Several rings at once and meshes inside the loops.
        others = (("torus16.json", dict(layers=6, tp=1, dp=16, gbs=64, vocab=8192, rank_unit="chip",
                                         overlap_grad_reduce=True), ()),
                  ("chip1.json", dict(layers=6, gbs=6, recompute="full"), ("collectives.algorithm=mesh",)),
                  ("chip1.json", dict(layers=4, tp=8, gbs=4, rank_unit="core"), ("collectives.algorithm=mesh",)))
        plans = [(config, plan, ()) for config, plan in plans] + list(others)
        with tempfile.TemporaryDirectory() as folder:
            for n, (config, plan, sets) in enumerate(plans):
                trace = runner.generate(folder, f"t{n}.trace", **plan)
                skipped, _ = runner.results(config, trace, *sets)
                full, _ = runner.results(config, trace, *sets, flags=["--no-fast-forward"])
                self.assertEqual(skipped, full, plan)


if __name__ == "__main__":
    unittest.main()
