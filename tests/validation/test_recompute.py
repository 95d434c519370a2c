# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""What recompute costs and saves: the same model work, more hardware work, less memory."""
import tempfile
import unittest

import runner

LAYERS = 4


class RecomputeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.runs = {what: runner.summary("chip1.json", runner.generate(
                folder, f"{what}.trace", layers=LAYERS, seq=2048, gbs=4, recompute=what))
                for what in ("none", "selective", "full")}

    def test_full_recompute_lowers_mfu_and_keeps_hfu(self):
        none, full = self.runs["none"], self.runs["full"]
        # A layer's forward is a third of its work; with the head the step grows by a bit less.
        self.assertLess(full["mfu_estimated_percent"], 0.82 * none["mfu_estimated_percent"])
        self.assertGreater(full["mfu_estimated_percent"], 0.75 * none["mfu_estimated_percent"])
        self.assertAlmostEqual(full["hfu_estimated_percent"] / none["hfu_estimated_percent"], 1, delta=0.02)
        self.assertGreater(full["hfu_estimated_percent"], full["mfu_estimated_percent"])
        self.assertGreater(full["recompute_and_padding_percent"], 10)

    def test_what_is_computed_again_is_not_kept(self):
        none, selective, full = (self.runs[what]["peak_memory_bytes"] for what in ("none", "selective", "full"))
        # Per layer SiLU x mul is 2 T F/t bytes, and the peak comes in the head, after all layers.
        silu = 2 * 2048 * 11008 // 4
        self.assertEqual(none - selective, LAYERS * silu)
        # Of all that a layer saves, full recompute keeps the input; one layer is there in full.
        tokens, hidden, ranks = 2048, 4096, 4
        saved = (2 * (4 + 4) * tokens * hidden + 2 * 3 * tokens * 11008 + 4 * tokens * 32) // ranks
        kept = 2 * tokens * hidden // ranks
        self.assertGreaterEqual(none - full, (LAYERS - 1) * (saved - kept) - 4 * tokens * hidden)
        self.assertLessEqual(none - full, LAYERS * (saved - kept))


if __name__ == "__main__":
    unittest.main()
