# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""Golden cases: tests/golden/<case>/{run.json, expected.json}.

run.json = {"config": FILE, "trace": FILE, "set": ["path=value", ...]}; expected.json is the
results.json of that run. The program runs in the case's folder, so files there are found first.
model_version is left out: it changes with every edit of the sources.
"""
import json
import os
import pathlib
import subprocess
import tempfile

RUN_KEYS = {"config", "trace", "set"}


class GoldenError(Exception):
    """A case that cannot be run or simulated nothing."""


def run_case(program: pathlib.Path, case: pathlib.Path) -> dict:
    """Runs a case in a fresh cache and returns its results."""
    run = json.loads((case / "run.json").read_text())
    unknown = set(run) - RUN_KEYS
    if unknown or not {"config", "trace"} <= set(run):
        raise GoldenError(f"{case.name}/run.json: needs config and trace, may have set; found {sorted(run)}")
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out"
        command = [str(program), "--config", run["config"], "--trace", run["trace"], "--quiet", "--out", str(out)]
        for override in run.get("set", []):
            command += ["--set", override]
        environment = dict(os.environ, TRN3SIM_CACHE_DIR=scratch + "/cache")
        done = subprocess.run(command, cwd=case, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise GoldenError(f"{case.name}: exit code {done.returncode}\n{done.stderr}{done.stdout}")
        results = json.loads((out / "results.json").read_text())
        info = json.loads((out / "run_info.json").read_text())
    require_work(case.name, results, info)
    results.pop("model_version", None)
    return results


def require_work(name: str, results: dict, info: dict) -> None:
    """A run that did nothing agrees with any other run that did nothing."""
    if results.get("step_fs", 0) <= 0 or info.get("rank_ops", 0) <= 0:
        raise GoldenError(f"{name}: nothing was simulated (step_fs {results.get('step_fs')}, "
                          f"rank_ops {info.get('rank_ops')})")
    if results.get("energy_nj", {}).get("total", 0) <= 0:
        raise GoldenError(f"{name}: the run used no energy")


def differences(old, new, path: str = ""):
    """Yields (path, old, new) of every leaf that differs, in order."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield path, old, new


def load_expected(case: pathlib.Path) -> dict:
    """The stored results of a case without its model version; {} if there are none yet."""
    file = case / "expected.json"
    expected = json.loads(file.read_text()) if file.exists() else {}
    expected.pop("model_version", None)
    return expected


def text_of(value) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
