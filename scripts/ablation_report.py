#!/usr/bin/env python3
# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Measures what each compiler switch does to the main job and writes docs/ablation.md.

  cmake --build --preset release && scripts/ablation_report.py

Takes about two minutes.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from report_page import ROOT, Run, table  # noqa: E402

MAIN = ("ultraserver64.json", "llama7b.trace")
TRN1, TRN2 = "trn1_chip.json", "trn2_chip.json"
LADDER = ["flash_attention", "fusion", "memory_reuse", "fast_exponential", "prefetch", "merge_gathers",
          "overlap_collectives"]
OFF = ["flash_attention", "fusion", "memory_reuse", "fast_exponential", "double_accumulators", "streaming_loads",
       "prefetch"]

TEXT = """# Compiler levels, switch by switch

Written by `scripts/ablation_report.py`; every number was measured by the build it ran on. The job is
`trn3sim --config ultraserver64.json --trace llama7b.trace` (Llama-2 7B, sequence 4096, 64 chips). MFU counts full
attention on the geometry peak (2.4 GHz), as the report does; "causal" counts half of it; "headline" is on the vendor's peak.
What each switch does is in [modelling.md](modelling.md#compiler-levels). No switch is a factor.

## Levels

{levels}
Published for dense BF16 training on Trainium3, on the headline peak: 43 % with the stock compiler, about 60 % with hand
kernels (SemiAnalysis, Trainium3 deep dive, 2025; no model or layout is given). 39 % was published for Trainium1.
`stock` runs the graph op by op. `tuned` and `ideal` lie above the published figures: power never throttles the clock, no
host or runtime gap is modelled, every kernel has the predicted best mapping, and its engines overlap without a gap.

## From stock to ideal, one switch after another

{ladder}
Spilled bytes are intermediates that a larger SBUF would hold: scores and probabilities of attention, and results of the
passes of vector functions. A gain is the step before over the step after.

## Each switch off, from tuned

{off}
## Each switch on, from stock

{on}
`fast_exponential` is an instruction of the flash kernel, so it changes nothing while attention goes through HBM.
`double_accumulators` and `streaming_loads` are on in every level: the compiled 2048-cubed matmul of the ladder below
reaches 86.3 %, which neither single accumulators (59 %) nor loads ahead of all work (83.7 %) can.

## Fusion and memory reuse against the published claim

A published claim says that fusion and memory reuse gain 15 to 20 %.

{fusion}
The claim names no workload. With flash attention what is left to fuse are norms, activations and residual additions; with
attention through HBM also scale, mask and softmax of the scores. The claim lies {verdict}.

## What `exponential` gains in attention

Trainium3's VectorE instruction `exponential` subtracts the maximum, exponentiates four 16-bit (two 32-bit) elements per lane
and cycle and sums the row. The kernel then takes the row maximum on ScalarE (two-stage activation) while it copies the
scores out of PSUM. Without it ScalarE exponentiates and VectorE takes the maximum, at one element per cycle each.
Kernels alone, one core, one head of 128, causal:

{exponential}
Of the whole step, forward attention without it is {share:.1f} %, so the step gains {step:.2f} %. The backward kernel keeps
TensorE busiest (five products per tile) and has its exponentials on ScalarE either way.

## What flash attention gains, by sequence length

Forward and backward kernel alone, one core, one head of 128, causal. Op by op: with the switches of `stock`; fused: those of
`tuned`, but scores through HBM.

{flash}
## Kernels against measurements

AWS Labs' notes on nki-autotune measured kernels on one Trainium2 core. Here: `trn2_chip.json`.

{kernels}
The ladder's first step, loads inside the contraction loop with one buffer (16 %), is a loop order that the mapping never
chooses. Single accumulators stall less here than measured: this kernel's evictions take two engines. Attention was
measured without saying whether masked tiles are skipped: skipped, the model is {causal:.1f} times as fast as the kernel
measured at 16384, else {full:.1f} times.

Times of kernels that were published with their bytes: AWS' worked profile analyses (Trainium2) and NKIBench (Trainium1, fp32,
the faster of two versions), here on `trn2_chip.json` and `trn1_chip.json`:

{times}
## What merging all-gathers gains

The all-gathers of weights of this step are buckets, one in each turn of a loop, so `merge_gathers` finds no neighbours. 24
all-gathers that follow each other, over 64 logical cores of `instance16.json`, each of a tensor of the size given:

{gathers}
## What is not a switch

- *Other loop orders and worse block sizes.* The mapping is always the predicted best one.
"""


def mfu(run):
    return run.summary["mfu_estimated_percent"]


def step(run):
    return run.results["step_fs"] * 1e-15


def row(title, run, before=None, after=None):
    gain = "" if before is None else f"{100 * (step(before) / step(after) - 1):.2f} %"
    spilled = (run.results["spill_save_bytes"] + run.results["spill_reload_bytes"]) / 1e12
    hbm = (run.results["hbm_read_bytes"] + run.results["hbm_write_bytes"]) / 1e12
    return title, f"{step(run):.3f} s", f"{mfu(run):.1f} %", gain, f"{spilled:.1f} TB", f"{hbm:.0f} TB"


HEAD = ("switches", "step", "MFU", "gain", "spilled", "HBM bytes")


class Jobs:
    def __init__(self, cache):
        self.cache = cache

    def main(self, *switches):
        return Run(*MAIN, *[f"compile.{s}" for s in switches], cache=self.cache)

    def kernels(self, ops, *sets, config="chip1.json"):
        """Times alone of the kernels of `ops` on one core, seconds, by op."""
        return [self.alone(config, op, *sets).results["kernels"][0]["alone_fs"] * 1e-15 for op in ops]

    def gathers(self, size, *sets):
        """Time of 24 neighbouring all-gathers of tensors of `size` bytes over 64 logical cores, seconds."""
        head = {"trace": "trn3sim", "v": 1, "name": "gathers", "rank_unit": "logical_core", "mesh": [["dp", 64]],
                "defaults": {"dtype": "bf16"}}
        ops = [{"op": "coll", "id": f"g{i}", "kind": "all_gather", "group": "dp", "in": size // 64, "out": size,
                "deps": ["^"]} for i in range(24)]
        return step(self.run("instance16.json", [head, *ops], *sets))

    def step(self, config, op):
        """Time of one op on one core, which may run in pieces, seconds."""
        return self.alone(config, op).results["step_fs"] * 1e-15

    def alone(self, config, op, *sets):
        head = {"trace": "trn3sim", "v": 1, "name": "kernels", "rank_unit": "core", "mesh": [["dp", 1]],
                "defaults": {"dtype": "bf16"}}
        return self.run(config, [head, {"id": "k", "deps": ["^"], **op}], *sets)

    def run(self, config, lines, *sets):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.trace"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return Run(config, str(path), *sets, cache=self.cache)


def attention(sequence, causal=True, backward=False):
    return {"op": "attn", "b": 1, "heads": 1, "kv_heads": 1, "sq": sequence, "skv": sequence, "d": 128,
            "causal": causal, "pass": "bwd" if backward else "fwd"}


def level_rows(runs):
    for name, run in runs.items():
        s = run.summary
        yield (f"`{name}`", f"{step(run):.3f} s", f"{mfu(run):.1f} %", f"{s['mfu_causal_percent']:.1f} %",
               f"{s['mfu_headline_percent']:.1f} %", f"{s['breakdown_percent']['exposed_memory']:.1f} %",
               f"{s['breakdown_percent']['exposed_communication']:.1f} %")


def ladder_rows(jobs, stock):
    yield row("`stock`", stock)
    on, before = ["level=stock"], stock
    for switch in LADDER:
        on.append(f"{switch}=true")
        run = jobs.main(*on)
        yield row(f"+ `{switch}`", run, before, run)
        before = run


def fusion_rows(jobs, tuned):
    cases = [("tuned", []), ("attention through HBM", ["flash_attention=false"])]
    for title, other in cases:
        both = jobs.main(*other) if other else tuned
        none = jobs.main(*other, "fusion=false", "memory_reuse=false")
        yield title, step(none), step(both), 100 * (step(none) / step(both) - 1)


def exponential_rows(jobs):
    for sequence in (1024, 2048, 4096, 8192, 16384):
        fast, = jobs.kernels([attention(sequence)])
        slow, = jobs.kernels([attention(sequence)], "compile.fast_exponential=false")
        yield (sequence, f"{slow * 1e6:.1f} us", f"{fast * 1e6:.1f} us", f"{100 * (slow / fast - 1):.1f} %")


def gather_rows(jobs):
    for kib in (16, 128, 1024):
        slow = jobs.gathers(kib << 10, "compile.merge_gathers=false")
        fast = jobs.gathers(kib << 10)
        yield (f"{kib} KiB", f"{slow * 1e6:.1f} us", f"{fast * 1e6:.1f} us", f"{100 * (slow / fast - 1):.0f} %")


def flash_rows(jobs):
    for sequence in (512, 1024, 2048, 4096, 8192):
        ops = [attention(sequence), attention(sequence, backward=True)]
        stock = sum(jobs.kernels(ops, "compile.level=stock"))
        fused = sum(jobs.kernels(ops, "compile.flash_attention=false"))
        flash = sum(jobs.kernels(ops))
        yield (sequence, f"{stock * 1e6:.0f} us", f"{fused * 1e6:.0f} us", f"{flash * 1e6:.0f} us",
               f"{stock / flash:.1f} x", f"{fused / flash:.1f} x")


def measured_rows(jobs):
    square = {"op": "gemm", "m": 2048, "n": 2048, "k": 2048, "a": "act", "b": "act"}
    ideal = 2048**3 / (128 * 128 * 2.4e9)
    for title, measured, sets in [
            ("matmul 2048 cubed, best", "90.9 %", []),
            ("the same, streaming double-buffered loads", "89.5 %", []),
            ("the same, loads ahead of all work", "83.7 %", ["compile.streaming_loads=false"]),
            ("the same, single accumulators too", "59 %",
             ["compile.streaming_loads=false", "compile.double_accumulators=false"])]:
        time, = jobs.kernels([square], *sets, config=TRN2)
        yield title, measured, f"{100 * ideal / time:.1f} %"
    time, = jobs.kernels([{**square, "b": "weight"}], config=TRN2)
    yield "the same, left operand to be transposed", "84 %", f"{100 * ideal / time:.1f} %"
    for sequence, measured in ((2048, "30 %"), (16384, "46 %")):
        flop = 4 * sequence * sequence * 128
        for causal in (True, False):
            time, = jobs.kernels([attention(sequence, causal)], config=TRN2)
            yield (f"attention {sequence}, {'masked tiles skipped' if causal else 'all tiles'}", measured,
                   f"{100 * flop / (2 * 128 * 128 * 2.4e9) / time:.1f} %")


def time_rows(jobs):
    square = {"op": "gemm", "m": 4096, "n": 4096, "k": 4096, "a": "act", "b": "act"}
    silu = {"op": "vec", "fn": "gelu", "elems": 4096 * 7168, "dtype": "fp32"}  # one activation, like silu
    adamw = {"op": "vec", "fn": "adamw", "elems": 10944 * 2048, "rd": 358612992, "wr": 89653248, "dtype": "fp32"}
    for title, measured, op, config in [("matmul 4096 cubed, bf16, rows of 2 KiB, Trainium2", 1801, square, TRN2),
                                      ("silu 4096 x 7168, Trainium1", 798, silu, TRN1),
                                      ("adamw 10944 x 2048, Trainium1", 1888, adamw, TRN1)]:
        time = jobs.step(config, op)
        yield title, f"{measured} us", f"{time * 1e6:.0f} us", f"{100 * (time * 1e6 / measured - 1):+.1f} %"


def main():
    with tempfile.TemporaryDirectory() as cache:
        jobs = Jobs(cache)
        levels = {name: jobs.main(f"level={name}") for name in ("stock", "tuned", "ideal")}
        stock, tuned = levels["stock"], levels["tuned"]
        off = []
        for switch in OFF:
            run = jobs.main(f"{switch}=false")
            off.append(row(f"no `{switch}`", run, run, tuned))
            if switch == "fast_exponential":
                slow = run
        on = []
        for switch in LADDER:
            run = jobs.main("level=stock", f"{switch}=true")
            on.append(row(f"`{switch}`", run, stock, run))
        fusion = list(fusion_rows(jobs, tuned))
        kernels = list(measured_rows(jobs))
        forward = next(k for k in slow.results["kernels"] if k["label"].startswith("flash_attention fwd"))
        gains = [gain for _, _, _, gain in fusion]
        verdict = "between the two" if gains[0] < 15 and gains[1] > 20 else "elsewhere"
        page = TEXT.format(
            levels=table(("level", "step", "MFU", "causal", "headline", "exposed memory", "exposed communication"),
                         level_rows(levels)),
            ladder=table(HEAD, ladder_rows(jobs, stock)),
            off=table((*HEAD[:3], "gain of the switch", *HEAD[4:]), off),
            on=table(HEAD, on),
            fusion=table(("level otherwise", "without both", "with both", "gain"),
                         [(t, f"{a:.3f} s", f"{b:.3f} s", f"{g:.1f} %") for t, a, b, g in fusion]),
            verdict=verdict,
            exponential=table(("sequence", "without", "with", "gain"), exponential_rows(jobs)),
            flash=table(("sequence", "op by op", "fused", "flash", "gain on op by op", "gain on fused"), flash_rows(jobs)),
            share=100 * forward["total_fs"] / (slow.results["ranks"] * slow.results["step_fs"]),
            step=100 * (step(slow) / step(tuned) - 1),
            times=table(("kernel", "measured", "simulated", "difference"), time_rows(jobs)),
            kernels=table(("kernel", "measured", "simulated"), kernels),
            causal=float(kernels[-2][2].split()[0]) / 46, full=float(kernels[-1][2].split()[0]) / 46,
            gathers=table(("tensor", "one by one", "merged", "gain"), gather_rows(jobs)))
    (ROOT / "docs" / "ablation.md").write_text(page)


if __name__ == "__main__":
    main()
