# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Random machines and loops of collectives, kernels and delays: every run's own checks pass, and neither sleeping
through loops nor the order of construction changes a byte. A failure names its seed."""
import json
import pathlib
import random
import tempfile
import unittest

import runner

CASES = 120
RANKS = {"chip": 1, "logical_core": 4, "core": 8}  # of a chip


def fabric(rng):
    """(fabric, chips)"""
    link = {"bandwidth": f"{rng.choice([5, 50, 100, 512])} GB/s", "latency": f"{rng.choice([100, 500, 3000])} ns"}
    kind = rng.choice(["none", "ring", "torus", "switch", "fully_connected", "graph"])
    if kind == "none":
        return {"type": kind}, 1
    if kind == "torus":
        dims = rng.choice([[3, 3], [4, 4], [2, 4], [3, 4], [5, 3]])
        return {"type": kind, "dims": dims, "link": link}, dims[0] * dims[1]
    if kind == "graph":  # a ring of unlike links, or a line
        chips = rng.choice([4, 5])
        links = [{"from": f"chip{i}", "to": f"chip{(i + 1) % chips}", **link,
                  "bandwidth": f"{rng.choice([10, 100, 300])} GB/s"} for i in range(chips - rng.choice([0, 1]))]
        return {"type": kind, "chips": chips, "links": links}, chips
    chips = rng.choice([3, 4, 6])
    extra = {"switch_latency": "200 ns"} if kind == "switch" else {}
    return {"type": kind, "chips": chips, "link": link, **extra}, chips


def collective(rng, number, groups):
    group, ranks = rng.choice(groups)
    kind = rng.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier"])
    part = max(1, rng.choice([4, 100, 4096, 65536, 500000, 1 << 20, 1 << 23]) // ranks)
    whole = part * ranks
    sizes = {"all_gather": (part, whole), "reduce_scatter": (whole, part), "barrier": (0, 0)}.get(kind, (whole, whole))
    return {"op": "coll", "id": f"c{number}", "kind": kind, "group": group, "in": sizes[0], "out": sizes[1]}


def workload(rng, unit, chips):
    """Lines of a trace: a loop, and perhaps ops after it that do not wait for it."""
    ranks = chips * RANKS[unit]
    a = rng.choice([d for d in range(1, ranks + 1) if ranks % d == 0])
    groups = [("a", a), ("b", ranks // a)]
    lines = [{"trace": "trn3sim", "v": 1, "name": "t", "rank_unit": unit, "mesh": [list(g) for g in groups],
              "defaults": {"dtype": "bf16"}, "tokens_per_step": 1, "memory": []}, {"op": "block", "id": "x"}]
    ids = ["^"]

    def add(op):
        lines.append({**op, "deps": [rng.choice(ids)]})
        ids.append(op["id"])

    for number in range(rng.choice([1, 2, 4])):
        add(collective(rng, number, groups))
    for number in range(rng.choice([0, 1, 3])):
        add({**rng.choice([{"op": "vec", "fn": "add", "elems": 65536}, {"op": "vec", "fn": "rmsnorm", "elems": 1 << 20},
                           {"op": "gemm", "m": 512, "n": 512, "k": 512}]), "id": f"k{number}"})
    add({"op": "delay", "id": "d", "ns": rng.choice([100, 5000])})
    lines += [{"op": "end"}, {"op": "repeat", "id": "r", "block": "x", "times": rng.choice([3, 12]), "deps": ["^"]}]
    return lines + [collective(rng, 10 + n, groups) for n in range(rng.choice([0, 2]))]


class RandomTest(unittest.TestCase):
    def test_random_machines_and_workloads(self):
        with tempfile.TemporaryDirectory() as folder:
            config, trace = pathlib.Path(folder) / "s.json", pathlib.Path(folder) / "t.trace"
            for seed in range(CASES):
                rng = random.Random(seed)
                links, chips = fabric(rng)
                config.write_text(json.dumps({"kind": "system", "name": "s", "chip": "chips/trn3.json", "fabric": links}))
                lines = workload(rng, rng.choice(list(RANKS)), chips)
                trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
                sets = [f"collectives.algorithm={rng.choice(['auto', 'auto', 'mesh', 'ring'])}",
                        f"collectives.rings={rng.choice([1, 2, 4, 4])}"]
                with self.subTest(seed=seed, fabric=links["type"], sets=sets):
                    text, results = runner.results(config, trace, *sets, cached=True)
                    self.assertEqual([c for c in results["checks"] if not c["passed"]], [])
                    full, _ = runner.results(config, trace, *sets, flags=["--no-fast-forward"], cached=True)
                    self.assertEqual(text, full)
                    shuffled, _ = runner.results(config, trace, *sets, "run.shuffle=7", cached=True)
                    self.assertEqual(text, shuffled)


if __name__ == "__main__":
    unittest.main()
