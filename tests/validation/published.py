# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Runs what data/ describes: published kernels and copies on `trn3sim kernel`, cases of another simulator on `trn3sim hbm`."""
import json
import pathlib

from runner import run

DATA = pathlib.Path(__file__).resolve().parent / "data"
KERNELS = json.loads((DATA / "kernels.json").read_text())
DMA = json.loads((DATA / "dma_curve.json").read_text())
HBM = json.loads((DATA / "hbm_reference.json").read_text())
# The cases with reads and writes give the rest of their set-up once, in the file's notes.
HBM_MIX = [dict(case, refresh="none", mapping="PGccKcccS", pattern="stream", streams=1) for case in HBM["mix"]]
PARTITIONS = 128


def simulate(*arguments):
    return json.loads(run(*arguments, "--format", "json").stdout)


def kernel(row, *more):
    """All that `trn3sim kernel` says of a row of KERNELS, and its bytes of HBM."""
    mapping = ["--mapping", DATA / "mappings" / row["mapping"]] if row["mapping"] else []
    values = simulate("kernel", *row["arguments"], *mapping, *more)
    values["hbm_bytes"] = values["hbm_read_bytes"] + values["hbm_write_bytes"]
    return values


def copy(*arguments):
    return simulate("kernel", "copy", "--config", DMA["config"], *arguments)


def curve_percent(size, *more):
    """Of the plateau: one copy of `size` bytes in each partition after another."""
    count = 256
    rate = PARTITIONS * size * count / copy("--bytes", size, "--count", count, *more)["time_us"] / 1e3
    return 100 * rate / DMA["plateau_gbps"]


def copies_gbps(size, *more):
    """Loads and stores over four rings, while the DMA engines are active."""
    count = 16
    values = copy("--bytes", size, "--count", count, "--queues", 4, "--direction", "both", *more)
    return 2 * PARTITIONS * size * count / values["dma_active_us"] / 1e3


def hbm(case, mode, *more):
    """What a case of HBM or HBM_MIX gives, in `mode`; `more` options win."""
    arguments = ["hbm", "--config", "chip1.json", "--mode", mode, "--bursts", 100000, "--set", "chip.hbm.derate=1", *more]
    for option in ("refresh", "pattern", "block", "mapping", "reads", "turn"):
        if option in case:
            arguments += ["--" + option, case[option]]
    if case.get("pattern") == "stream":
        arguments += ["--streams", case["streams"]]
    return simulate(*arguments, "--queue-depth", case.get("queue_depth", 128))


def one_stream(case):
    return case["pattern"] == "stream" and case["streams"] == 1
