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

    def step(self, fabric, *sets):
        file = pathlib.Path(self.folder.name) / "system.json"
        file.write_text(json.dumps({"kind": "system", "name": "t", "chip": "chips/trn3.json", "fabric": fabric}))
        summary = runner.summary(file, self.trace, *sets)
        self.assertTrue(summary["checks_passed"])
        return summary["step_time_s"]

    def test_a_ring_written_link_by_link(self):
        ring = self.step({"type": "ring", "chips": CHIPS, "link": LINK})
        links = [joined(f"chip{i}", f"chip{(i + 1) % CHIPS}") for i in range(CHIPS)]
        self.assertEqual(self.step({"type": "graph", "chips": CHIPS, "links": links}), ring)
        one_way = [{**joined(a["from"], a["to"]), "one_way": True} for a in links]
        back = [{**joined(a["to"], a["from"]), "one_way": True} for a in links]
        self.assertEqual(self.step({"type": "graph", "chips": CHIPS, "links": one_way + back}), ring)
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


if __name__ == "__main__":
    unittest.main()
