#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one golden case and compares every leaf of its results.

Usage: run_golden.py PROGRAM CASE_DIR. Exit code 1 if anything differs.
"""
import pathlib
import sys

import golden

SHOWN = 10


def main() -> int:
    program, case = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    expected = golden.load_expected(case)
    if not expected:
        print(f"{case.name}: there is no expected.json; scripts/update_golden.py makes it")
        return 1
    try:
        found = list(golden.differences(expected, golden.run_case(program, case)))
    except golden.GoldenError as error:
        print(error)
        return 1
    for path, old, new in found[:SHOWN]:
        print(f"{case.name}: {path}: expected {golden.text_of(old)}, found {golden.text_of(new)}")
    if len(found) > SHOWN:
        print(f"{case.name}: and {len(found) - SHOWN} more differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
