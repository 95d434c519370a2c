#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""`trn3sim kernel` from outside. Usage: kernel_program_test.py PROGRAM."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
GEMM = ("gemm", "--config", "chip1.json", "--m", "512", "--n", "1024", "--k", "768")
ATTENTION = ("attention", "--config", "chip1.json", "--seq", "1024", "--heads", "2", "--head-dim", "128")
VEC = ("vec", "--config", "chip1.json", "--fn", "rmsnorm", "--rows", "1024", "--cols", "2048")


class KernelProgramTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def run_kernel(self, *arguments):
        return subprocess.run([PROGRAM, "kernel", *map(str, arguments)], cwd=self.root, capture_output=True, text=True,
                              check=False, timeout=100)

    def ok(self, *arguments):
        done = self.run_kernel(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def values(self, *arguments):
        return json.loads(self.ok(*arguments, "--format", "json"))

    def mistake(self, *arguments):
        done = self.run_kernel(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_json_has_times_bytes_and_energy(self):
        v = self.values(*GEMM)
        self.assertEqual(v["hbm_write_bytes"], 2 * 512 * 1024)
        self.assertGreaterEqual(v["hbm_read_bytes"], 2 * 768 * (512 + 1024))
        self.assertEqual(v["matmuls"], 4 * 2 * 6)
        for name in ("tensor", "vector", "scalar", "gpsimd", "sync"):
            self.assertLessEqual(v[f"{name}_engine_active_us"], v["time_us"])
        self.assertGreater(v["tensor_engine_active_us"], 4 * 2 * 6 * 512 / 2400)
        self.assertLess(v["dma_active_us"], v["time_us"])
        self.assertAlmostEqual(v["tflops"], 2 * 512 * 1024 * 768 / v["time_us"] * 1e-6, places=6)
        self.assertAlmostEqual(v["mfu_percent"], 100 * v["tflops"] / v["peak_tflops"], places=6)
        self.assertAlmostEqual(v["energy_j"], sum(v["energy_by_account_j"].values()), places=12)
        self.assertGreater(v["energy_j"], 0)
        self.assertEqual((v["spill_save_bytes"], v["spill_reload_bytes"]), (0, 0))

    def test_stalls_say_who_waits_for_what(self):
        stalls = self.values(*GEMM)["stalls"]
        tensor = [s for s in stalls if s["engine"] == "tensor"]
        self.assertTrue(any(s["waits_for"].startswith("load of ") for s in tensor), tensor)
        self.assertEqual([s["time_us"] for s in tensor], sorted((s["time_us"] for s in tensor), reverse=True))
        v = self.values(*GEMM)
        busy = v["tensor_engine_active_us"] + sum(s["time_us"] for s in tensor)
        self.assertLess(busy, v["time_us"])

    def test_text_has_the_same_numbers(self):
        for kernel in (GEMM, ATTENTION, VEC):
            text, v = self.ok(*kernel, "--explain"), self.values(*kernel, "--explain")
            self.assertIn(f"{v['time_us']:.3f} us", text)
            self.assertIn(v["mapping_text"], text)
            self.assertIn("binds", text)
            self.assertIn(v["binds"], ("tensor", "vector", "dma", "hbm"))
            self.assertLessEqual(max(v["bounds_us"].values()), v["time_us"] * 1.0001)

    def test_the_fastest_of_the_tried_mappings_runs(self):
        for config, dtype, least in (("trn2_chip.json", "bf16", 0.95), ("chip1.json", "mxfp8", 0.85)):
            v = self.values("gemm", "--m", "4096", "--n", "4096", "--k", "4096", "--dtype", dtype,
                            "--explain", "--config", config)
            tried = v["mappings_tried"]
            self.assertEqual(len(tried), 3)
            self.assertEqual(v["time_us"], min(t["time_us"] for t in tried))
            self.assertEqual([t["time_us"] for t in tried if t["chosen"]], [v["time_us"]])
            self.assertGreaterEqual(v["bounds_us"]["tensor"], least * v["time_us"])

    def test_two_runs_are_equal(self):
        self.assertEqual(self.ok(*ATTENTION, "--explain"), self.ok(*ATTENTION, "--explain"))

    def test_options_change_the_kernel(self):
        base = self.values(*GEMM)
        self.assertLess(self.values(*GEMM, "--cores", "2")["time_us"], base["time_us"])
        self.assertGreater(self.values(*GEMM, "--dtype", "fp32")["time_us"], base["time_us"])
        self.assertLess(self.values(*GEMM, "--dtype", "mxfp8")["tensor_engine_active_us"],
                        base["tensor_engine_active_us"] / 2)
        fly = self.values(*GEMM, "--set", "precision.matmul=mxfp8")
        self.assertEqual(fly["hbm_read_bytes"] % (2 * 768), 0)
        self.assertGreater(fly["vector_engine_active_us"], base["vector_engine_active_us"])
        self.assertGreater(self.values(*GEMM, "--ta", "--tb")["transposes"], 0)
        self.assertGreater(self.values(*GEMM, "--accumulate")["hbm_read_bytes"], base["hbm_read_bytes"])
        self.assertIn("+gelu", self.values(*GEMM, "--fuse", "gelu")["kernel"])
        self.assertLess(self.values(*GEMM, "--sparsity", "4:16")["tensor_engine_active_us"],
                        base["tensor_engine_active_us"] / 2)
        forward, backward = self.values(*ATTENTION), self.values(*ATTENTION, "--backward")
        self.assertGreater(backward["time_us"], forward["time_us"])
        self.assertLess(self.values(*ATTENTION, "--causal")["time_us"], forward["time_us"])
        elems = ("--elems", str(1024 * 2048))
        self.assertEqual(self.values(*VEC), self.values(*VEC[:5], *elems))
        slow = self.values(*GEMM, "--set", "chip.hbm.bandwidth=0.5 TB/s")
        self.assertGreater(slow["time_us"], base["time_us"])

    def test_mappings_go_out_and_in(self):
        text = self.ok(*GEMM, "--dump-mapping", "m.json")
        self.assertEqual(self.ok(*GEMM, "--mapping", "m.json"), text)
        self.assertEqual(self.ok(*GEMM, "--dump-mapping", "-"), (self.root / "m.json").read_text())
        mapping = json.loads((self.root / "m.json").read_text())
        self.assertEqual(self.values(*GEMM, "--explain")["mapping"], mapping)
        mapping["panels"]["outer_buffers"] = 60000
        (self.root / "m.json").write_text(json.dumps(mapping))
        self.assertIn("m.json: /panels/outer_block: SBUF needs", self.mistake(*GEMM, "--mapping", "m.json"))
        mapping["panels"]["colour"] = "red"
        (self.root / "m.json").write_text(json.dumps(mapping))
        self.assertIn("m.json: /panels/colour: unknown key", self.mistake(*GEMM, "--mapping", "m.json"))
        self.assertIn("none.json", self.mistake(*GEMM, "--mapping", "none.json"))

    def test_timeline_has_a_track_per_engine_and_queue(self):
        text = self.ok(*GEMM, "--timeline", "t.json")
        self.assertEqual(text, self.ok(*GEMM))
        timeline = json.loads((self.root / "t.json").read_text())
        names = {e["args"]["name"] for e in timeline["traceEvents"] if e["name"] == "thread_name"}
        for part in ("tensor", "vector", "scalar", "DMA queue"):
            self.assertTrue(any(part in name for name in names), names)
        slices = [e for e in timeline["traceEvents"] if e["ph"] == "X"]
        v = self.values(*GEMM)
        self.assertEqual(sum(e["name"] == "multiply_moving" for e in slices), v["matmuls"])
        loads = sum(e["args"]["bytes"] for e in slices if e["name"].startswith("load of"))
        self.assertEqual(loads, v["hbm_read_bytes"])
        self.assertLessEqual(max(e["ts"] + e["dur"] for e in slices), v["time_us"] + 1e-6)
        self.ok(*GEMM, "--timeline", "short.json", "--timeline-limit", "50")
        short = json.loads((self.root / "short.json").read_text())
        self.assertLessEqual(sum(e["ph"] == "X" for e in short["traceEvents"]), 50)
        self.assertGreater(short["otherData"]["dropped_slices"], 0)

    def test_mistakes_say_what_to_do(self):
        config = ("--config", "chip1.json")
        for arguments, said in (
                ((), "kernel needs a kind"), (("gem",), "did you mean \"gemm\"?"),
                (("gemm", *config, "--m", "1", "--n", "1"), "--k is missing; see trn3sim kernel gemm --help"),
                (("gemm", "--m", "1", "--n", "1", "--k", "1"), "--config FILE is missing"),
                (GEMM[:-1] + ("0",), "--k is \"0\", expected a whole number from 1 up"),
                (GEMM + ("--cores", "3"), "--cores is 3; Trainium3 has 2 cores on an HBM stack"),
                (GEMM + ("--dtype", "bf17"), "did you mean \"bf16\"?"),
                (GEMM + ("--sparsity", "4"), "expected KEPT:BLOCK"), (GEMM + ("--sparsity", "1:16"), "no sparsity"),
                (GEMM + ("--fuse", "gelo"), "did you mean \"gelu\"?"),
                (GEMM + ("--mapin", "x"), "unknown option --mapin"), (GEMM + ("--timeline-limit", "5"), "--timeline FILE"),
                (("gemm", *config, "--m", "9999999999", "--n", "9999999999", "--k", "1"), "an HBM stack of Trainium3 has"),
                (ATTENTION + ("--kv-heads", "3"), "not a multiple"), (ATTENTION + ("--fuse", "gelu"), "--fuse belongs"),
                (ATTENTION + ("--mapping", "x.json"), "for trn3sim kernel gemm only"),
                (ATTENTION + ("--dtype", "mxfp8"), "attention in mxfp8 is not available"),
                (VEC[:5] + ("--rows", "4"), "--rows N --cols N"), (VEC + ("--elems", "5"), "or as --elems N"),
                (("vec", *config, "--fn", "rmsnrm", "--elems", "5"), "did you mean \"rmsnorm\"?"),
                (GEMM + ("--set", "precision.ops=a=bf16"), "about the ops of a trace"),
                (("gemm", "--config", "trn2_chip.json") + GEMM[3:] + ("--dtype", "mxfp8"), "does not support mxfp8")):
            with self.subTest(arguments):
                self.assertIn(said, self.mistake(*arguments))


if __name__ == "__main__":
    unittest.main()
