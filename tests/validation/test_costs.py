#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Costs that are twice as high move published values out of their bars. docs/kernels.md lists all costs."""
import unittest

import costs

BITE = ["chip.tensor.clock", "chip.tensor.macs_per_pe_cycle.fp16", "chip.vector.clock", "chip.dma.plateau_rate",
        "chip.dma.issue_interval", "chip.dma.completion", "chip.hbm.bandwidth", "chip.hbm.t_faw"]
# No published value is of these formats.
FREE = ["chip.tensor.macs_per_pe_cycle.tf32"]


class CostsTest(unittest.TestCase):
    def test_costs_move_published_values(self):
        before = costs.within(costs.values())
        self.assertGreater(len(before), 60)
        for key in BITE:
            self.assertTrue(costs.moved(key, before, most=1), key)
        for key in FREE:
            self.assertEqual(costs.moved(key, before, most=1), [], key)

    def test_costs_are_those_of_the_files(self):
        self.assertGreater(len(costs.COSTS), 50)
        self.assertEqual(costs.COSTS["chip.dma.issue_interval"]["trn2_chip.json"], "1720 ns")
        self.assertEqual(costs.COSTS["chip.dma.plateau_rate"]["trn2_chip.json"], "11.5 GB/s")
        self.assertEqual(costs.COSTS["chip.tensor.min_interval_cycles"]["trn1_chip.json"], 128)
        for key in ("chip.sbuf.capacity", "chip.vector.lanes", "chip.hbm.channels"):
            self.assertNotIn(key, costs.COSTS)
        self.assertLessEqual(set(costs.ALONG) | set(costs.ALONG.values()), set(costs.COSTS))


if __name__ == "__main__":
    unittest.main()
