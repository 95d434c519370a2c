# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs on fabrics of every type: the same machine written in two ways is the same machine, and
faster or more links never slow a step down."""
import json
import pathlib
import tempfile
import unittest

import runner

CHIPS = 8
RING = "collectives.algorithm=ring"
LINK = {"bandwidth": "20 GB/s", "latency": "500 ns"}


def joined(a, b):
    return {"from": a, "to": b, **LINK}


class FabricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # 8 chips of 4 ranks each; the gradients of a rank go over the fabric.
        cls.trace = runner.generate(cls.folder.name, "t.trace", layers=1, dp=CHIPS, seq=512, gbs=2 * CHIPS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def system(self, fabric):
        file = pathlib.Path(self.folder.name) / "system.json"
        file.write_text(json.dumps({"kind": "system", "name": "t", "chip": "chips/trn3.json", "fabric": fabric}))
        return file

    def step(self, fabric, *sets):
        summary = runner.summary(self.system(fabric), self.trace, *sets)
        self.assertTrue(summary["checks_passed"])
        return summary["step_time_s"]

    def collectives(self, fabric, trace, *sets):
        """{label: (algorithm, bus bytes/s)} of a run whose own checks pass."""
        _, r = runner.results(self.system(fabric), trace, *sets)
        self.assertTrue(all(c["passed"] for c in r["checks"]), r["checks"])
        self.assertEqual(r["bytes_sent"], r["bytes_received"])
        return {c["label"]: (c["algorithm"], c["bus_bytes_per_s"]) for c in r["collectives"]}

    def test_a_ring_written_link_by_link(self):
        ring = self.step({"type": "ring", "chips": CHIPS, "link": LINK})
        links = [joined(f"chip{i}", f"chip{(i + 1) % CHIPS}") for i in range(CHIPS)]
        self.assertEqual(self.step({"type": "graph", "chips": CHIPS, "links": links}), ring)
        # Opposite chips have two equal routes, and the choice between them goes by the number of the link:
        # only the neighbours of a ring have one route whatever the numbers.
        ring = self.step({"type": "ring", "chips": CHIPS, "link": LINK}, RING)
        one_way = [{**joined(a["from"], a["to"]), "one_way": True} for a in links]
        back = [{**joined(a["to"], a["from"]), "one_way": True} for a in links]
        self.assertEqual(self.step({"type": "graph", "chips": CHIPS, "links": one_way + back}, RING), ring)
        ring = self.step({"type": "ring", "chips": CHIPS, "link": LINK})
        self.assertEqual(self.step({"type": "torus", "dims": [1, CHIPS], "link": LINK}), ring)

    def test_a_switch_written_link_by_link(self):
        star = {"type": "switch", "chips": CHIPS, "link": LINK, "switch_latency": "200 ns"}
        graph = {"type": "graph", "chips": CHIPS, "switches": [{"name": "sw", "latency": "200 ns"}],
                 "links": [joined(f"chip{i}", "sw") for i in range(CHIPS)]}
        self.assertEqual(self.step(graph), self.step(star))

    def test_better_links_are_no_slower(self):
        ring = {"type": "ring", "chips": CHIPS, "link": LINK}
        slow = self.step(ring)
        self.assertLess(self.step(ring, "fabric.link.bandwidth=200GB/s"), slow)
        self.assertGreater(self.step(ring, "fabric.link.latency=50us"), slow)

    def test_a_worse_link_is_no_faster(self):
        """One slow link lies between none and all; a line is a ring without its last link."""
        links = [joined(f"chip{i}", f"chip{(i + 1) % CHIPS}") for i in range(CHIPS)]
        slow = {**LINK, "bandwidth": "2 GB/s"}
        ring = self.step({"type": "ring", "chips": CHIPS, "link": LINK})
        all_slow = self.step({"type": "ring", "chips": CHIPS, "link": slow})
        one_slow = self.step({"type": "graph", "chips": CHIPS, "links": [{**links[0], **slow}, *links[1:]]})
        line = self.step({"type": "graph", "chips": CHIPS, "links": links[:-1]})
        self.assertLess(ring, one_slow)
        self.assertLess(one_slow, all_slow)
        self.assertLess(ring, line)
        self.assertLess(line, all_slow)

    def test_rings_at_once_use_the_links_of_one(self):
        """One rank per chip: two rings around a ring of chips, four on a torus, move that many times as
        much, less the latencies that stay."""
        for fabric, chips, rings in (({"type": "ring", "chips": 8, "link": LINK}, 8, 2),
                                     ({"type": "torus", "dims": [4, 4], "link": LINK}, 16, 4)):
            trace = runner.generate(self.folder.name, f"chips{chips}.trace", layers=1, tp=1, dp=chips, seq=512,
                                    gbs=chips, vocab=8192, rank_unit="chip")
            one = self.collectives(fabric, trace, "collectives.rings=1")
            several = self.collectives(fabric, trace)
            label = next(name for name in one if name.startswith("reduce_scatter dp 136"))
            self.assertEqual(one[label][0], "ring, above mesh_limit")
            self.assertEqual(several[label][0], f"{rings} rings, above mesh_limit")
            gain = several[label][1] / one[label][1]
            self.assertGreater(gain, 0.9 * rings)
            self.assertLessEqual(gain, rings)

    def test_a_mesh_saves_the_steps_of_small_collectives(self):
        fabric = {"type": "ring", "chips": CHIPS, "link": LINK}
        auto, ring = self.collectives(fabric, self.trace), self.collectives(fabric, self.trace, RING)
        for label in ("all_reduce dp 4.00 B", "all_reduce tp 8.19 kB"):
            self.assertRegex(auto[label][0], "^(one-step )?mesh, up to mesh_limit$")
            self.assertRegex(ring[label][0], "^(2 )?rings?, asked for$")
            self.assertGreater(auto[label][1], 1.1 * ring[label][1], label)
        for label, (algorithm, _) in auto.items():
            if " MB" in label:
                self.assertRegex(algorithm, "^([24] )?rings?, above mesh_limit$", label)

    def test_a_mesh_of_large_messages_crowds_a_ring_of_chips(self):
        """8 members: 4 hops away at most, 16 messages over the busiest link against 7 steps of a ring."""
        fabric = {"type": "ring", "chips": CHIPS, "link": LINK}
        ring = self.collectives(fabric, self.trace, RING)
        mesh = self.collectives(fabric, self.trace, "collectives.algorithm=mesh")
        label = next(name for name in ring if name.startswith("reduce_scatter dp"))
        self.assertEqual(mesh[label][0], "mesh, asked for")
        self.assertLess(mesh[label][1], 1.1 * ring[label][1])


class InstancesTest(unittest.TestCase):
    """Two layers of Llama-2 7B on the systems of the generations before."""

    def test_steps_on_a_torus(self):
        with tempfile.TemporaryDirectory() as folder:
            for config, chips, plan, ring in [
                    # Ranks of a chip, and what two directed rings over all chips carry per rank of a group.
                    ("trn1_32xl.json", 16, {"tp": 2, "rank-unit": "core"}, 48e9),
                    ("trn2_48xl.json", 16, {"tp": 4, "rank-unit": "logical_core"}, 128e9),
                    ("trn2_ultraserver64.json", 64, {"tp": 4, "rank-unit": "logical_core"}, 64e9)]:
                trace = runner.generate(folder, "t.trace", layers=2, dp=chips, seq=2048, gbs=chips, **plan)
                _, r = runner.results(config, trace)
                self.assertTrue(all(c["passed"] for c in r["checks"]), r["checks"])
                self.assertEqual(r["bytes_sent"], r["bytes_received"])
                rates = [c["bus_bytes_per_s"] for c in r["collectives"] if " dp " in c["label"]]
                self.assertTrue(rates, config)
                # All data-parallel groups are on the links at once: more than one link's rate for each
                # needs several rings, more than all links of a chip no schedule reaches.
                self.assertLess(max(rates), 4 * ring)
                self.assertGreater(max(rates), 0.5 * ring)


if __name__ == "__main__":
    unittest.main()
