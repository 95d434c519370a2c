#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The program from outside: exit codes, streams and files. Usage: program_test.py PROGRAM."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
MODEL = ["--layers", "1", "--hidden", "1024", "--heads", "8", "--ffn", "2048", "--vocab", "4096", "--seq", "512",
         "--tp", "4", "--dp", "1", "--gbs", "2", "--mbs", "1", "--rank-unit", "logical_core"]


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def run_program(self, *arguments, **more):
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.root, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=100, **more)

    def generate(self):
        done = self.run_program("trace", "gen", "llama", *MODEL, "-o", "toy.trace")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def entries(self):
        return sorted(path.name for path in self.root.iterdir())

    def test_a_run_reports_on_stdout_and_writes_its_files(self):
        self.generate()
        common = ("--config", "chip1.json", "--trace", "toy.trace")
        text = self.run_program(*common, "--out", "out/a")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        lines = text.stdout.splitlines()
        self.assertLessEqual(len(lines), 50)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertIn("add up to 100.0 %", text.stdout)
        as_json = self.run_program(*common, "--format", "json", "--out", "out/b")
        self.assertEqual((as_json.returncode, as_json.stderr), (0, ""))
        summary = json.loads(as_json.stdout)
        self.assertGreater(summary["step_time_s"], 0)
        self.assertAlmostEqual(sum(summary["breakdown_percent"].values()), 100, places=6)
        self.assertAlmostEqual(sum(summary["energy_percent"].values()), 100, places=6)
        self.assertTrue(summary["checks_passed"])
        a, b = self.root / "out/a", self.root / "out/b"
        self.assertEqual(sorted(path.name for path in a.iterdir()),
                         ["collectives.csv", "kernels.csv", "links.csv", "results.json", "run_info.json"])
        self.assertEqual((a / "results.json").read_bytes(), (b / "results.json").read_bytes())

    def test_mistakes_end_with_two_and_write_nothing(self):
        self.generate()
        (self.root / "bad.trace").write_text("not json\n")
        for arguments in (["--config", "nope.json", "--trace", "toy.trace"],
                          ["--config", "chip1.json", "--trace", "nope.trace"],
                          ["--config", "chip1.json", "--trace", "bad.trace"],
                          ["--config", "chip1.json", "--trace", "toy.trace", "--set", "chip.nope=1"],
                          ["--config", "chip1.json"], ["--confg", "x"], ["simulate"], ["trace", "chek", "toy.trace"]):
            done = self.run_program(*arguments, *(["--out", "out"] if "--trace" in arguments else []))
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertTrue(all(line.startswith("error: ") for line in done.stderr.splitlines()), done.stderr)
            self.assertEqual(self.entries(), ["bad.trace", "toy.trace"], arguments)

    def test_an_output_directory_that_is_a_file_is_found_before_the_run(self):
        self.generate()
        done = self.run_program("--config", "chip1.json", "--trace", "toy.trace", "--out", "toy.trace")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a file, expected a directory", done.stderr)

    def test_trace_info_and_check(self):
        self.generate()
        info = json.loads(self.run_program("trace", "info", "toy.trace", "--format", "json").stdout)
        self.assertEqual((info["ranks"], info["tokens_per_step"]), (4, 1024))
        self.assertEqual(self.run_program("trace", "info", "toy.trace", "--rank", "4").returncode, 2)
        self.assertIn("ok", self.run_program("trace", "check", "toy.trace").stdout)
        (self.root / "bad.trace").write_text("not json\n")
        done = self.run_program("trace", "check", "bad.trace")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bad.trace:1", done.stderr)

    def test_generated_text_can_go_to_stdout(self):
        self.generate()
        done = self.run_program("trace", "gen", "llama", *MODEL, "-o", "-")
        self.assertEqual(done.stdout, (self.root / "toy.trace").read_text())

    def test_stdout_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_program("--help", stdout=full)
        self.assertEqual(done.returncode, 2)
        self.assertIn("error: standard output", done.stderr)
        closed = subprocess.run(["sh", "-c", '"$0" --version >&-', PROGRAM], capture_output=True, check=False)
        self.assertEqual(closed.returncode, 2)
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = self.run_program("--help", stdout=write_end)
        os.close(write_end)
        self.assertEqual(done.returncode, 2)

    def test_help_and_version(self):
        self.assertIn("Examples", self.run_program("--help").stdout)
        self.assertRegex(self.run_program("--version").stdout, r"^trn3sim \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
