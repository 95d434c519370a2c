#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: areas of the source tree may include only the areas listed here.

Usage: check_layers.py ROOT. Prints one line per violation and exits 1 if there is any.
"""
import pathlib
import re
import sys

LOWER = {
    "base": set(),
    "config": {"base"},
    "stats": {"base"},
    "topology": {"base", "config"},
    "trace": {"base"},
    "generate": {"base", "trace"},
    "import": {"base", "trace"},
    "models": {"base", "config"},
    "compile": {"base", "config", "topology", "trace", "models"},
    "modules": {"base", "config", "stats", "topology", "models", "compile"},
    "sim": {"base", "config", "stats", "topology", "trace", "models", "compile", "modules"},
    "report": {"base", "config", "stats", "topology", "trace"},
    "study": {"base", "config", "stats", "topology", "trace", "report"},
}
LOWER["app"] = set(LOWER) | {"app"}
SYSTEMC_AREAS = {"modules", "sim"}
SYSTEMC_FILES = {"src/app/main.cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def area_of(path: pathlib.PurePath) -> str:
    parts = path.parts
    return parts[2] if parts[0] == "include" else parts[1]


def violations(root: pathlib.Path):
    for top in ("include", "src"):
        for file in sorted((root / top).rglob("*.[ch]pp")):
            relative = file.relative_to(root)
            area = area_of(relative)
            if area not in LOWER:
                yield f"{relative}: unknown area {area}"
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(1)
                if target in ("systemc", "systemc.h", "tlm"):
                    if area not in SYSTEMC_AREAS and str(relative) not in SYSTEMC_FILES:
                        yield f"{relative}:{number}: {area} must not include SystemC"
                    continue
                if target.startswith("boost/program_options") and area != "app":
                    yield f"{relative}:{number}: Boost.Program_options belongs to app"
                parts = target.removeprefix("trn3sim/").split("/")
                other = parts[0]
                if len(parts) > 1 and other in LOWER and other != area and other not in LOWER[area]:
                    yield f"{relative}:{number}: {area} must not include {other}"


def main() -> int:
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "layers: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
