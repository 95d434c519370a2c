#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Reruns golden cases, shows old -> new and stores the new results.

Usage: update_golden.py --reason "why the new numbers are right" [case ...]

Stores nothing at all if a case fails or simulated nothing. The reason belongs into the commit.
"""
import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import golden  # noqa: E402  (its folder is known only now)

SHOWN = 20


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reason", required=True, help="why the new numbers are right")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/trn3sim")
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "tests/golden")
    parser.add_argument("case", nargs="*", help="names; all if none is given")
    chosen = parser.parse_args()
    if not chosen.reason.strip():
        parser.error("--reason is empty")
    return chosen


def show(name: str, old: dict, new: dict) -> bool:
    """Prints what changes; True if anything does."""
    if not old:
        print(f"{name}: new, step_fs {new['step_fs']}")
        return True
    found = list(golden.differences(old, new))
    for path, before, after in found[:SHOWN]:
        print(f"{name}: {path}: {golden.text_of(before)} -> {golden.text_of(after)}")
    if len(found) > SHOWN:
        print(f"{name}: and {len(found) - SHOWN} more")
    if not found:
        print(f"{name}: unchanged")
    return bool(found)


def main() -> int:
    chosen = options()
    program = chosen.program.resolve()
    names = chosen.case or sorted(run.parent.name for run in chosen.cases.glob("*/run.json"))
    if not names:
        print(f"no case in {chosen.cases}")
        return 1
    changed = []
    try:
        for name in names:
            case = chosen.cases / name
            results = golden.run_case(program, case)
            if show(name, golden.load_expected(case), results):
                changed.append((case, results))
    except (golden.GoldenError, OSError, ValueError) as error:
        print(error)
        print("nothing was stored")
        return 1
    for case, results in changed:
        temporary = case / "expected.json.tmp"
        temporary.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        os.replace(temporary, case / "expected.json")
    print(f"stored {len(changed)} of {len(names)} cases; for the commit: {chosen.reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
