#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests logs of limited size: their content is valid, and the rest is counted as lost."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

LIMIT = 256 << 10
LAUNCHES = 150000


class Run:
    def __init__(self, args, folder, name, bound, mode="", status=0):
        self.args, self.bound = args, bound
        self.data = os.path.join(folder, name)
        variables = {key: value for key, value in os.environ.items()
                     if not key.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_"))}
        variables.update(LD_LIBRARY_PATH=args.simgpu, CUDA_INJECTION64_PATH=args.inject,
                         XTRACE_DATA=self.data, XTRACE_MAX_SIZE=bound,
                         XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
                         XTRACE_SIMGPU_KERNEL_NS="300:900")
        done = subprocess.run([args.program, str(LAUNCHES), mode],
                              env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done
        assert done.stdout == ("done\n" if mode == "status" else ""), done
        self.said = done.stderr.splitlines()
        logs = [file for file in os.listdir(self.data) if file.endswith(".xtr")]
        assert len(logs) == 1, os.listdir(self.data)
        self.log = os.path.join(self.data, logs[0])

    def dump(self, *options):
        return subprocess.run([sys.executable, "-B", self.args.dump, *options, self.log],
                              capture_output=True, text=True)

    def merged(self):
        out = os.path.join(self.data, "summary.json")
        done = subprocess.run([self.args.merge, "--quiet", "--summary", out, self.log],
                              capture_output=True, text=True)
        assert done.returncode in (0, 1), done
        with open(out, encoding="utf-8") as file:
            return json.load(file)

    def account(self):
        rows = re.findall(r"^ACCOUNT.*\bname=(\S+).*\bvalue=(\d+)",
                          self.dump("--kind", "ACCOUNT").stdout, re.M)
        return {name.strip("\"'"): int(value) for name, value in rows}

    def check(self, closed=True):
        done = self.dump("--check", *([] if closed else ["--allow-open"]))
        assert done.returncode == 0 and "good: " in done.stdout, done.stdout + done.stderr
        size = os.path.getsize(self.log)
        assert size <= LIMIT * 1.05, "%d bytes" % size
        return size


def check_account(run, newest, seen):
    account = run.account()
    lost = account["calls.lost.size"]
    assert account["calls.seen"] == account["calls.written"] + lost, account
    assert account["calls.seen"] >= seen, account["calls.seen"]
    assert lost > 1000 and account["calls.written"] > 10000, account
    work = account["kernels.written"] + account["kernels.lost.size"]
    assert work == LAUNCHES, "%d kernels" % work
    summary = run.merged()
    trust = summary["trust"]
    assert trust["word"] == "degraded" and not trust["complete"], trust
    assert trust["losses"]["calls.lost.size"] == lost, trust
    assert "the log had reached --max-size" in trust["lines"][0], trust["lines"]
    assert summary["totals"]["kernel_count"] == account["kernels.written"]
    # All work has its call path, except kernels whose call was dropped.
    attributed = trust["attributed_gpu_time_ns"] / summary["totals"]["gpu_time_ns"]
    assert attributed > (0.9 if newest else 0.9999), attributed
    frames = {frame for row in summary["weights"]["gpu-time"]["paths"]["rows"]
              for frame in summary["paths"][row["path"]]}
    assert {"often", "less"} <= frames, frames


def last_correlation(run):
    text = run.dump("--kind", "KERNEL").stdout
    return [int(number) for number in re.findall(r"^KERNEL.*\bcorrelation=(\d+)", text, re.M)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("inject", "simgpu", "dump", "merge", "program"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-bounds.") as folder:
        whole = Run(args, folder, "whole", "")
        assert os.path.getsize(whole.log) > 1.5 * LIMIT, "the program is too small for the test"
        everything = last_correlation(whole)
        word = whole.merged()["trust"]["word"]
        assert word == "complete", word

        stopped = Run(args, folder, "stopped", str(LIMIT), "status", 7)
        assert len(stopped.said) == 1 and "recording stops" in stopped.said[0], stopped.said
        assert stopped.check() > LIMIT / 2
        check_account(stopped, False, LAUNCHES)
        kept = last_correlation(stopped)
        assert min(kept) == min(everything) and max(kept) < max(everything) / 1.2, (min(kept), max(kept))
        rows = stopped.dump("--kind", "SWITCH").stdout
        assert re.search(r"^SWITCH.*\bon=0\b.*\bwhy=2\b", rows, re.M), rows

        newest = Run(args, folder, "newest", "256K:newest")
        assert not newest.said, newest.said
        assert newest.check() > LIMIT / 3
        check_account(newest, True, LAUNCHES)
        kept = last_correlation(newest)
        assert max(kept) >= max(everything) - 10 and min(kept) > max(everything) / 4, (min(kept), max(kept))
        assert "log.from" in newest.dump("--kind", "META").stdout
        assert not [name for name in os.listdir(newest.data) if name.endswith(".new")]

        # The same holds if the process is killed at any time.
        for name, bound in (("stopped", str(LIMIT)), ("newest", "256K:newest")):
            killed = Run(args, folder, "killed-" + name, bound, "kill", -signal.SIGKILL)
            killed.merged()  # recovers
            killed.check()
            account = killed.account()
            lost = sum(value for key, value in account.items() if key.startswith("calls.lost."))
            assert account["calls.seen"] == account["calls.written"] + lost, account
            assert account["calls.lost.size"] > 1000, account
            assert account["calls.seen"] >= LAUNCHES, account
            assert account["kernels.written"] > 10000 and not account["calls.lost.killed"], account
            assert not [file for file in os.listdir(killed.data) if not file.endswith((".xtr", ".json"))]


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error) or "failed")
