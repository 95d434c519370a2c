#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of assumed numbers of configs/ into docs/modelling.md, between its markers.

  scripts/assumed_table.py          rewrite the table
  scripts/assumed_table.py --check  exit code 1 if it is out of date
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modelling.md"
BEGIN, END = "<!-- assumed numbers: begin -->\n", "<!-- assumed numbers: end -->\n"


def leaves(node, path, source, confidence):
    """Yields (path, value, source, confidence); source and confidence are inherited."""
    if not isinstance(node, dict):
        yield path, node, source, confidence
        return
    source, confidence = node.get("source", source), node.get("confidence", confidence)
    if "value" in node:
        yield path, node["value"], source, confidence
        return
    for key, value in node.items():
        if key not in ("source", "confidence"):
            yield from leaves(value, f"{path}.{key}", source, confidence)


def rows():
    files = [("chip", ROOT / "configs/chips/trn3.json", None),
             ("fabric", ROOT / "configs/ultraserver64.json", "fabric")]
    for name, path, key in files:
        document = json.loads(path.read_text())
        node = document[key] if key else document
        for where, value, source, confidence in leaves(node, name, "", ""):
            if confidence == "assumed":
                yield f"| `{where}` | {value} | {source} |\n"


def main():
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    table = "| number | value | reason |\n|---|---|---|\n" + "".join(rows())
    new = before + BEGIN + table + END + after
    if "--check" in sys.argv[1:]:
        if new != text:
            sys.exit("docs/modelling.md: the table of assumed numbers is out of date; run scripts/assumed_table.py")
    else:
        PAGE.write_text(new)


if __name__ == "__main__":
    main()
