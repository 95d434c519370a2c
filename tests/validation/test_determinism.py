# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Same inputs, same bytes, whatever the order of construction and profiling."""
import json
import pathlib
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

    def test_what_follows_a_loop_without_waiting_for_it(self):
        """Ops after a loop start as soon as the loop's last iteration is fetched."""
        header = {"trace": "trn3sim", "v": 1, "name": "t", "rank_unit": "logical_core", "mesh": [["a", 2], ["b", 2]],
                  "defaults": {"dtype": "bf16"}, "tokens_per_step": 1, "memory": []}

        def coll(name, kind, group, size, deps=()):
            return {"op": "coll", "id": name, "kind": kind, "group": group, "in": size, "out": size,
                    **({"deps": list(deps)} if deps else {})}

        lines = [header, {"op": "block", "id": "x"}, coll("c1", "broadcast", "a", 65536, ["^"]),
                 coll("c2", "all_reduce", "a", 8388608, ["c1"]), {"op": "end"},
                 {"op": "repeat", "id": "r", "block": "x", "times": 12, "deps": ["^"]},
                 coll("c3", "all_to_all", "a", 65536), coll("c4", "broadcast", "b", 4)]
        self.check_skip(lines)

    def test_what_no_iteration_waits_for(self):
        """The longest dependency chain ends beside the one from iteration to iteration."""
        header = {"trace": "trn3sim", "v": 1, "rank_unit": "chip", "mesh": [["dp", 1]]}
        self.check_skip([header, {"op": "block", "id": "b"},
                         {"op": "vec", "id": "z", "fn": "zero", "elems": 4096},
                         {"op": "attn", "id": "t", "deps": ["z"], "heads": 8, "sq": 1, "skv": 256, "d": 64},
                         {"op": "vec", "id": "c", "deps": ["z"], "fn": "cross_entropy", "elems": 131072},
                         {"op": "end", "out": ["c"]}, {"op": "repeat", "id": "r", "block": "b", "times": 20}])

    def check_skip(self, lines):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "t.trace"
            trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
            skipped, results = runner.results("chip1.json", trace)
            self.assertTrue(all(c["passed"] for c in results["checks"]), results["checks"])
            full, _ = runner.results("chip1.json", trace, flags=["--no-fast-forward"])
            self.assertEqual(skipped, full)


if __name__ == "__main__":
    unittest.main()
