# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""timeline.json: what it shows is what the results count."""
import collections
import decimal
import gzip
import json
import pathlib
import tempfile
import unittest

import runner


def record(config, trace, *options):
    """(text of timeline.json, the same parsed with exact times, results)."""
    with tempfile.TemporaryDirectory() as out:
        runner.run("--config", config, "--trace", trace, "--out", out, "--quiet", "--timeline", *options)
        text = (pathlib.Path(out) / "timeline.json").read_text()
        results = json.loads((pathlib.Path(out) / "results.json").read_text())
    return text, json.loads(text, parse_float=decimal.Decimal), results


def slices(timeline):
    return [e for e in timeline["traceEvents"] if e["ph"] == "X"]


def femtoseconds(microseconds):
    fs = microseconds * 10**9
    assert fs == int(fs)
    return int(fs)


class TimelineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.one = runner.generate(cls.folder.name, "one.trace")
        cls.sixteen = runner.generate(cls.folder.name, "sixteen.trace", dp=16, gbs=16)
        cls.text, cls.timeline, cls.results = record("chip1.json", cls.one)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_nothing_is_left_out_of_one_chip(self):
        self.assertEqual(self.timeline["otherData"]["dropped_slices"], 0)
        self.assertEqual(self.timeline["otherData"]["sampled_chips"], [0])

    def test_kernel_slices_sum_to_the_results(self):
        times, counts = collections.Counter(), collections.Counter()
        for s in slices(self.timeline):
            if s["cat"] == "kernel":
                times[s["name"]] += femtoseconds(s["dur"])
                counts[s["name"]] += 1
        expected, executions = collections.Counter(), collections.Counter()
        for k in self.results["kernels"]:
            expected[k["label"]] += k["total_fs"]
            executions[k["label"]] += k["count"]
        self.assertEqual(times, expected)
        self.assertEqual(counts, executions)

    def test_collective_slices_sum_to_the_results(self):
        times = collections.Counter()
        for s in slices(self.timeline):
            if s["cat"] == "transfer":
                times[s["name"]] += femtoseconds(s["dur"])
        self.assertEqual(times, {c["label"]: c["total_fs"] for c in self.results["collectives"]})

    def test_slices_of_a_track_follow_each_other(self):
        ends = collections.defaultdict(int)
        for s in slices(self.timeline):
            start = femtoseconds(s["ts"])
            track = (s["pid"], s["tid"])
            self.assertGreaterEqual(start, ends[track])
            ends[track] = start + femtoseconds(s["dur"])
        self.assertEqual(max(ends.values()), self.results["step_fs"])

    def test_slices_name_op_block_and_iteration(self):
        forward = {s["args"]["iteration"] for s in slices(self.timeline) if s["args"]["block"] == "layer_fwd"}
        # Two micro-steps of two layers.
        self.assertEqual(forward, {"0/0", "0/1", "1/0", "1/1"})
        self.assertIn("qkv", {s["args"]["op"] for s in slices(self.timeline)})

    def test_order_of_construction_changes_no_byte(self):
        expected = record("instance16.json", self.sixteen, "--timeline-chips", "1,9", "--timeline-limit", "999")[0]
        for seed in (1, 2):
            self.assertEqual(expected, record("instance16.json", self.sixteen, "--timeline-chips", "1,9",
                                              "--timeline-limit", "999", "--set", f"run.shuffle={seed}")[0])

    def test_a_limit_drops_later_slices_and_says_so(self):
        _, cut, _ = record("chip1.json", self.one, "--timeline-limit", "100")
        data = cut["otherData"]
        kept, everything = slices(cut), slices(self.timeline)
        self.assertLessEqual(len(kept), 100)
        self.assertEqual(len(kept) + data["dropped_slices"], len(everything))
        until = decimal.Decimal(data["complete_until_us"])
        self.assertEqual(kept, [s for s in everything if s["ts"] + s["dur"] < until])
        self.assertIn("dropped", data["note"])

    def test_compressed_it_is_the_same(self):
        with tempfile.TemporaryDirectory() as out:
            runner.run("--config", "chip1.json", "--trace", self.one, "--out", out, "--quiet", "--timeline",
                       "--timeline-gzip")
            files = {f.name for f in pathlib.Path(out).iterdir()}
            self.assertNotIn("timeline.json", files)
            self.assertEqual(gzip.decompress((pathlib.Path(out) / "timeline.json.gz").read_bytes()).decode(),
                             self.text)

    def test_recording_changes_no_result(self):
        self.assertEqual(runner.results("chip1.json", self.one)[1], self.results)

    def test_mistakes(self):
        for options, text in ((["--timeline"], "--out"), (["--timeline-limit", "5"], "--timeline"),
                              (["--timeline", "--out", "o", "--timeline-chips", "1"], "no chip 1"),
                              (["--timeline", "--out", "o", "--timeline-chips", "0,x"], "whole numbers")):
            done = runner.run("--config", "chip1.json", "--trace", self.one, *options, expect=2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
