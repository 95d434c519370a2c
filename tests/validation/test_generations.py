# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The shipped chips: every system file is sound, a memory-bound step takes about its bytes at the rate of the
slower of HBM and the DMA engines, and what a generation lacks is an error that names it."""
import json
import pathlib
import tempfile
import unittest

import runner

CONFIGS = runner.ROOT / "configs"
GENERATIONS = {"trn1_chip.json": 2, "trn2_chip.json": 4, "chip1.json": 4}  # ranks: logical cores of a chip
ELEMS = 1 << 26


def number(text):
    """Bytes per second of "2.9 TB/s"."""
    value, unit = text.split()
    return float(value) * {"GB/s": 1e9, "TB/s": 1e12}[unit]


class GenerationsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def trace(self, ranks, **op):
        lines = [{"trace": "trn3sim", "v": 1, "name": "t", "rank_unit": "logical_core", "mesh": [["tp", ranks]],
                  "defaults": {"dtype": "bf16"}, "tokens_per_step": 0, "memory": []}, op]
        file = pathlib.Path(self.folder.name) / "t.trace"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    def chip(self, config):
        system = json.loads((CONFIGS / config).read_text())
        return json.loads((CONFIGS / system["chip"]).read_text())

    def test_every_system_file_is_sound(self):
        files = sorted(CONFIGS.glob("*.json"))
        self.assertGreater(len(files), 6)
        for file in files:
            runner.run("config", "check", file.name)

    def test_a_residual_add_is_bound_by_memory(self):
        times = []
        for config, ranks in GENERATIONS.items():
            chip = self.chip(config)
            add = self.trace(ranks, op="vec", id="add", fn="add", elems=ELEMS)
            _, r = runner.results(config, add)
            self.assertTrue(all(c["passed"] for c in r["checks"]), r["checks"])
            moved = 3 * 2 * ELEMS * ranks  # two operands read, one result written
            self.assertEqual(r["hbm_read_bytes"] + r["hbm_write_bytes"], moved)
            engines = chip["cores"]["value"] * chip["dma"]["engines"]["value"]
            rate = min(number(chip["hbm"]["bandwidth"]["value"]) * chip["hbm"]["derate"]["value"],
                       number(chip["dma"]["plateau_rate"]["value"]) * engines)
            seconds = r["step_fs"] * 1e-15
            self.assertGreater(seconds, moved / rate)
            self.assertLess(seconds, 1.3 * moved / rate)
            times.append(seconds / ranks)
        self.assertEqual(times, sorted(times, reverse=True))  # each generation is faster

    def test_what_a_generation_lacks_is_an_error(self):
        for config, op, words in [
                ("trn1_chip.json", dict(dtype="mxfp8"), "Trainium1 cannot multiply mxfp8; it has fp32, tf32, bf16, fp16, fp8"),
                ("trn2_chip.json", dict(dtype="mxfp4"), "Trainium2 cannot multiply mxfp4")]:
            gemm = self.trace(GENERATIONS[config], op="gemm", id="g", m=256, n=256, k=512, **op)
            done = runner.run("--config", config, "--trace", gemm, expect=2)
            self.assertIn(words, done.stderr)
        gemm = self.trace(2, op="gemm", id="g", m=256, n=256, k=512)
        for switch, words in [("precision.sparsity=4:16", "Trainium1 has no sparse weights"),
                              ("precision.matmul=mxfp8", "Trainium1")]:
            done = runner.run("--config", "trn1_chip.json", "--trace", gemm, "--set", switch, expect=2)
            self.assertIn(words, done.stderr)

    def test_pairs_of_cores_are_an_error_without_them(self):
        done = runner.run("--config", "trn1_chip.json", "--trace", self.trace(2, op="vec", id="v", fn="add", elems=64),
                          "--set", "chip.logical_core_size=2", expect=2)
        self.assertIn("chip.logical_core_size", done.stderr)


if __name__ == "__main__":
    unittest.main()
