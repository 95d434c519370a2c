#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""What users get wrong: each ends with exit code 2, one line per problem that names the place, what was
found and what was expected, and nothing written. Usage: mistakes_test.py PROGRAM."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
RUN = ["--config", "chip1.json", "--trace", "residual_add.trace"]
TYPO_HELP = "; see trn3sim --help"


class MistakesTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def refused(self, arguments, *expect):
        before = sorted(self.root.rglob("*"))
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.root, capture_output=True, text=True, check=False,
                              timeout=100, errors="replace")
        self.assertEqual((done.returncode, done.stdout), (2, ""), (arguments, done.stderr))
        lines = done.stderr.splitlines()
        self.assertTrue(lines and all(line.startswith("error: ") for line in lines), done.stderr)
        for text in expect:
            self.assertIn(text, done.stderr)
        self.assertEqual(sorted(self.root.rglob("*")), before, "nothing may be written")

    def refused_config(self, content, *expect):
        (self.root / "bad.json").write_bytes(content if isinstance(content, bytes) else content.encode())
        self.refused(["--config", "bad.json", "--trace", "residual_add.trace"], "error: bad.json:", *expect)
        self.refused(["config", "check", "bad.json"], "error: bad.json:", *expect)

    def refused_set(self, text, *expect):
        self.refused([*RUN, "--set", text], *expect)

    def test_commands_and_options(self):
        for arguments, *expect in (
                (["trac"], 'unknown command "trac"; did you mean "trace"?' + TYPO_HELP),
                (["confg", "list"], 'unknown command "confg"; did you mean "config"?'),
                (["simulate"], 'unknown command "simulate"' + TYPO_HELP),
                (["chip1.json", "residual_add.trace"], "files are given as --config FILE and --trace FILE"),
                (["config"], "config needs a command: list, show, check, schema"),
                (["config", "shw"], 'did you mean "show"?; see trn3sim config --help'),
                (["config", "show"], "config show needs a file"),
                (["config", "show", "a", "b"], 'takes one file, found "a" and "b"'),
                (["config", "list", "x"], 'unexpected "x"'),
                (["config", "schema"], "chip or system"),
                (["config", "schema", "chp"], 'did you mean "chip"?'),
                (["config", "schema", "chip", "--format", "yaml"], 'expected json, markdown'),
                (["config", "show", "chip1.json", "--st", "x"], 'unknown option --st; did you mean "--set"?'),
                (["trace", "chek", "x"], 'did you mean "check"?'),
                ([*RUN, "--qiet"], 'unknown option --qiet; did you mean "--quiet"?'),
                ([*RUN, "-x"], "unknown option -x"),
                ([*RUN, "--quiet=1"], "--quiet"),
                ([*RUN, "--format"], "--format"),
                ([*RUN, "--format", "xml"], "expected text, json"),
                ([*RUN, "--compile", "Stock"], 'did you mean "stock"?'),
                ([*RUN, "--config", "chip1.json"], "more than once"),
                ([*RUN, "extra"], 'unexpected "extra"'),
                ([""], 'unexpected ""')):
            with self.subTest(arguments):
                self.refused(arguments, "error: command line: ", *expect)

    def test_overrides(self):
        for text, *expect in (
                ("chip.cores", "expected PATH=VALUE"), ("", "expected PATH=VALUE"), ("=1", "expected PATH=VALUE"),
                ("chip..cores=1", "a name of the path is empty"),
                ("cip.cores=1", 'it starts with one of', 'did you mean "chip"?'),
                ("chip.coress=1", 'unknown key "coress" in chip; did you mean "cores"?'),
                ("chip.cores=1.5", "expected a whole number, got 1.5"),
                ("chip.cores=0", "expected a whole number from 1 to 1024, got 0"),
                ("chip.cores=99999999999999999999", "expected a whole number"),
                ("chip.cores=eight", 'expected a whole number, got "eight"'),
                ("chip.hbm.bandwidth=6", 'expected a quantity such as "4.9 TB/s"'),
                ("chip.hbm.bandwidth=6 TB", "unit B/s, kB/s"),
                ("chip.hbm.bandwidth=99999999999999999999 TB/s", "at most 18 digits"),
                ("chip.hbm.bandwidth=2000 PB/s", "at most 1000 PB/s"),
                ("chip.hbm.derate=nan", "expected a number"), ("chip.hbm.derate=1.5", "at most 1"),
                ("chip=nowhere.json", "no such chip file"), ("chip=", "empty"),
                ("chip.hbm.source=me", "no value that can be set"), ("kind=chip", "unknown path"),
                ("run.seed=-1", "at least 0"), ("fabric.type=rings", 'did you mean "ring"?'),
                ("compile.level=best", '"stock", "tuned" or "ideal"'),
                ("name=", "expected a text")):
            with self.subTest(text):
                self.refused_set(text, text, *expect)
        self.refused(["config", "show", "chip1.json", "--set", "chip.coress=1"], 'did you mean "cores"?')
        self.refused(["--config", "torus16.json", "--trace", "residual_add.trace", "--set", "fabric.dims=" + "[" * 50000],
                     "a list of 1 to 6 whole numbers")

    def test_files_that_are_no_configuration(self):
        junk = bytes(range(256)) * 100
        for content, *expect in (
                (b"", "the file is empty; expected a JSON object"), (b" \n\t\n", "empty"),
                (junk, "binary data"), (b'{"kind": "system"}\0', "NUL"), ('{"kind": "system"}'.encode("utf-16"), "UTF-16"),
                (b"\x7fELF\x02\x01\x01", "not valid JSON"), (b'{"kind": "\xff"}', "not valid JSON"),
                ("[1, 2]", "expected an object, got a list"), ("7", "expected an object, got 7"),
                ('{"kind": "system",\n "name": }', "bad.json:2:10: not valid JSON"),
                ('{"kind": "system"', "unexpected end of input"),
                ('{"kind": "system", "kind": "system"}', "/kind: duplicate key"),
                ('{"kind": "sistem"}', 'got "sistem"'), ("{}", "/kind: required, but missing"),
                ('{"kind": 1e999}', "number overflow"),
                ("[" * 1_000_000, "bad.json:1:65: objects and lists nest more than 64 deep"),
                ('{"a":' * 200_000 + "1" + "}" * 200_000, "nest more than 64 deep"),
                ('{"kind": "system", "name": ' + "[" * 200_000 + "]" * 200_000 + "}", "nest more than 64 deep")):
            with self.subTest(content[:40]):
                self.refused_config(content, *expect)

    def test_a_configuration_without_end(self):
        self.refused(["--config", "/dev/zero", "--trace", "x"], "/dev/zero: longer than 256 MiB")

    def test_files_that_are_not_there(self):
        (self.root / "folder").mkdir()
        (self.root / "dangling.json").symlink_to("nowhere")
        for arguments, *expect in (
                (["--config", "folder", "--trace", "x"], "folder: is a directory, not a configuration file"),
                (["--config", "chip1.json", "--trace", "folder"], "folder: is a directory, not a trace file"),
                (["--config", "dangling.json", "--trace", "x"], "no such configuration file"),
                (["--config", "ultraserver46.json", "--trace", "x"], 'did you mean "ultraserver64.json"?'),
                (["--config", "chip1.json", "--trace", "lama7b.trace"], 'did you mean "llama7b.trace"?'),
                (["--config", "residual_add.trace", "--trace", "x"], "name of a workload: --trace FILE"),
                (["config", "check", "residual_add.trace"], "trn3sim trace check FILE"),
                (["config", "show", "chips/trn3.json"], 'expected "system", got "chip"'),
                (["trace", "info", "nowhere.trace"], "no such trace file")):
            with self.subTest(arguments):
                self.refused(arguments, *expect)

    def test_hidden_and_foreign_files_are_not_offered(self):
        for name in (".secret.trace", "notes.txt", ".bashrc", "mine.trace"):
            (self.root / name).write_text("x")
        done = subprocess.run([PROGRAM, "trace", "check", "nowhere"], cwd=self.root, capture_output=True, text=True,
                              check=False)
        self.assertIn("mine.trace", done.stderr)
        for name in (".secret", "notes", ".bashrc", ".json"):
            self.assertNotIn(name, done.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_files_without_permission(self):
        file = self.root / "closed.json"
        file.write_text("{}")
        file.chmod(0)
        self.refused(["config", "check", "closed.json"], "closed.json: cannot be opened for reading: Permission denied")

    def test_output(self):
        (self.root / "file").write_text("x")
        (self.root / "folder").mkdir()
        for arguments, *expect in (
                ([*RUN, "--out", "file"], "is a file, expected a directory"),
                ([*RUN, "--out", "file/deeper"], "is a file, expected a directory"),
                ([*RUN, "--out", "/proc/nowhere"], "/proc/nowhere: cannot be made"),
                ([*RUN, "--out", ""], "--out is empty"),
                (["trace", "gen", "residual_add", "-o", "folder"], "folder: is a directory, expected a file"),
                (["trace", "gen", "residual_add", "-o", "no/such/x.trace"], "no/such/x.trace: cannot be written"),
                (["trace", "gen", "residual_add"], "-o FILE is missing")):
            with self.subTest(arguments):
                self.refused(arguments, *expect)
        self.assertEqual((self.root / "file").read_text(), "x")


if __name__ == "__main__":
    unittest.main()
