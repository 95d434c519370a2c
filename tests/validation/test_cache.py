# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles kept from earlier runs change the time of a run and nothing else."""
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import runner


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        self.trace = runner.generate(folder.name, "t.trace", layers=1, seq=512, hidden=512, heads=4, kv_heads=4,
                                     ffn=1024, vocab=2048)
        self.runs = 0

    def command(self, *options):
        """(output directory, command line) of one more run."""
        self.runs += 1
        out = self.folder / f"out{self.runs}"
        return out, [runner.PROGRAM, "--config", "chip1.json", "--trace", str(self.trace), "--quiet",
                     "--out", str(out), *options]

    def start(self, *options, cache=None):
        """A run with its own output directory and the cache of this test."""
        out, command = self.command(*options)
        environment = dict(os.environ, TRN3SIM_CACHE_DIR=str(self.cache if cache is None else cache))
        return out, subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)

    @staticmethod
    def outcome(out):
        """(bytes of results.json, run_info) in an output directory."""
        return (out / "results.json").read_bytes(), json.loads((out / "run_info.json").read_text())

    def finish(self, started):
        """(bytes of results.json, run_info, stderr) of a run."""
        out, process = started
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        return *self.outcome(out), errors

    def entries(self):
        return sorted(self.cache.glob("*.profile"))

    def test_warm_is_cold_to_the_byte(self):
        without, info, _ = self.finish(self.start("--no-cache"))
        self.assertEqual(info["profile_cache_hits"] + info["profile_cache_misses"], 0)
        self.assertFalse(self.cache.exists())
        cold, info, _ = self.finish(self.start())
        kernels = info["profiled_kernels"]
        self.assertGreater(kernels, 3)
        self.assertEqual((info["profile_cache_hits"], info["profile_cache_misses"]), (0, kernels))
        self.assertGreater(info["bench_instructions"], 0)
        warm, info, _ = self.finish(self.start())
        self.assertEqual((info["profile_cache_hits"], info["profile_cache_misses"]), (kernels, 0))
        self.assertEqual(info["bench_instructions"], 0)
        self.assertEqual(cold, without)
        self.assertEqual(warm, without)
        self.assertEqual(len(self.entries()), kernels)

    def test_what_no_kernel_sees_keeps_the_entries(self):
        _, info, _ = self.finish(self.start())
        kernels = info["profiled_kernels"]
        for option, hits in (("chip.energy.dma_bit=0.5 pJ", kernels), ("chip.hbm.bandwidth=6.0 TB/s", 0)):
            _, info, _ = self.finish(self.start("--set", option))
            self.assertEqual(info["profile_cache_hits"], hits, option)

    def test_broken_entries_are_measured_again(self):
        cold, _, _ = self.finish(self.start())
        entries = self.entries()
        good = [e.read_bytes() for e in entries]
        entries[0].write_bytes(good[0][:100])
        middle = len(good[1]) // 2
        entries[1].write_bytes(good[1][:middle] + bytes([good[1][middle] ^ 1]) + good[1][middle + 1:])
        entries[2].write_bytes(good[1])
        again, info, errors = self.finish(self.start())
        self.assertEqual(info["profile_cache_misses"], 3)
        self.assertEqual(again, cold)
        self.assertEqual(errors, "")
        self.assertEqual([e.read_bytes() for e in entries], good)

    def test_a_directory_that_cannot_be_written_is_one_warning(self):
        file = self.folder / "file"
        file.write_text("")
        cold, _, _ = self.finish(self.start("--no-cache"))
        results, info, errors = self.finish(self.start(cache=file))
        self.assertEqual(results, cold)
        self.assertGreater(info["profile_cache_errors"], 0)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertRegex(errors, "^warning: .*file.*")

    def test_two_runs_at_once(self):
        runs = [self.finish(started) for started in [self.start(), self.start()]]
        self.assertEqual(runs[0][0], runs[1][0])
        for _, info, errors in runs:
            self.assertEqual(info["profile_cache_errors"], 0)
            self.assertEqual(errors, "")
        self.assertEqual(len(self.entries()), runs[0][1]["profiled_kernels"])
        self.assertEqual(len(list(self.cache.iterdir())), len(self.entries()))

    def test_a_killed_run_leaves_entries_that_serve_the_next(self):
        _, process = self.start()
        deadline = time.monotonic() + 60
        while process.poll() is None and len(self.entries()) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left = len(self.entries())
        self.assertGreaterEqual(left, 2)
        again, info, _ = self.finish(self.start())
        self.assertEqual(info["profile_cache_hits"], left)
        without, _, _ = self.finish(self.start("--no-cache"))
        self.assertEqual(again, without)

    def check_warnings(self, errors, count, reason):
        self.assertEqual(len(errors.splitlines()), count, errors)
        for line in errors.splitlines():
            self.assertRegex(line, f"^warning: the cache of kernel profiles .*{reason}")

    def test_a_full_disk_keeps_what_fits(self):
        """Two runs with a cache on a disk that has room for two profiles."""
        self.cache.mkdir()
        kept = self.folder / "kept"
        kept.mkdir()
        namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        mount = f"mount -t tmpfs -o size=8k none {self.cache}"
        if not shutil.which("unshare") or subprocess.run([*namespace, mount], capture_output=True).returncode:
            self.skipTest("this host lets the test mount no small file system")
        first, second = self.command(), self.command()
        steps = [mount, shlex.join(first[1]), shlex.join(second[1]), f"cp {self.cache}/* {kept}"]
        done = subprocess.run([*namespace, " && ".join(steps)], capture_output=True, text=True,
                              env=dict(os.environ, TRN3SIM_CACHE_DIR=str(self.cache)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_warnings(done.stderr, 2, "No space left on device")
        without, _, _ = self.finish(self.start("--no-cache"))
        (cold, info), (warm, warm_info) = self.outcome(first[0]), self.outcome(second[0])
        self.assertEqual((cold, warm), (without, without))
        self.assertEqual((info["profile_cache_hits"], warm_info["profile_cache_hits"]), (0, 2))
        self.assertEqual(len(list(kept.iterdir())), 2)  # nothing half written
        again, info, errors = self.finish(self.start(cache=kept))  # room again
        self.assertEqual((again, errors), (without, ""))
        self.assertEqual(info["profile_cache_hits"], 2)
        self.assertEqual(len(list(kept.iterdir())), info["profiled_kernels"])

    def test_a_limit_on_the_size_of_files_costs_one_warning(self):
        """What would be a signal that kills the run is an error of the one file."""
        without, _, _ = self.finish(self.start("--no-cache"))
        out, command = self.command("--format", "json")
        limited = subprocess.run(
            command[:-4] + command[-2:], capture_output=True, text=True,
            env=dict(os.environ, TRN3SIM_CACHE_DIR=str(self.cache)),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)))
        self.assertEqual(limited.returncode, 0, limited.stderr)
        self.check_warnings(limited.stderr, 1, "File too large")
        self.assertFalse(out.exists())
        self.assertEqual(list(self.cache.iterdir()), [])
        cold, info, errors = self.finish(self.start())
        self.assertEqual((cold, errors), (without, ""))
        self.assertEqual(len(self.entries()), info["profiled_kernels"])


if __name__ == "__main__":
    unittest.main()
