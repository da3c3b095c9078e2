#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks recorded logs:
- calls seen = calls written + calls lost, and nothing is lost
- every kernel, copy and memset has a call path
- the folded stacks of xtrace-merge add up to the count and the nanoseconds that the independent
  xtrace-dump reads from the logs

Prints launches, kernels, lost records and bytes per launch in one line. The second line lists the
failed checks. Exit status: 0 pass, 1 failure, 2 usage.
"""

import argparse
import glob
import json
import os
import subprocess
import sys

# Name parts of the account's counters of losses, which must be 0.
LOSS_WORDS = (".lost", ".invalid", ".dropped", ".discarded", ".mismatched")
CALLS_LOST = "calls.lost."


def is_loss(name):
    return any(word in name for word in LOSS_WORDS)


class Trace:
    def __init__(self, options):
        self.options = options
        self.logs = sorted(glob.glob(os.path.join(options.data, "*.xtr")))
        self.reasons = []
        self.account = {}

    def run(self, program, *arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            name = os.path.basename(program)
            self.reasons.append(f"{name} gives {done.returncode}: {'; '.join(said[:3])}")
        return done.stdout

    def hold(self, true, otherwise):
        if not true:
            self.reasons.append(otherwise)

    def read_account(self):
        """The sum of all logs' accounts. In each log, the last row of a name counts."""
        for log in self.logs:
            last = {}
            dump = self.run(self.options.dump, "--kind", "ACCOUNT", "--format", "json", log)
            for row in map(json.loads, dump.splitlines()):
                if "name" in row and "value" in row:
                    last[row["name"]] = row["value"]
            for name, value in last.items():
                self.account[name] = self.account.get(name, 0) + value

    def total(self, option):
        """Count and nanoseconds of the work that an option of xtrace-dump selects."""
        words = self.run(self.options.dump, option, *self.logs).split()
        if len(words) != 4:
            return 0, 0
        return int(words[1]), int(words[3])

    def launches_total(self):
        counts = dict(
            line.rsplit(" ", 1)
            for line in self.run(self.options.dump, "--calls-total", *self.logs).splitlines()
        )
        return int(counts.get("kernel_launch", 0)) + int(counts.get("graph_launch", 0))

    def folded(self, *options):
        """The sum of all weights, and of those without a call path."""
        total = unattributed = 0
        for line in self.run(
            self.options.merge, *self.logs, "--folded", "-", *options
        ).splitlines():
            stack, weight = line.rsplit(" ", 1)
            total += int(weight)
            if "[unattributed]" in stack:
                unattributed += int(weight)
        return total, unattributed

    def check(self):
        """Launches, kernels, lost records and bytes of all logs."""
        if not self.logs:
            self.reasons.append("there is no log")
            return 0, 0, 0, 0
        self.run(self.options.dump, "--check", *self.logs)
        self.read_account()
        seen, written = (self.account.get(name, 0) for name in ("calls.seen", "calls.written"))
        calls_lost = sum(n for name, n in self.account.items() if name.startswith(CALLS_LOST))
        launches = self.launches_total()
        kernels, _ = self.total("--kernels-total")
        work, work_ns = self.total("--work-total")
        folded_ns, unattributed_ns = self.folded()
        folded_count, unattributed_count = self.folded("--weight", "count")
        lost = sum(count for name, count in self.account.items() if is_loss(name))

        self.hold(seen == written + calls_lost, f"{seen} calls seen, {written} written")
        for name, count in sorted(self.account.items()):
            if is_loss(name):
                self.hold(count == 0, f"{name} is {count}")
        self.hold(kernels > 0, "no kernel was recorded")
        self.hold(launches >= self.options.launches_min, f"{launches} launches are too few")
        self.hold(
            unattributed_count == 0 and unattributed_ns == 0,
            f"{unattributed_count} kernels, copies and memsets are not attributed",
        )
        self.hold(folded_count == work, f"{folded_count} pieces of work folded of {work}")
        self.hold(folded_ns == work_ns, f"{folded_ns} ns folded of {work_ns}")
        return launches, kernels, lost, sum(map(os.path.getsize, self.logs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DIR", help="with the logs, *.xtr")
    parser.add_argument("--dump", required=True, metavar="PROGRAM", help="xtrace-dump")
    parser.add_argument("--merge", required=True, metavar="PROGRAM", help="xtrace-merge")
    parser.add_argument("--launches-min", type=int, default=1, metavar="N")
    trace = Trace(parser.parse_args())
    launches, kernels, lost, log_bytes = trace.check()
    print(launches, kernels, lost, f"{log_bytes / launches:.1f}" if launches else "-")
    print("; ".join(trace.reasons))
    return 1 if trace.reasons else 0


if __name__ == "__main__":
    sys.exit(main())
