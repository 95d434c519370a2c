#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Published kernels against `trn3sim kernel`: data/kernels.json says what was measured and how far off is allowed.

`off_target` names the quantities that are known to be further off, with what the model gave; one that is met again must
leave the list.
"""
import unittest

import published
from published import DATA, DMA, KERNELS

MODELLED = {}  # by id; a run takes a second


def modelled(row):
    if row["id"] not in MODELLED:
        MODELLED[row["id"]] = published.kernel(row)
    return MODELLED[row["id"]]


class KernelsTest(unittest.TestCase):
    def test_published_kernels(self):
        self.assertGreater(len(KERNELS), 10)
        for row in KERNELS:
            values = modelled(row)
            for name, measured in row["measured"].items():
                error = values[name] / measured - 1
                with self.subTest(f"{row['id']} {name}: {values[name]:.1f} against {measured} ({100 * error:+.1f} %)"):
                    if name in row["off_target"]:
                        self.assertGreater(abs(error), row["allowed"][name], "on target now: take it off the list")
                    else:
                        self.assertLessEqual(abs(error), row["allowed"][name])

    def test_dma_efficiency_by_row_size(self):
        """The same overheads give the curve of single copies and the rate of copies on several rings."""
        for point in DMA["curve"]:
            with self.subTest(f"{point['bytes']} B"):
                self.assertAlmostEqual(published.curve_percent(point["bytes"]), point["percent"], delta=3)
        for point in DMA["copies"]:
            with self.subTest(f"copies of {point['bytes']} B"):
                self.assertLess(abs(published.copies_gbps(point["bytes"]) / point["gbps_while_active"] - 1), 0.1)
        one = DMA["one_engine"]
        values = published.copy("--bytes", one["bytes"], "--partitions", one["partitions"])
        self.assertLess(abs(values["dma_active_us"] * 1e3 / one["active_ns"] - 1), 0.1)

    def test_rows_are_complete(self):
        used = set()
        for row in KERNELS:
            self.assertTrue(row["citation"], row["id"])
            self.assertEqual(set(row["allowed"]), set(row["measured"]), row["id"])
            self.assertLessEqual(set(row["off_target"]), set(row["measured"]), row["id"])
            used.add(row["mapping"])
        self.assertEqual(len({row["id"] for row in KERNELS}), len(KERNELS))
        self.assertEqual({path.name for path in (DATA / "mappings").iterdir()}, used - {None})

    def test_every_version_orders_as_measured(self):
        """What the sources are about: each version of a kernel is faster than the one before."""
        time = {row["id"]: modelled(row)["time_us"] for row in KERNELS if "time_us" in row["measured"]}
        for slow, fast in (("T2-MM4096-V0", "T2-MM4096-V1"), ("T2-MM4096-V1", "T2-MM4096-V2"),
                           ("T2-MM2048-PSUM1", "T2-MM2048-PSUM2"), ("T1-MM-BF16-o0", "T1-MM-BF16-o3")):
            self.assertGreater(time[slow], time[fast])


if __name__ == "__main__":
    unittest.main()
