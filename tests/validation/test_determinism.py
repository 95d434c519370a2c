# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Same inputs, same bytes, whatever the order of construction and profiling."""
import tempfile
import unittest

import runner


class DeterminismTest(unittest.TestCase):
    def test_shuffled_orders_change_no_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", dp=16, gbs=16, overlap_grad_reduce=True)
            expected, _ = runner.results("instance16.json", trace)
            again, _ = runner.results("instance16.json", trace)
            self.assertEqual(expected, again)
            for seed in (1, 2, 3):
                shuffled, _ = runner.results("instance16.json", trace, f"run.shuffle={seed}")
                self.assertEqual(expected, shuffled, f"run.shuffle={seed}")


if __name__ == "__main__":
    unittest.main()
