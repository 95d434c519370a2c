# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""What the published values say about each cost of a chip: one cost twice as high must move some value out of its bar, else
the values do not constrain it."""
import json
import re

import published
from runner import ROOT

CHIPS = {"trn1_chip.json": "trn1", "trn2_chip.json": "trn2", "chip1.json": "trn3"}
# Sections that kernels and copies on one core read.
SECTIONS = ("tensor", "vector", "scalar", "gpsimd", "sbuf", "psum", "sync", "semaphore", "dma", "hbm")
TIMES, RATES = {"ps", "ns", "us"}, {"GB/s", "TB/s", "MB/s", "GHz", "MHz"}
# Costs that the rules of the files bind to another, which goes along.
ALONG = {"chip.hbm.t_ras": "chip.hbm.exact.t_rc", "chip.hbm.t_rrd_s": "chip.hbm.t_rrd_l",
         "chip.dma.bus_rate": "chip.dma.plateau_rate"}
STREAMS, OTHERS = 0.022, 0.06  # bars of the cases of HBM, of one stream and of others


def dearer(key, value):
    """The value that makes a time, a number of cycles or a rate cost twice as much; None if it is neither."""
    match = re.fullmatch(r"([0-9.]+) ?(\S+)", value) if isinstance(value, str) else None
    if match and match[2] in TIMES | RATES and float(match[1]) > 0:
        return f"{float(match[1]) * (2 if match[2] in TIMES else 0.5):.10g} {match[2]}"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        if key.endswith("cycles"):
            return 2 * value
        if "speedup" in key and value > 1:
            return value // 2
        if ".macs_per_pe_cycle." in key or key.endswith("_rate"):
            return value / 2
    return None


def leaves(node, path):
    if not isinstance(node, dict):
        yield path, node
    elif "value" in node:
        yield path, node["value"]
    else:
        for key, value in node.items():
            if key not in ("source", "confidence"):
                yield from leaves(value, f"{path}.{key}")


def costs():
    """{key: {system file: the dearer value}} of all generations, in the order of their files."""
    found = {}
    for system, chip in reversed(CHIPS.items()):
        document = json.loads((ROOT / "configs" / "chips" / f"{chip}.json").read_text())
        for section in SECTIONS:
            for key, value in leaves(document.get(section, {}), f"chip.{section}"):
                if (twice := dearer(key, value)) is not None:
                    found.setdefault(key, {})[system] = twice
    return found


COSTS = costs()


def values(key=None):
    """Yields (what, value, reference, bar) of all published values; with `key`, of those of the systems that have it, twice
    as dear."""
    dear = COSTS.get(key, {})

    def sets(system):
        pairs = [(k, COSTS[k][system]) for k in (ALONG.get(key), key) if k and system in COSTS[k]]
        return [word for k, value in pairs for word in ("--set", f"{k}={value}")]

    def touched(system):
        return key is None or system in dear

    for row in published.KERNELS:
        system = row["arguments"][row["arguments"].index("--config") + 1]
        if not touched(system):
            continue
        result = published.kernel(row, *sets(system))
        for name, measured in row["measured"].items():
            yield f"{row['id']} {name}", result[name], measured, row["allowed"][name]
    if touched("trn2_chip.json"):
        for point in published.DMA["curve"]:
            percent = published.curve_percent(point["bytes"], *sets("trn2_chip.json"))
            yield f"DMA curve, {point['bytes']} B", percent, point["percent"], 3 / point["percent"]
        for point in published.DMA["copies"]:
            rate = published.copies_gbps(point["bytes"], *sets("trn2_chip.json"))
            yield f"copies of {point['bytes']} B", rate, point["gbps_while_active"], 0.1
    if key is None or key.startswith("chip.hbm.") and key not in ("chip.hbm.bandwidth", "chip.hbm.derate"):
        for number, case in enumerate(published.HBM["reads"] + published.HBM_MIX):
            if case.get("queue_depth", 128) == 128 and number % 4 in (0, 3):
                share = published.hbm(case, "exact", *sets("chip1.json"))["bandwidth_fraction"]
                alone = published.one_stream(case) and "turn" not in case
                what = f"streams {case['streams']}" if case["pattern"] == "stream" else f"random {case['block']} B"
                mix = f" reads {case['reads']} turn {case['turn']}" if "turn" in case else ""
                name = f"HBM {what}{mix} {case['mapping']} refresh {case['refresh']}"
                yield name, share, case["bandwidth_fraction"], STREAMS if alone else OTHERS


def within(values_of):
    """Names of those within their bars."""
    return {name for name, value, reference, bar in values_of if abs(value / reference - 1) <= bar}


def moved(key, before, most=3):
    """Up to `most` of the published values in `before` that leave their bars if `key` costs twice as much."""
    found = []
    for name, value, reference, bar in values(key):
        if name in before and abs(value / reference - 1) > bar:
            found.append(name)
            if len(found) == most:
                break
    return found
