#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Tests the golden runner and update_golden.py with a stand-in for the program."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import golden

HERE = pathlib.Path(__file__).resolve().parent
UPDATE = HERE.parent.parent / "scripts" / "update_golden.py"
GOOD = {"step_fs": 5, "energy_nj": {"total": 3}, "links": [{"bytes": 1}, {"bytes": 2}], "model_version": "x"}


class GoldenTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        self.case = self.root / "cases" / "toy"
        self.case.mkdir(parents=True)
        (self.case / "run.json").write_text('{"config": "c.json", "trace": "t.trace", "set": ["run.seed=2"]}')
        self.program = self.root / "program"
        self.make_program(GOOD)

    def tearDown(self):
        self.scratch.cleanup()

    def make_program(self, results, rank_ops=7, code=0):
        """A program that writes `results` and its arguments."""
        self.program.write_text(f"""#!{sys.executable}
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]); out.mkdir()
(out / "results.json").write_text({json.dumps(json.dumps(results))})
(out / "run_info.json").write_text('{{"rank_ops": {rank_ops}}}')
pathlib.Path({str(self.root / "arguments")!r}).write_text(" ".join(sys.argv[1:]))
sys.exit({code})
""")
        self.program.chmod(0o755)

    def run_golden(self):
        return subprocess.run([sys.executable, HERE / "run_golden.py", self.program, self.case],
                              capture_output=True, text=True, check=False)

    def update(self, *more):
        return subprocess.run([sys.executable, UPDATE, "--program", self.program, "--cases", self.root / "cases", *more],
                              capture_output=True, text=True, check=False)

    def test_update_then_run(self):
        self.assertEqual(self.run_golden().returncode, 1)  # nothing expected yet
        self.assertEqual(self.update("--reason", "first").returncode, 0)
        self.assertEqual(self.run_golden().returncode, 0)
        arguments = (self.root / "arguments").read_text()
        self.assertIn("--config c.json --trace t.trace", arguments)
        self.assertIn("--set run.seed=2", arguments)

    def test_names_the_first_difference(self):
        self.update("--reason", "first")
        self.make_program({**GOOD, "links": [{"bytes": 1}, {"bytes": 9}]})
        done = self.run_golden()
        self.assertEqual(done.returncode, 1)
        self.assertIn("toy: links[1].bytes: expected 2, found 9", done.stdout)
        done = self.update("--reason", "links carry more")
        self.assertIn("toy: links[1].bytes: 2 -> 9", done.stdout)
        self.assertEqual(self.run_golden().returncode, 0)

    def test_the_model_version_does_not_matter(self):
        self.update("--reason", "first")
        self.make_program({**GOOD, "model_version": "y"})
        self.assertEqual(self.run_golden().returncode, 0)

    def test_types_and_missing_keys_matter(self):
        self.assertEqual(list(golden.differences({"a": 1}, {"a": 1.0})), [("a", 1, 1.0)])
        self.assertEqual(list(golden.differences({"a": 1}, {"b": 1})), [("a", 1, None), ("b", None, 1)])
        self.assertEqual(list(golden.differences([1], [1, 2])), [("", [1], [1, 2])])

    def test_refuses_when_nothing_was_simulated(self):
        for results, rank_ops in (({**GOOD, "step_fs": 0}, 7), (GOOD, 0), ({**GOOD, "energy_nj": {"total": 0}}, 7)):
            self.make_program(results, rank_ops)
            done = self.update("--reason", "first")
            self.assertEqual(done.returncode, 1)
            self.assertFalse((self.case / "expected.json").exists())

    def test_refuses_without_reason_or_with_a_failing_program(self):
        self.assertNotEqual(self.update().returncode, 0)
        self.assertNotEqual(self.update("--reason", " ").returncode, 0)
        self.make_program(GOOD, code=3)
        done = self.update("--reason", "first")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3", done.stdout)
        self.assertFalse((self.case / "expected.json").exists())


if __name__ == "__main__":
    unittest.main()
