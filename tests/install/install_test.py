#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts somewhere works there. Usage: install_test.py CMAKE BUILD_DIR."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv.pop(2)
CMAKE = sys.argv.pop(1)


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.scratch.name).resolve() / "prefix"
        cls.elsewhere = pathlib.Path(cls.scratch.name).resolve() / "elsewhere"
        cls.elsewhere.mkdir()
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_program(self, *arguments, program=None):
        environment = {k: v for k, v in os.environ.items() if k != "TRN3SIM_CONFIG_PATH"}
        environment["TRN3SIM_CACHE_DIR"] = str(self.elsewhere / "cache")
        done = subprocess.run([program or self.prefix / "bin/trn3sim", *arguments], cwd=self.elsewhere, text=True,
                              capture_output=True, check=False, timeout=200, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_run_from_another_directory(self):
        report = json.loads(self.run_program("--config", "chip1.json", "--trace", "residual_add.trace", "--format", "json"))
        self.assertTrue(report["checks_passed"])
        self.assertGreater(report["step_time_s"], 0)

    def test_everything_comes_from_the_installed_tree(self):
        link = self.elsewhere / "t3"
        link.symlink_to(self.prefix / "bin/trn3sim")
        for program in (None, link):
            listed = json.loads(self.run_program("config", "list", "--format", "json", program=program))
            for group in ("systems", "chips", "traces"):
                self.assertTrue(listed[group])
                for entry in listed[group]:
                    self.assertTrue(entry["path"].startswith(f"{self.prefix}/share/trn3sim/configs/"), entry)
                    self.assertNotIn("problem", entry)
        shown = self.run_program("config", "show", "ultraserver64.json").splitlines()[0]
        self.assertEqual(shown, f"{self.prefix}/share/trn3sim/configs/ultraserver64.json (64 chips)")

    def test_pages_are_there(self):
        for page in ("README.md", "LICENSE", "docs/user_guide.md", "docs/config_reference.md", "configs/README.md"):
            self.assertTrue((self.prefix / "share/trn3sim" / page).is_file(), page)

    def test_nothing_else_is_installed(self):
        self.assertEqual(sorted(os.listdir(self.prefix)), ["bin", "share"])
        self.assertEqual(os.listdir(self.prefix / "bin"), ["trn3sim"])
        self.assertEqual(os.listdir(self.prefix / "share"), ["trn3sim"])


if __name__ == "__main__":
    unittest.main()
