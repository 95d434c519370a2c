#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the published kernels and the HBM reference cases and writes docs/kernels.md.

Usage: kernel_report.py    after a Release build; takes about three minutes.
"""
import concurrent.futures
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from report_page import BIN, ROOT, table  # noqa: E402

os.environ["TRN3SIM"] = str(BIN / "trn3sim")
sys.path.insert(0, str(ROOT / "tests" / "validation"))
import costs  # noqa: E402
import published  # noqa: E402
from published import DMA, HBM, HBM_MIX, KERNELS, one_stream  # noqa: E402

TEXT = """# Kernels and memory against measurements

Written by `scripts/kernel_report.py`; every simulated number was made by the build it ran on. The rows, with their
sources, are in `tests/validation/data`; `tests/validation/test_kernels.py` and `test_hbm.py` hold them to the bars. Of the
chip files' numbers two come from such measurements and are marked derived: the issue interval and completion of a DMA ring
from the floor and the end of the efficiency curve, and the cycles lost after each matmul from 2,048 of them in a row.

## Kernels on one core

`trn3sim kernel`, explicit mappings where the source describes its code. {within} of {all} values lie within their bars (5 % of time
where TensorE binds, else 10 %).
The {times} times of kernels are {mean:.1f} % off on average, the median {median:.1f} %. None of these rows gave the chip files a number, so this is
also the error with the derived numbers' sources left out.

{kernels}
Where values are off:

- *T2-MM4096 V0 and V1, T2-MM2048-TRANSPOSE.* How the compiler spreads single-tile loads over DMA rings is not printed. One
  ring starts a load every 860 ns (the efficiency curve below), two rings twice as many. The measured kernels lie on both
  sides: 1050 ns for each load of V0, 594 ns for each of the 2048 kernel. V0's TensorE is active for longer than here: passes of
  a starved array show their full latency and the current limiter's first half, but not all that was measured.
- *PSUM1, the sunk single buffer, T1-MM-BF16 o0 and o3.* The same question of rings and buffers: the sources name the loops,
  not what the compiler made of them.
- *FP32 v3 and v5.* One ring of 2 KiB rows moves 299 GB/s; 314 were measured.
- *Active times of DMA.* Both are unions over the engines. The model counts a packet from its first byte; where the profiler's
  packets begin is not published, a descriptor's fetch would explain the difference.

## DMA efficiency against row size

One copy after another of 128 partitions on Trainium2, percent of 368 GB/s. It follows from the issue interval of a ring,
the overhead of a descriptor and the completion write; nothing is looked up.

{curve}
Copies over four rings, loads and stores at once:

{copies}
## HBM against Ramulator 2.1

`trn3sim hbm`, derate 1, one channel of HBM3e; see [modelling.md](modelling.md) for the two modes. Difference of the share of peak
bandwidth, mean and worst of the cases.

{hbm}
Of the cases with reads and writes (turns of 128 and of 16 bursts), bursts are {mix_exact:.1f} % off at worst, runs {mix_runs:.1f} %.
The run model, which kernels run on, is {runs_mean:.1f} % from single bursts on average and {runs_worst:.1f} % at worst.

## What the values hold

Each cost of the chip files that kernels or the memory meet, twice as high (rates halved) and with it the cost it is bound to,
on every generation that has it. Of {held} values within their bars, those of the kernels, the DMA curve, the copies and a
half of the HBM cases, the first ones to leave them. `tests/validation/test_costs.py` holds a part of this.

{costs}
{free} of {costs_all} costs are unconstrained: no published value here leaves its bar, since none is of that format or
engine, or since the cost is hidden behind others.
"""


def percent(value):
    return f"{100 * value:+.1f} %"


def kernel_rows():
    for row in KERNELS:
        values = published.kernel(row)
        for name, measured in row["measured"].items():
            error = values[name] / measured - 1
            yield (row["id"], name, f"{measured:,}", f"{values[name]:,.1f}", percent(error),
                   "yes" if abs(error) <= row["allowed"][name] else "**no**")


def curve_rows():
    for point in DMA["curve"]:
        yield point["bytes"], point["percent"], f"{published.curve_percent(point['bytes']):.1f}"


def copy_rows():
    for point in DMA["copies"]:
        rate = published.copies_gbps(point["bytes"])
        yield (point["bytes"], f"{point['gbps_while_active']} GB/s", f"{rate:.0f} GB/s",
               percent(rate / point["gbps_while_active"] - 1))


def share(case, mode):
    return published.hbm(case, mode)["bandwidth_fraction"]


def hbm_rows(cases):
    for depth in (128, 64):
        for refresh in ("none", "all_bank", "per_bank"):
            for stream in (True, False):
                chosen = [c for c in cases if c["queue_depth"] == depth and c["refresh"] == refresh
                          and one_stream(c) == stream]
                cells = []
                for mode in ("exact", "runs"):
                    errors = [abs(c[mode] / c["bandwidth_fraction"] - 1) for c in chosen]
                    cells += [f"{100 * sum(errors) / len(errors):.1f} %", f"{100 * max(errors):.1f} %"]
                yield (depth, refresh, "one stream" if stream else "random, four streams", len(chosen), *cells)


def cost_rows():
    before = costs.within(costs.values())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as jobs:
        found = list(jobs.map(lambda key: costs.moved(key, before), costs.COSTS))
    rows = [(f"`{key.removeprefix('chip.')}`", ", ".join(names) or "unconstrained")
            for key, names in zip(costs.COSTS, found)]
    return len(before), rows


def main():
    kernels = list(kernel_rows())
    for case in HBM["reads"]:
        for mode in ("exact", "runs"):
            case[mode] = share(case, mode)
    off = {mode: max(abs(share(c, mode) / c["bandwidth_fraction"] - 1) for c in HBM_MIX) for mode in ("exact", "runs")}
    deep = [abs(c["runs"] / c["exact"] - 1) for c in HBM["reads"] if c["queue_depth"] == 128]
    held, cost_table = cost_rows()
    times = [abs(float(row[4].split()[0])) for row in kernels if row[1] == "time_us"]
    page = TEXT.format(
        times=len(times), mean=sum(times) / len(times), median=statistics.median(times),
        held=held, costs=table(("cost", "leave their bars"), cost_table), costs_all=len(cost_table),
        free=sum(row[1] == "unconstrained" for row in cost_table),
        within=sum(row[-1] == "yes" for row in kernels), all=len(kernels),
        kernels=table(("row", "quantity", "measured", "simulated", "difference", "within"), kernels),
        curve=table(("bytes per partition", "measured", "simulated"), curve_rows()),
        copies=table(("bytes per partition", "measured", "simulated", "difference"), copy_rows()),
        hbm=table(("queue", "refresh", "pattern", "cases", "bursts, mean", "worst", "runs, mean", "worst"),
                  hbm_rows(HBM["reads"])),
        mix_exact=100 * off["exact"], mix_runs=100 * off["runs"],
        runs_mean=100 * sum(deep) / len(deep), runs_worst=100 * max(deep))
    (ROOT / "docs" / "kernels.md").write_text(page)


if __name__ == "__main__":
    main()
