#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests sampled stacks while tracing costs more than the limit.

Totals are exact to the nanosecond. Shares are right within the sampling error. The rate follows
the cost in both directions.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile


SHARES = {"often": 0.70, "less": 0.29, "seldom": 0.01}  # shares of the launches in bounds/program.c


class Run:
    def __init__(self, args, folder, name, percent, *arguments):
        self.args = args
        self.data = os.path.join(folder, name)
        variables = {key: value for key, value in os.environ.items()
                     if not key.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_"))}
        variables.update(LD_LIBRARY_PATH=args.simgpu, CUDA_INJECTION64_PATH=args.inject,
                         XTRACE_DATA=self.data, XTRACE_MAX_OVERHEAD=percent,
                         XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
                         XTRACE_SIMGPU_KERNEL_NS="2000:9000")
        done = subprocess.run([args.program, *arguments], env=variables, capture_output=True,
                              text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done
        logs = [file for file in os.listdir(self.data) if file.endswith(".xtr")]
        assert len(logs) == 1, os.listdir(self.data)
        self.log = os.path.join(self.data, logs[0])
        checked = self.dump("--check")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        out = os.path.join(self.data, "summary.json")
        merged = subprocess.run([args.merge, "--quiet", "--summary", out, self.log],
                                capture_output=True, text=True)
        assert merged.returncode == 0, merged
        with open(out, encoding="utf-8") as file:
            self.summary = json.load(file)

    def dump(self, *options):
        return subprocess.run([sys.executable, "-B", self.args.dump, *options, self.log],
                              capture_output=True, text=True)

    def rates(self):
        text = self.dump("--kind", "STACK_RATE").stdout
        return [int(number) for number in re.findall(r"^STACK_RATE.*\bone_in=(\d+)", text, re.M)]

    def strata(self):
        """By rate: the number of calls, and how many of them have a stack."""
        text = self.dump("--kind", "CALL").stdout
        calls, chosen = collections.Counter(), collections.Counter()
        for stack, one_in in re.findall(r"^CALL.*\bstack=(\d+)\b.*\bone_in=(\d+)", text, re.M):
            calls[one_in] += one_in != "0"
            chosen[one_in] += one_in != "0" and stack != "0"
        return [(count, chosen[rate]) for rate, count in calls.items() if count]

    def weight(self, name):
        """Value by launching function. All paths add up to the total."""
        table = self.summary["weights"][name]
        paths = table["paths"]
        assert paths["row_count"] == len(paths["rows"])
        assert sum(row["value"] for row in paths["rows"]) == table["total"], name
        sums = {}
        for row in paths["rows"]:
            for function in SHARES:
                if function in self.summary["paths"][row["path"]]:
                    sums[function] = sums.get(function, 0) + row["value"]
        return table["total"], sums


def check_shares(run, launches):
    """Call sites that launch in a rhythm and at different rates: the estimates must not depend on
    the rhythm."""
    trust, account = run.summary["trust"], run.summary["trust"]["account"]
    rates = run.rates()
    assert rates and max(rates) >= 4, rates
    assert trust["word"] == "degraded" and trust["complete"], trust
    assert re.search(r"stacks sampled 1 in \d+", trust["lines"][0]), trust["lines"]
    unsampled = account["stacks.unsampled"]
    assert launches / 4 < unsampled < launches, account
    assert account["calls.written"] >= launches and run.summary["totals"]["kernel_count"] == launches

    text = run.dump("--kind", "KERNEL").stdout
    durations = [int(number) for number in re.findall(r"^KERNEL.*\bduration_ns=(\d+)", text, re.M)]
    total, shares = run.weight("gpu-time")
    assert len(durations) == launches and total == sum(durations), (total, sum(durations))
    assert sum(shares.values()) == total == trust["attributed_gpu_time_ns"], (shares, total)
    assert 0 < trust["estimated_gpu_time_ns"] < total
    count, counts = run.weight("count")
    assert count == launches == sum(counts.values()), counts
    # Six standard deviations per rate; twice as many for times, which vary as well.
    strata = run.strata()
    assert sum(calls - chosen for calls, chosen in strata) == unsampled, (strata, account)
    for place, share in SHARES.items():
        variance = sum(calls ** 2 * share * (1 - share) / chosen for calls, chosen in strata if chosen)
        bound = (6 * math.sqrt(variance) + sum(calls for calls, chosen in strata if not chosen)) / launches
        assert abs(counts.get(place, 0) / launches - share) < bound, (counts, place, bound, strata)
        assert abs(shares.get(place, 0) / total - share) < 2 * bound, (shares, place, bound, strata)
    assert any(counts.get(place, 0) != round(share * launches) for place, share in SHARES.items()), "nothing was estimated"


def check_control(run):
    rates = run.rates()
    top = rates.index(max(rates, default=0))
    assert max(rates) >= 4, rates
    # On a busy machine, a thread's time passes while it does not run, so the rate may change
    # unevenly.
    assert min(rates[top:]) < max(rates), "the sampling rate never rose again: %s" % rates


def main():
    parser = argparse.ArgumentParser()
    for name in ("inject", "simgpu", "dump", "merge", "program"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-overhead.") as folder:
        launches = 150000
        whole = Run(args, folder, "whole", "", str(launches))
        assert not whole.rates() and whole.summary["trust"]["word"] == "complete"
        roomy = Run(args, folder, "roomy", "100", str(launches))
        assert max(roomy.rates(), default=1) <= 2, roomy.rates()
        check_shares(Run(args, folder, "narrow", "0.01", str(launches)), launches)
        check_control(Run(args, folder, "churn", "1", "40000", "churn"))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error) or "failed")
