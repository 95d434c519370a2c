#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the main job with the release build and puts its report between the markers of README.md."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- sample output: begin -->\n", "<!-- sample output: end -->\n"


def main():
    command = [str(ROOT / "build/release/bin/trn3sim"), "--config", "ultraserver64.json", "--trace", "llama7b.trace"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = ROOT / "README.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}```\n{report}```\n{END}{after}")


if __name__ == "__main__":
    main()
