#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the speed of the release build and writes docs/performance.md.

  cmake --build --preset release && scripts/performance_report.py [--runs 3]

User CPU time is reported: it depends less on what else the machine does than wall time. Of several runs
the fastest counts.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from report_page import BIN, ROOT, Run, machine, table  # noqa: E402

MAIN = ("ultraserver64.json", "llama7b.trace")
JOBS = [("Llama-2 7B step, 64 chips (the main job)", MAIN, False),
        ("again, with the profiles of an earlier run", MAIN, True),
        ("every iteration of every loop (`--no-fast-forward`)", (*MAIN, "run.fast_forward=false"), False),
        ("the same work per chip, 16 chips", ("instance16.json", "llama7b_instance16.trace"), False),
        ("the same work per chip, 1 chip", ("chip1.json", "llama7b_chip1.trace"), False),
        ("residual additions, 1 chip", ("chip1.json", "residual_add.trace"), False),
        ("AdamW alone, 1 chip", ("chip1.json", "optimizer_only.trace"), False)]

TEXT = """# Performance

Written by `scripts/performance_report.py` on {machine}.
User CPU time, {runs}, with an empty cache unless said otherwise; one run uses one core.

## Whole runs

{jobs}
Profiling and simulation are the shares of the run's wall time times its CPU time. Memory is the largest resident set.
The command is `trn3sim --config CONFIG --trace TRACE --out DIR`; `DIR/run_info.json` has the same counts.

## Rates of the main job

Every iteration simulated (`--no-fast-forward`).

{rates}
A rank-operation is one op of one rank: a kernel, a collective, a message. Events are wake-ups of links and HBM
shares. Instructions are those of the detailed bench, all points of all profiles.

## HBM model

{hbm}
`build/release/bin/bench_hbm`, one stack; a block is 256 B, a burst 32 B. The share of the peak is the simulated bandwidth.

## What sets the speed

- Kernels are simulated in full detail once, not at each of their executions; the machine replays profiles.
- Engines run ahead of the kernel's time by time-stamped semaphores: no event per instruction.
- HBM is booked per run of columns, DMA per packet; no clock ticks.
- Loops of the trace stay loops, so memory does not grow with the length of the step, and iterations that repeat exactly
  are slept through.
- Profiles are kept between runs and shared by all runs of the same chip and model.

Comparisons with other simulators are left out: a fair one needs equal work at equal detail.
"""


def fastest(arguments, warm, runs):
    with tempfile.TemporaryDirectory() as cache:
        if warm:
            Run(*arguments, cache=cache)
        return min((Run(*arguments, cache=cache if warm else None) for _ in range(runs)), key=lambda r: r.user_s)


def job_rows(jobs):
    for (title, (config, trace, *_), _), run in jobs:
        profile = run.user_s * run.info["profile_wall_s"] / run.info["wall_s"]
        yield (title, f"{config} x {trace}", f"{run.user_s:.2f} s", f"{profile:.2f} s",
               f"{run.user_s - profile:.2f} s", f"{run.peak_bytes / 1e6:.0f} MB")


def rate_rows(run):
    info = run.info
    profile = run.user_s * info["profile_wall_s"] / info["wall_s"]
    simulate = run.user_s - profile
    step = run.results["step_fs"] * 1e-15
    yield "simulated time of the step", f"{step:.2f} s"
    yield "rank-operations", f"{info['rank_ops']:,}"
    yield "rank-operations per second of simulation", f"{info['rank_ops'] / simulate / 1e6:.2f} million"
    yield "events", f"{info['kernel_events']:,}"
    yield "events per second of simulation", f"{info['kernel_events'] / simulate / 1e6:.2f} million"
    yield "distinct kernels profiled", info["profiled_kernels"]
    yield "bench instructions", f"{info['bench_instructions']:,}"
    yield "bench instructions per second of profiling", f"{info['bench_instructions'] / profile / 1e6:.2f} million"


def hbm_rows():
    done = subprocess.run([str(BIN / "bench_hbm"), "--benchmark_format=json"], capture_output=True, text=True,
                          check=True)
    for b in json.loads(done.stdout)["benchmarks"]:
        name, size, *window = b["name"].split("/")
        if window:
            what = f"{name.replace('_', ' ')}, {size} B, {window[0]} in flight"
        else:
            what = f"single bursts, {'one stream' if size == '0' else f'random {size} B'}"
        yield (what, f"{b['items_per_second'] / 1e6:.1f} million", f"{100 * b['share_of_peak']:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    jobs = [(job, fastest(job[1], job[2], arguments.runs)) for job in JOBS]
    page = TEXT.format(
        machine=machine(), runs="one run each" if arguments.runs == 1 else f"the least of {arguments.runs} runs",
        jobs=table(("job", "files", "CPU time", "profiling", "simulation", "memory"), job_rows(jobs)),
        rates=table(("quantity", "value"), rate_rows(jobs[2][1])),
        hbm=table(("accesses", "blocks or bursts per second", "share of the peak"), hbm_rows()))
    (ROOT / "docs" / "performance.md").write_text(page)


if __name__ == "__main__":
    main()
