# SPDX-FileCopyrightText: The trn3sim authors
# SPDX-License-Identifier: Apache-2.0
"""What the scripts that write pages of docs/ share: runs, the machine, tables."""
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"


def table(head, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


class Run:
    """One run of trn3sim: results, summary, run_info and what it used of the host."""

    def __init__(self, config, trace, *sets, cache=None):
        """`cache`: directory for profiles; without one, an empty one."""
        self.command = ["trn3sim", "--config", config, "--trace", trace]
        for s in sets:
            self.command += ["--set", s]
        with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as empty:
            command = [str(BIN / "trn3sim"), *self.command[1:], "--quiet", "--format", "json", "--out", out]
            environment = dict(os.environ, TRN3SIM_CACHE_DIR=cache or empty)
            begin = time.monotonic()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.wall_s = time.monotonic() - begin
            if process.returncode != 0:
                raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
            self.user_s, self.system_s = usage.ru_utime, usage.ru_stime
            self.peak_bytes = usage.ru_maxrss * 1024
            self.summary = json.loads(output)
            self.results_text = (pathlib.Path(out) / "results.json").read_text()
            self.results = json.loads(self.results_text)
            self.info = json.loads((pathlib.Path(out) / "run_info.json").read_text())


def google_test(program, test):
    """Runs one test of a GoogleTest program; returns (passed, {property: text})."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([str(BIN / program), f"--gtest_filter={test}", f"--gtest_output=json:{report}"],
                       stdout=subprocess.DEVNULL, check=False)
        case = json.loads(report.read_text())["testsuites"][0]["testsuite"][0]
    fixed = {"name", "file", "line", "status", "result", "timestamp", "time", "classname", "failures"}
    return "failures" not in case, {k: v for k, v in case.items() if k not in fixed}


def machine():
    """One line about the host and the compiler."""
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.processor())
    system = "Linux"
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        if line.startswith("PRETTY_NAME="):
            system = line.split("=")[1].strip('"')
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{os.cpu_count()} cores of {cpu} (virtual machine), {system}, Release, g++ {compiler}"
