# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the program for the validation tests."""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

PROGRAM = os.environ["TRN3SIM"]
ROOT = pathlib.Path(__file__).resolve().parents[2]

# The runs of one test program share kernel profiles, with nothing from before.
CACHE = tempfile.mkdtemp(prefix="trn3sim_cache_")
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
os.environ["TRN3SIM_CACHE_DIR"] = CACHE


def run(*arguments, expect=0):
    """Runs trn3sim and returns its CompletedProcess; fails if the exit code is not `expect`."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != expect:
        raise AssertionError(f"trn3sim {' '.join(map(str, arguments))}: exit {done.returncode}, "
                             f"expected {expect}\n{done.stderr}\n{done.stdout}")
    return done


def summary(config, trace, *sets):
    """The summary of one run as a dict."""
    options = [o for s in sets for o in ("--set", s)]
    return json.loads(run("--config", config, "--trace", trace, "--format", "json", *options).stdout)


def results(config, trace, *sets, flags=(), cached=False):
    """results.json of one run that measures its kernels itself, unless `cached`: (text, dict)."""
    options = [o for s in sets for o in ("--set", s)]
    if not cached:
        options.append("--no-cache")
    with tempfile.TemporaryDirectory() as out:
        run("--config", config, "--trace", trace, "--out", out, "--quiet", *options, *flags)
        text = (pathlib.Path(out) / "results.json").read_text()
    return text, json.loads(text)


def generate(folder, name, **options):
    """A small Llama-like trace: two layers of 7B width, few micro-steps."""
    plan = dict(preset="llama2-7b", layers=2, tp=4, dp=1, seq=1024, mbs=1, gbs=2)
    plan.update(options)
    path = pathlib.Path(folder) / name
    arguments = ["trace", "gen", "llama"]
    for key, value in plan.items():
        if value is True:
            arguments.append("--" + key.replace("_", "-"))
        else:
            arguments += ["--" + key.replace("_", "-"), value]
    run(*arguments, "-o", path)
    return path
