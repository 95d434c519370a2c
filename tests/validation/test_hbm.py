# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The HBM stack alone against Ramulator 2.1, and the run model against the burst model."""
import unittest

import runner
from published import HBM, HBM_MIX, hbm, one_stream


def errors(rows, mode, key="bandwidth_fraction"):
    return [hbm(row, mode)[key] / row[key] - 1 for row in rows]


def mean(values):
    values = [abs(v) for v in values]
    return sum(values) / len(values)


def worst(values):
    return max(abs(v) for v in values)


def rows(depth, alone):
    return [r for r in HBM["reads"] if r["queue_depth"] == depth and one_stream(r) == alone]


class HbmReferenceTest(unittest.TestCase):
    def test_deep_queue_streams(self):
        self.assertLessEqual(worst(errors(rows(128, True), "exact")), 0.022)

    def test_deep_queue_random_and_several_streams(self):
        by_refresh = {}
        for row in rows(128, False):
            error = hbm(row, "exact")["bandwidth_fraction"] / row["bandwidth_fraction"] - 1
            by_refresh.setdefault(row["refresh"], []).append(error)
        self.assertEqual(sorted(by_refresh), ["all_bank", "none", "per_bank"])
        for refresh, found in by_refresh.items():
            self.assertLessEqual(mean(found), 0.02, refresh)
            self.assertLessEqual(worst(found), 0.06, refresh)

    def test_latency(self):
        found = errors(rows(128, True) + rows(128, False), "exact", "mean_latency_ns")
        self.assertLessEqual(mean(found), 0.02)

    def test_shallow_queue(self):
        found = errors(rows(64, True) + rows(64, False), "exact")
        self.assertLessEqual(mean(found), 0.02)
        self.assertLessEqual(worst(found), 0.09)

    def test_reads_and_writes(self):
        for row in HBM_MIX:
            error = hbm(row, "exact")["bandwidth_fraction"] / row["bandwidth_fraction"] - 1
            self.assertLessEqual(abs(error), 0.04, row)
            error = hbm(row, "runs")["bandwidth_fraction"] / row["bandwidth_fraction"] - 1
            self.assertLessEqual(abs(error), 0.05, row)

    def test_runs_follow_bursts(self):
        found = [hbm(r, "runs")["bandwidth_fraction"] / hbm(r, "exact")["bandwidth_fraction"] - 1
                 for r in rows(128, True) + rows(128, False)]
        self.assertLessEqual(mean(found), 0.02)
        self.assertLessEqual(worst(found), 0.06)


class HbmCommandTest(unittest.TestCase):
    def refused(self, *arguments):
        return runner.run("hbm", "--config", "chip1.json", *arguments, expect=2).stderr

    def test_same_bytes_twice(self):
        row = {"pattern": "random", "block": 256}
        self.assertEqual(hbm(row, "exact"), hbm(row, "exact"))
        self.assertNotEqual(hbm(row, "exact", "--seed", "2"), hbm(row, "exact"))

    def test_mistakes_name_what_to_give(self):
        self.assertIn("4 column bits 'c'", self.refused("--mapping", "PGccKccS"))
        self.assertIn("unknown letter 'x'", self.refused("--mapping", "PGccKcccSx"))
        self.assertIn("expected a multiple of the burst", self.refused("--block", "33"))
        self.assertIn("a stack has 16", self.refused("--channels", "17"))
        self.assertIn("from 0 to 1", self.refused("--reads", "2"))

    def test_rates_too_slow_for_refresh_are_refused(self):
        slow = ("--set", "chip.hbm.bandwidth=10GB/s")
        self.assertIn("too slow for the refreshes", self.refused(*slow))
        alone = runner.run("hbm", "--config", "chip1.json", *slow, "--refresh", "none", "--bursts", "2000")
        self.assertIn("GB/s", alone.stdout)

    def test_all_channels_work(self):
        one = hbm({"pattern": "stream", "streams": 1}, "exact")
        all_16 = hbm({"pattern": "stream", "streams": 1}, "exact", "--channels", "16")
        self.assertGreater(all_16["gb_per_s"], 12 * one["gb_per_s"])


if __name__ == "__main__":
    unittest.main()
