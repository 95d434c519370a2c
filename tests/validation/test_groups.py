#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Equal groups of rows with weights of their own (experts of one capacity): `--batch` of a gemm.

A group's operands are used by that group only: its weights are read from HBM and loaded into the array for its rows.
"""
import json
import unittest

import runner

N = K = 1024
BYTES = 2  # bf16


def gemm(groups, m, cores=1):
    return json.loads(runner.run("kernel", "gemm", "--config", runner.ROOT / "configs/chip1.json", "--batch", groups,
                                 "--m", m, "--n", N, "--k", K, "--cores", cores, "--format", "json").stdout)


class GroupsTest(unittest.TestCase):
    def test_bytes_and_work(self):
        for groups, m in ((1, 512), (4, 512), (8, 100), (16, 1)):
            with self.subTest(groups=groups, m=m):
                run = gemm(groups, m)
                self.assertEqual(run["flop"], 2 * groups * m * N * K)
                self.assertEqual(run["hbm_read_bytes"], groups * (m * K + K * N) * BYTES)
                self.assertEqual(run["hbm_write_bytes"], groups * m * N * BYTES)

    def test_each_group_loads_the_array_with_its_weights(self):
        """Weights are stationary here: (N / 128) (K / 128) tiles per group, each followed by the group's rows alone."""
        apart, together = gemm(8, 100), gemm(1, 800)
        tiles = (N // 128) * (K // 128)
        self.assertEqual(apart["flop"], together["flop"])
        self.assertEqual(apart["matmuls"], 8 * tiles)
        self.assertEqual(together["matmuls"], 2 * tiles)  # at most 512 rows each
        self.assertGreater(apart["tensor_engine_active_us"], together["tensor_engine_active_us"])
        self.assertGreater(apart["time_us"], together["time_us"])

    def test_whole_tiles_take_the_passes_of_one_gemm(self):
        """The blocks of the two mappings differ, which may save the groups 2 % of the time but no byte."""
        apart, together = gemm(4, 512), gemm(1, 2048)
        self.assertEqual(apart["matmuls"], together["matmuls"])
        self.assertGreater(apart["time_us"], together["time_us"] * 0.98)
        self.assertGreater(apart["hbm_read_bytes"], together["hbm_read_bytes"])

    def test_more_cores_read_at_least_each_weight_once(self):
        one, two = gemm(8, 100), gemm(8, 100, cores=2)
        self.assertEqual(two["flop"], one["flop"])
        self.assertGreaterEqual(two["hbm_read_bytes"], one["hbm_read_bytes"])
        self.assertEqual(two["hbm_write_bytes"], one["hbm_write_bytes"])
        self.assertLess(two["time_us"], one["time_us"])


if __name__ == "__main__":
    unittest.main()
