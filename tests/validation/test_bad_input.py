# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Every user mistake ends with exit code 2 and a message that names file and place."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import runner

HEADER = {"trace": "trn3sim", "v": 1, "name": "t", "rank_unit": "logical_core", "mesh": [["tp", 4]],
          "defaults": {"dtype": "bf16"}, "tokens_per_step": 1, "memory": []}


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def trace(self, *ops, header=None, name="bad.trace"):
        lines = [json.dumps({**HEADER, **(header or {})})] + [json.dumps(o) for o in ops]
        (self.path / name).write_text("\n".join(lines) + "\n")
        return self.path / name

    def refused(self, *arguments, expect):
        out = self.path / "out"
        done = runner.run(*arguments, "--out", out, expect=2)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertEqual(done.stdout, "")
        for text in expect:
            self.assertIn(text, done.stderr)
        self.assertFalse(out.exists(), "nothing may be written")

    def refused_trace(self, trace, *expect, config="chip1.json"):
        self.refused("--config", config, "--trace", trace, expect=[pathlib.Path(trace).name, *expect])

    def refused_set(self, setting, *expect):
        self.refused("--config", "chip1.json", "--trace", "residual_add.trace", "--set", setting, expect=expect)

    def test_missing_config(self):
        self.refused("--config", "nowhere.json", "--trace", "residual_add.trace", expect=["nowhere.json"])

    def test_kernels_that_do_not_fit(self):
        """Each is told with the line of its op, not only the first."""
        gemm = {"op": "gemm", "m": 512, "n": 512, "k": 512}
        trace = self.trace({**gemm, "id": "a"}, {**gemm, "id": "b", "k": 1024}, {**gemm, "id": "c"})
        self.refused("--config", "chip1.json", "--trace", trace, "--set", "chip.sbuf.usable_per_partition=512 B",
                     expect=['bad.trace:2: op "a", gemm 512x512x512 bf16: no block sizes fit into 512 bytes',
                             'bad.trace:3: op "b", gemm 512x512x1024 bf16: no block sizes fit'])

    def test_missing_trace(self):
        self.refused("--config", "chip1.json", "--trace", "nowhere.trace", expect=["nowhere.trace"])

    def test_unknown_key(self):
        self.refused_set("chip.hbm.bandwith=1TB/s", "bandwith", "bandwidth")

    def test_wrong_unit(self):
        self.refused_set("chip.hbm.bandwidth=5GHz", "bandwidth", "5GHz")

    def test_negative_size(self):
        self.refused_set("chip.dma.engines=-1", "engines", "-1")

    def test_unknown_op(self):
        self.refused_trace(self.trace({"op": "gem", "id": "g"}), ":2", "gem")

    def test_unknown_field(self):
        self.refused_trace(self.trace({"op": "gemm", "id": "g", "m": 1, "n": 1, "k": 1, "kk": 2}), ":2", "kk")

    def test_unknown_function(self):
        self.refused_trace(self.trace({"op": "vec", "id": "v", "fn": "rmsnrm", "elems": 4}), ":2", "rmsnorm")

    def test_dangling_dep(self):
        self.refused_trace(self.trace({"op": "vec", "id": "v", "fn": "copy", "elems": 4, "deps": ["w"]}), ":2", "w")

    def test_group_that_does_not_divide(self):
        self.refused_trace(self.trace({"op": "coll", "id": "c", "kind": "all_gather", "group": "tp", "in": 3,
                                       "out": 13}), ":2", "13")

    def test_group_that_is_no_axis(self):
        self.refused_trace(self.trace({"op": "coll", "id": "c", "kind": "all_reduce", "group": "dp", "in": 4,
                                       "out": 4}), ":2", "dp")

    def test_more_ranks_than_cores(self):
        trace = self.trace({"op": "vec", "id": "v", "fn": "copy", "elems": 4}, header={"mesh": [["tp", 8]]})
        self.refused_trace(trace, "8 ranks", "4")

    def test_members_that_disagree(self):
        trace = self.trace({"op": "coll", "id": "c", "kind": "all_reduce", "group": "tp", "in": 4, "out": 4,
                            "when": {"tp": 0}})
        self.refused_trace(trace, "disagree")

    def test_peer_outside_the_mesh(self):
        self.refused_trace(self.trace({"op": "send", "id": "s", "peer": "tp+1", "bytes": 4, "tag": 0}), ":2", "tp")

    def test_unmatched_receive_is_a_deadlock(self):
        trace = self.trace({"op": "recv", "id": "r", "peer": "tp-1", "bytes": 4, "tag": 0, "when": {"tp": 1}})
        self.refused_trace(trace)

    def test_truncated_zstd(self):
        whole = self.trace({"op": "vec", "id": "v", "fn": "copy", "elems": 4})
        packed = subprocess.run(["zstd", "-q", "-c", whole], capture_output=True, check=True).stdout
        (self.path / "cut.trace").write_bytes(packed[:-5])
        self.refused_trace(self.path / "cut.trace", "zstd")

    def test_empty_file(self):
        (self.path / "empty.trace").write_bytes(b"")
        self.refused_trace(self.path / "empty.trace", "empty")

    def test_line_of_20_mb(self):
        long = self.trace({"op": "vec", "id": "v" * 20_000_000, "fn": "copy", "elems": 4})
        self.refused_trace(long, ":2", "16")

    def test_does_not_fit_in_hbm(self):
        trace = self.trace({"op": "vec", "id": "v", "fn": "copy", "elems": 4},
                           header={"memory": [{"kind": "weights", "bytes": 10**12, "live": "always"}]})
        self.refused_trace(trace, "does not fit", "HBM")

    def test_control_characters_are_shown_not_sent(self):
        trace = self.trace({"op": "vec", "id": "\u001b[31mred", "fn": "nothing", "elems": 4})
        done = runner.run("--config", "chip1.json", "--trace", trace, expect=2)
        self.assertNotIn("\x1b", done.stderr)
        self.assertIn("\\x1b[31mred", done.stderr)

    def test_empty_group(self):
        self.refused_trace(self.trace({"op": "coll", "id": "c", "kind": "barrier", "group": "", "in": 0, "out": 0}),
                           ":2", "empty")

    def test_work_beyond_the_end_of_simulated_time(self):
        self.refused_trace(self.trace({"op": "delay", "id": "d", "ns": 18446744000000}), "at most 5000 s")
        self.refused_trace(self.trace({"op": "block", "id": "b"}, {"op": "vec", "id": "v", "fn": "add", "elems": 1},
                                      {"op": "end"}, {"op": "repeat", "id": "r", "block": "b", "times": 10**17}),
                           "at most 5000 s")

    def test_nothing_to_simulate(self):
        self.refused_trace(self.trace({"op": "delay", "id": "d", "ns": 0}), "no time")

    def test_blocks_nested_too_deep(self):
        ops = [{"op": "block", "id": "b0"}, {"op": "vec", "id": "v", "fn": "copy", "elems": 4}, {"op": "end"}]
        for depth in range(1, 300):
            ops += [{"op": "block", "id": f"b{depth}"}, {"op": "call", "id": "c", "block": f"b{depth - 1}"}, {"op": "end"}]
        self.refused_trace(self.trace(*ops, {"op": "call", "id": "c", "block": "b299"}), "nested", "64")

    def test_unsupported_format(self):
        trace = self.trace({"op": "gemm", "id": "g", "m": 128, "n": 128, "k": 128})
        self.refused("--config", "chip1.json", "--trace", trace, "--set",
                     "chip.tensor.macs_per_pe_cycle.bf16=0", expect=["bf16"])


if __name__ == "__main__":
    unittest.main()
