#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of assumed numbers of configs/ into docs/modelling.md, between their markers: those of one
system with their reasons, and the timing constants of every generation.

  scripts/assumed_table.py          rewrite the table
  scripts/assumed_table.py --check  exit code 1 if it is out of date
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modelling.md"
BEGIN, END = "<!-- {}: begin -->\n", "<!-- {}: end -->\n"
GENERATIONS = ("trn1", "trn2", "trn3")


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


def numbers_table():
    return "| number | value | reason |\n|---|---|---|\n" + "".join(rows())


def timing_table():
    """Assumed numbers of the chips but energies and powers, and how many there are."""
    chips = []
    for name in GENERATIONS:
        document = json.loads((ROOT / f"configs/chips/{name}.json").read_text())
        chips.append({where: value for where, value, _, confidence in leaves(document, "chip", "", "")
                      if confidence == "assumed" and not where.startswith("chip.energy.")})
    names = list(dict.fromkeys(where for chip in reversed(chips) for where in chip))
    lines = ["| number | Trainium1 | Trainium2 | Trainium3 |", "|---|---|---|---|"]
    lines += [f"| `{n}` | " + " | ".join(str(chip.get(n, "\u2013")) for chip in chips) + " |" for n in names]
    lines.append("| how many | " + " | ".join(str(len(chip)) for chip in chips) + " |")
    return "\n".join(lines) + "\n"


def replaced(text, name, table):
    before, rest = text.split(BEGIN.format(name))
    _, after = rest.split(END.format(name))
    return before + BEGIN.format(name) + table + END.format(name) + after


def main():
    text = PAGE.read_text()
    new = replaced(text, "assumed numbers", numbers_table())
    new = replaced(new, "assumed timing", timing_table())
    if "--check" in sys.argv[1:]:
        if new != text:
            sys.exit("docs/modelling.md: a table of assumed numbers is out of date; run scripts/assumed_table.py")
    else:
        PAGE.write_text(new)


if __name__ == "__main__":
    main()
