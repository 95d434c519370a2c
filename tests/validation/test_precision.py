# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Precision policies: what gets faster, what moves fewer bytes, and what stays."""
import json
import tempfile
import unittest

import runner

CONFIG = "chip1.json"
FORMATS = ["bf16", "mxfp8", "mxfp4"]


class PrecisionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", seq=512, gbs=8)
            cls.trace_policy = runner.results(CONFIG, trace)[1]
            cls.runs = {f: runner.results(CONFIG, trace, f"precision.matmul={f}")[1] for f in FORMATS}
            cls.sparse = runner.results(CONFIG, trace, "precision.sparsity=4:16")[1]
            cls.refused = runner.run(
                "--config", CONFIG, "--trace", trace, "--set", "precision.matmul=mxfp8",
                "--set", "precision.sparsity=4:16", expect=2).stderr

    def total_energy(self, run):
        return run["energy_nj"]["total"]

    def test_bf16_is_what_the_trace_says(self):
        for key in ("step_fs", "hbm_read_bytes", "hbm_write_bytes", "hbm_scale_bytes"):
            self.assertEqual(self.runs["bf16"][key], self.trace_policy[key])

    def test_mxfp8_is_strictly_faster_and_mxfp4_never_slower(self):
        steps = [self.runs[f]["step_fs"] for f in FORMATS]
        self.assertLess(steps[1], 0.9 * steps[0])
        self.assertLessEqual(steps[2], steps[1])

    def test_no_free_lunch(self):
        # GEMMs become at most four times as fast; attention, vector work and collectives do not.
        self.assertGreater(self.runs["mxfp8"]["step_fs"], self.runs["bf16"]["step_fs"] / 4)
        # The arithmetic is the same: only its format changes.
        self.assertEqual(self.runs["mxfp8"]["hardware_flop"], self.runs["bf16"]["hardware_flop"])
        vector = [self.runs[f]["engine_busy_fs"]["vector"] for f in FORMATS]
        self.assertGreater(vector[1], vector[0], "VectorE quantises")

    def test_collectives_move_the_same_bytes(self):
        for f in FORMATS:
            self.assertEqual(self.runs[f]["bytes_sent"], self.runs["bf16"]["bytes_sent"])

    def test_only_mx_runs_have_scales(self):
        self.assertEqual(self.runs["bf16"]["hbm_scale_bytes"], 0)
        for f in FORMATS[1:]:
            scales = self.runs[f]["hbm_scale_bytes"]
            self.assertGreater(scales, 0)
            self.assertLess(scales, self.runs[f]["hbm_read_bytes"] / 16)

    def test_weight_bytes_follow_the_format(self):
        # The optimizer writes two copies of each weight: 8.25 bits of each for MXFP8, 4.25 for
        # MXFP4, and reads 16 bits for both.
        weights = {f: sum(k["hbm_bytes"] * k["count"] for k in self.runs[f]["kernels"]
                          if k["label"].startswith("adamw")) for f in FORMATS}
        extra8 = weights["mxfp8"] - weights["bf16"]
        extra4 = weights["mxfp4"] - weights["bf16"]
        self.assertAlmostEqual(extra4 / extra8, (16 + 2 * 4.25) / (16 + 2 * 8.25), delta=0.001)

    def test_sparse_weights_save_time_and_macs(self):
        self.assertLess(self.sparse["step_fs"], self.runs["bf16"]["step_fs"])
        self.assertLess(self.sparse["hardware_flop"], 0.7 * self.runs["bf16"]["hardware_flop"])

    def test_sparse_mx_is_refused(self):
        self.assertIn("precision.sparsity: 4:16 is for bf16, fp16 or tf32 products", self.refused)


class TraceBars(unittest.TestCase):
    """What holds for every trace: MX runs are faster, move fewer weight bytes and take less energy."""

    def bars(self, config, sets=(), **options):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", **options)
            runs = {f: runner.results(config, trace, f"precision.matmul={f}", *sets)[1] for f in FORMATS}
        step = {f: r["step_fs"] for f, r in runs.items()}
        energy = {f: r["energy_nj"]["total"] for f, r in runs.items()}
        self.assertLess(step["mxfp8"], step["bf16"])
        self.assertLessEqual(step["mxfp4"], step["mxfp8"])
        self.assertLess(energy["mxfp8"], energy["bf16"])
        self.assertLess(energy["mxfp4"], energy["mxfp8"])
        self.assertEqual(runs["bf16"]["hbm_scale_bytes"], 0)
        # Blocks have 32 values in both formats, but their kernels may load operands another number of times.
        self.assertGreater(runs["mxfp4"]["hbm_scale_bytes"], 0)
        for run in runs.values():
            self.assertTrue(all(c["passed"] for c in run["checks"]))
        return runs

    def test_small_model_with_overlapping_collectives(self):
        self.bars("chip1.json", hidden=1024, heads=8, ffn=2816, vocab=4096, seq=1024, dp=1, gbs=8,
                  overlap_grad_reduce=True, **{"kv-heads": 8})

    def test_cut_collectives(self):
        self.bars("chip1.json", ["compile.level=ideal"], seq=2048, gbs=4)

    def test_ranks_of_one_core(self):
        self.bars("chip1.json", tp=8, gbs=8, **{"rank-unit": "core"})

    def test_two_data_parallel_ranks(self):
        self.bars("chip1.json", tp=2, dp=2, seq=512, gbs=16, overlap_grad_reduce=True)


class SparsityTest(unittest.TestCase):
    def test_sparse_weights_on_single_ops(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", tp=8, gbs=8, **{"rank-unit": "core"})
            dense = runner.results("chip1.json", trace)[1]
            sparse = runner.results("chip1.json", trace, "precision.sparsity=4:16")[1]
            mixed = runner.results("chip1.json", trace, "precision.sparsity=4:16",
                                   "precision.ops=head=mxfp8,head_dx=mxfp8")[1]
        self.assertLess(sparse["step_fs"], dense["step_fs"])
        self.assertLess(sparse["energy_nj"]["total"], dense["energy_nj"]["total"])
        self.assertEqual(sparse["hbm_scale_bytes"], 0)
        self.assertGreater(mixed["hbm_scale_bytes"], 0)
        self.assertLess(mixed["step_fs"], dense["step_fs"])


class OpsTest(unittest.TestCase):
    """Formats of single ops."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.trace = runner.generate(cls.folder.name, "t.trace", seq=512, gbs=8)

    def step(self, *sets):
        return runner.results(CONFIG, self.trace, *sets, cached=True)[1]

    def test_a_mix_lies_between_its_formats(self):
        bf16, mxfp8 = self.step(), self.step("precision.matmul=mxfp8")
        mixed = self.step("precision.matmul=mxfp8", "precision.ops=head=bf16,head_dx=bf16,head_dw=bf16")
        for key in ("step_fs", "hbm_scale_bytes"):
            low, high = sorted((bf16[key], mxfp8[key]))
            self.assertTrue(low < mixed[key] < high, key)

    def test_all_ops_by_name_are_the_policy(self):
        names = [f"{p}{s}" for p in ("qkv", "o", "gate_up", "down", "head") for s in ("", "_dx", "_dw")]
        text = ",".join(f"{n}=mxfp8" for n in names)
        one = self.step("precision.matmul=mxfp8")
        self.assertEqual(self.step(f"precision.ops={text}")["step_fs"], one["step_fs"])
        self.assertEqual(self.step(f"precision.ops={text}")["energy_nj"], one["energy_nj"])

    def test_mistakes_end_before_the_run(self):
        for ops, expect in (("hed=bf16", 'did you mean "head"?'),
                            ("layer_fwd.norm1=bf16", "is no gemm"),
                            ("head=bf17", 'did you mean "bf16"?')):
            error = runner.run("--config", CONFIG, "--trace", self.trace, "--set", f"precision.ops={ops}",
                               expect=2).stderr
            self.assertIn(expect, error)


class AttributionTest(unittest.TestCase):
    """trn3sim precision: the parts add up to the difference of the two runs, exactly."""

    def attribution(self, trace, to):
        return json.loads(runner.run("precision", "--config", CONFIG, "--trace", trace, "--to", to,
                                     "--format", "json").stdout)

    def check(self, trace, to):
        found = self.attribution(trace, to)
        first = runner.results(CONFIG, trace, cached=True)[1]
        last = runner.results(CONFIG, trace, f"precision.matmul={to}", cached=True)[1]
        figures = {
            "step_fs": lambda r: r["step_fs"],
            "hbm_bytes": lambda r: r["hbm_read_bytes"] + r["hbm_write_bytes"],
            "hbm_scale_bytes": lambda r: r["hbm_scale_bytes"],
        }
        for key, of in figures.items():
            whole = of(last) - of(first)
            self.assertEqual(found["change"][key], whole, key)
            self.assertEqual(sum(s["change"][key] for s in found["stages"]), whole, key)
        for account in last["energy_nj"]:
            whole = last["energy_nj"][account] - first["energy_nj"][account]
            self.assertEqual(sum(s["change"]["energy_nj"][account] for s in found["stages"]), whole, account)
        self.assertEqual([s["part"] for s in found["stages"]], ["from", "rate", "bytes", "quantise"])
        parts = {s["part"]: s["change"] for s in found["stages"]}
        parts["from"]["total_fs"] = found["stages"][0]["total"]["step_fs"]
        return parts

    def test_a_first_run_that_converts_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", seq=512, gbs=1)
            trace.write_text(trace.read_text().replace('"dtype":"bf16"', '"dtype":"fp32"', 1))
            error = runner.run("precision", "--config", CONFIG, "--trace", trace, "--from", "bf16", expect=2).stderr
        self.assertIn("--from: the tensors of the trace are fp32", error)
        self.assertIn("use --from trace", error)

    def test_parts_add_up_and_have_their_signs(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = runner.generate(folder, "t.trace", seq=512, gbs=8)
            for to in ("mxfp8", "mxfp4", "fp8"):
                parts = self.check(trace, to)
                self.assertLess(parts["rate"]["step_fs"], 0)
                self.assertLess(parts["rate"]["energy_nj"]["tensor"], 0)
                self.assertEqual(parts["rate"]["hbm_scale_bytes"], 0)
                # Bursts of kernels bound by DMA meet otherwise in HBM when operands are freed at other times.
                self.assertGreater(parts["quantise"]["step_fs"], -0.005 * parts["from"]["total_fs"])
                self.assertEqual(parts["quantise"]["hbm_bytes"], 0, "the same mappings")
                self.assertGreater(parts["quantise"]["energy_nj"]["total"], 0)
                self.assertGreater(parts["quantise"]["engine_busy_fs"]["vector"], 0)
                self.assertGreater(parts["quantise"]["energy_nj"]["vector"], 0)
                self.assertEqual(parts["bytes"]["hbm_scale_bytes"] > 0, to != "fp8")
            same = self.check(trace, "bf16")
            self.assertEqual(same["rate"]["step_fs"], 0)


if __name__ == "__main__":
    unittest.main()
