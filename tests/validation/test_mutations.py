# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Each resource matters: halving it changes a named result in the expected direction."""
import json
import tempfile
import unittest

import runner


class MutationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = runner.generate(cls.folder.name, "t.trace", dp=16, gbs=16)
        _, cls.base = runner.results("instance16.json", cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def mutated(self, *sets):
        return runner.results("instance16.json", self.trace, *sets)[1]

    def kernel(self, results, text):
        found = [k for k in results["kernels"] if text in k["label"]]
        self.assertTrue(found, text)
        return found[0]

    def test_half_the_hbm_rate_slows_the_optimizer(self):
        r = self.mutated("chip.hbm.bandwidth=2457.6GB/s")
        self.assertGreater(self.kernel(r, "adamw")["alone_fs"], 1.2 * self.kernel(self.base, "adamw")["alone_fs"])

    def test_half_the_dma_rate_slows_residual_adds(self):
        r = self.mutated("chip.dma.plateau_rate=16.5GB/s", "chip.dma.bus_rate=19.2GB/s")

        def add(x):  # without a vector op that takes its result from SBUF
            return next(k for k in x["kernels"] if k["label"].startswith("add ") and "+" not in k["label"])
        self.assertGreater(add(r)["alone_fs"], 1.5 * add(self.base)["alone_fs"])

    def test_half_the_stack_links_slow_tensor_parallel_collectives(self):
        r = self.mutated("chip.on_chip.stack_link=64GB/s")
        def gather(x):
            return next(c for c in x["collectives"] if c["label"].startswith("all_gather tp"))
        self.assertGreater(gather(r)["total_fs"], 1.3 * gather(self.base)["total_fs"])
        self.assertGreater(r["step_fs"], self.base["step_fs"])

    def test_half_the_fabric_slows_data_parallel_collectives(self):
        r = self.mutated("fabric.pair.bandwidth=256GB/s", "fabric.switched.bandwidth=256GB/s")
        def scatter(x):
            return next(c for c in x["collectives"] if c["label"].startswith("reduce_scatter dp"))
        self.assertGreater(scatter(r)["total_fs"], 1.2 * scatter(self.base)["total_fs"])

    def test_half_the_tensor_clock_halves_matmul_speed(self):
        r = self.mutated("chip.tensor.clock=1.2GHz")
        ratio = self.kernel(r, "gemm")["alone_fs"] / self.kernel(self.base, "gemm")["alone_fs"]
        self.assertGreater(ratio, 1.6)
        self.assertLessEqual(ratio, 2.05)
        self.assertEqual(r["peak_geometry_flop_per_s"] * 2, self.base["peak_geometry_flop_per_s"])

    def test_half_the_vector_clock_slows_normalisation(self):
        r = self.mutated("chip.vector.clock=0.6GHz")
        self.assertGreater(r["engine_busy_fs"]["vector"], 1.5 * self.base["engine_busy_fs"]["vector"])
        self.assertGreater(r["step_fs"], self.base["step_fs"])

    def test_dropping_refresh_saves_its_energy_and_never_slows(self):
        r = self.mutated("chip.hbm.refresh=none")
        self.assertLess(r["energy_nj"]["hbm"], self.base["energy_nj"]["hbm"])
        self.assertLessEqual(r["step_fs"], 1.001 * self.base["step_fs"])

    def test_keys_that_no_model_reads_are_named(self):
        for path, value in (("chip.collectives.cores_used", 8), ("chip.dma.collective_packet", "32KiB"),
                            ("chip.psum.capacity", "4MiB"), ("chip.sbuf.capacity", "64MiB"),
                            ("chip.vector.lanes", 64), ("chip.scalar.lanes", 64), ("chip.gpsimd.lanes", 64),
                            ("chip.logical_core_size", 1), ("run.seed", 7), ("chip.hbm.exact.t_rc", "50ns"),
                            ("chip.hbm.exact.t_wtr_s", "5ns")):
            done = runner.run("--config", "instance16.json", "--trace", self.trace, "--quiet", "--set", f"{path}={value}")
            self.assertIn(f"--set {path}: no model reads this key", done.stderr)
            r = self.mutated(f"{path}={value}")
            self.assertEqual(r, self.base, path)
        done = runner.run("--config", "instance16.json", "--trace", self.trace, "--quiet",
                          "--set", "chip.hbm.bandwidth=4TB/s")
        self.assertEqual(done.stderr, "")

    def test_half_the_ramp_of_the_limiter_costs_less(self):
        half, none = self.mutated("chip.tensor.throttle.ramp=1.5us"), self.mutated("chip.tensor.throttle.start_share=1")
        self.assertLess(half["step_fs"], self.base["step_fs"])
        self.assertLess(none["step_fs"], half["step_fs"])
        # Kernels of milliseconds: the ramps are little of the step.
        self.assertLess(self.base["step_fs"], 1.01 * none["step_fs"])
        classes = [r["breakdown"]["mean_fs"]["throttled"] for r in (self.base, half, none)]
        self.assertGreater(classes[0], classes[1])
        self.assertGreater(classes[1], classes[2])
        self.assertEqual(classes[2], 0)
        for r in (self.base, half, none):
            self.assertEqual(sum(r["breakdown"]["mean_fs"].values()), r["step_fs"])

    def test_the_limiter_costs_short_kernels_more(self):
        """Kernels of microseconds with idle times between them never find the limit released."""
        path = f"{self.folder.name}/short.trace"
        ops = [{"op": "gemm", "id": f"g{i}", "m": 128, "n": 512, "k": 512, "deps": [f"g{i - 1}"] if i else []}
               for i in range(50)]
        header = {"trace": "trn3sim", "v": 1, "name": "short", "rank_unit": "core", "mesh": [["dp", 1]],
                  "defaults": {"dtype": "bf16"}}
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in [header, *ops])

        def cost(trace, config):
            on = runner.results(config, trace)[1]
            off = runner.results(config, trace, "chip.tensor.throttle.start_share=1")[1]
            return on["step_fs"] / off["step_fs"] - 1
        self.assertGreater(cost(path, "chip1.json"), 4 * cost(self.trace, "instance16.json"))

    def test_dropping_fusion_slows_the_step(self):
        r = self.mutated("compile.fusion=false")
        self.assertGreater(r["step_fs"], self.base["step_fs"])
        self.assertGreater(r["hbm_read_bytes"], self.base["hbm_read_bytes"])


if __name__ == "__main__":
    unittest.main()
