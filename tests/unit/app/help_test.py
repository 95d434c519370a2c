#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""The help texts: short enough for a screen, and every example in them runs as printed.

Usage: help_test.py PROGRAM [main|commands]: the examples of the main page, or of the others.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PART = sys.argv.pop(2)
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
PAGES = {"main": [[]], "commands": [["trace"], ["trace", "gen"], ["trace", "gen", "llama"], ["config"],
                                     ["kernel"], ["kernel", "gemm"], ["kernel", "attention"], ["kernel", "vec"]]}[PART]
SAME = [["trace", "info"], ["trace", "check"], ["config", "list"], ["config", "show"], ["config", "check"],
        ["config", "schema"], ["trace", "gen", "residual_add"]]


def page(command):
    return subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True).stdout


def examples(text):
    """The command lines below "Examples", continued lines joined."""
    lines = text.split("Examples\n", 1)[1].replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("    trn3sim ")]


class HelpTest(unittest.TestCase):
    def test_examples_run_as_printed(self):
        for command in PAGES:
            found = examples(page(command))
            self.assertGreater(len(found), 1, command)
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
                for line in found:
                    with self.subTest(line):
                        done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False,
                                              env=environment)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        self.assertNotEqual(bool(done.stdout), " -o " in line or " > " in line)

    def test_pages_fit_a_screen(self):
        for command in PAGES:
            lines = page(command).splitlines()
            self.assertTrue(lines[0].startswith("trn3sim"), command)
            self.assertLessEqual(len(lines), 64, command)
            self.assertLessEqual(max(map(len, lines)), 100, command)

    def test_every_command_has_a_page(self):
        for command in PAGES + SAME:
            text = page(command)
            self.assertIn("Examples", text)
            helped = subprocess.run([PROGRAM, "help", *command], capture_output=True, text=True, check=True).stdout
            self.assertEqual(helped, text, command)
            if command:
                self.assertIn("trn3sim " + " ".join(command), text)


if __name__ == "__main__":
    unittest.main()
