#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the instructions of hot loops, counted by callgrind, and the cache lines that a launch
touches, with budgets.txt. With --plugin, counts instructions of aarch64 programs by qemu-user.

Neither depends on the load of the machine, so budgets can be narrow. Each part runs twice, with a
small and a large amount of the same work. The difference gives the cost of one more.

Exit status: 0 within the budgets, 1 over one of them, 2 usage or no measurement.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCHES = (20000, 80000)  # of the merged logs
LAUNCHES_TWO = (60000, 120000)  # large enough for a second thread
COLD = (80, 200)  # launches of 40 paths in turn: two warm-up rounds, then three


# Cache lines are counted as misses. Between launches the program touches more data and instructions
# than the last-level cache holds, and the simulated first-level caches are tiny. The first access
# to a line then misses exactly once.
LINES = ["--cache-sim=yes", "--I1=512,1,64", "--D1=512,1,64", "--LL=524288,16,64",
         "--toggle-collect=callback_entry"]
LAST_MISSES = {"lines": ("DLmr", "DLmw"), "code_lines": ("ILmr",)}


class Guard:
    def __init__(self, options, directory):
        self.options = options
        self.directory = directory
        self.cold = {}

    def plain(self, *command):
        if self.options.plugin:
            command = ("qemu-aarch64", "-L", self.options.root, *command)
        subprocess.run(command, cwd=self.directory, check=True, stdout=subprocess.DEVNULL)

    def counts(self, options, *command):
        """Callgrind's events by name."""
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options, *command],
            cwd=self.directory, capture_output=True, text=True, check=False)
        names = re.search(r"Events +: (.*)", done.stderr)
        counted = re.search(r"Collected : (.*)", done.stderr)
        if done.returncode or not counted:
            sys.exit(f"guard: {' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
        return dict(zip(names[1].split(), map(int, counted[1].split())))

    def emulated(self, *command):
        """Instructions of the whole run of an aarch64 program."""
        done = subprocess.run(
            ["qemu-aarch64", "-cpu", "max,pauth-impdef=on", "-L", self.options.root, "-plugin",
             self.options.plugin, *command],
            cwd=self.directory, capture_output=True, text=True, check=False)
        counted = re.search(r"^instructions: (\d+)", done.stderr, re.MULTILINE)
        if done.returncode or not counted:
            sys.exit(f"guard: {' '.join(command)}: {done.stderr.strip()}")
        return int(counted[1])

    def instructions(self, *command):
        """Instructions of the whole run."""
        if self.options.plugin:
            return self.emulated(*command)
        return self.counts([], *command)["Ir"]

    def lines(self, part, kind):
        """Cache lines of a launch with empty caches."""
        if part not in self.cold:
            low, high = (self.counts(LINES, self.options.guard, part, str(count))
                         for count in COLD)
            self.cold[part] = {name: (high[name] - low[name]) / (COLD[1] - COLD[0])
                               for name in high}
        return sum(self.cold[part][name] for name in LAST_MISSES[kind])

    def difference(self, fewer, more, units):
        return (self.instructions(*more) - self.instructions(*fewer)) / units

    def work(self, part, low, high):
        guard = self.options.guard
        return self.difference((guard, part, str(low)), (guard, part, str(high)), high - low)

    def decode(self):
        """Instructions per row of a log with 16,384 calls and as many kernels."""
        self.plain(self.options.guard, "make_log", "16384")
        return self.work("decode", 1, 3) / 32768

    def merge(self, *output, jobs=1, sizes=LAUNCHES):
        logs = []
        for launches in sizes:
            logs.append(f"{launches}.xtr")
            self.plain(self.options.generator, logs[-1], str(launches))
        merge = (self.options.merge, "--jobs", str(jobs), *output)
        return self.difference((*merge, logs[0]), (*merge, logs[1]), sizes[1] - sizes[0])

    def measure(self, name):
        parts = {
            "launch": lambda: self.work("launch", 1000, 11000),
            "launch_python": lambda: self.work("launch_python", 1000, 11000),
            "walk": lambda: self.work("walk", 1000, 3000),
            "forward": lambda: self.work("forward", 1000, 101000),
            "backward": lambda: self.work("backward", 1000, 101000),
            "lines": lambda: self.lines("cold", "lines"),
            "code_lines": lambda: self.lines("cold", "code_lines"),
            "lines_python": lambda: self.lines("cold_python", "lines"),
            "code_lines_python": lambda: self.lines("cold_python", "code_lines"),
            "ring": lambda: self.work("ring", 1000, 101000),
            "encode_row": lambda: self.work("encode", 4096, 20480) / 2,
            "decode_row": self.decode,
            "merge_folded": lambda: self.merge("--folded", "/dev/null"),
            "merge_two": lambda: self.merge("--folded", "/dev/null", jobs=2, sizes=LAUNCHES_TWO),
            "merge_exclusive": lambda: self.merge("--weight", "gpu-exclusive", "--folded", "/dev/null"),
            "merge_chrome": lambda: self.merge("--chrome", "/dev/null"),
        }
        return parts[name]()


def read_budgets(is_aarch64):
    """Lines of: name, budget of x86-64, of aarch64, description. The budget "-" is not measured."""
    with open(os.path.join(HERE, "budgets.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, *budgets, what = line.split(None, 3)
                if budgets[is_aarch64] != "-":
                    yield name, float(budgets[is_aarch64]), what.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, what in (("guard", "the program that runs the work"),
                       ("generator", "the generator of logs"), ("merge", "xtrace-merge")):
        parser.add_argument(f"--{name}", required=True, help=what)
    parser.add_argument("--plugin", help="count aarch64 programs with this plugin of qemu-user")
    parser.add_argument("--root", default="/", help="folder with the libraries of aarch64")
    options = parser.parse_args()
    over = 0
    print("%-16s %10s %10s  %s" % ("", "measured", "budget", "instructions for"))
    with tempfile.TemporaryDirectory(prefix="xtrace-guard-") as directory:
        guard = Guard(options, directory)
        for name, budget, what in read_budgets(bool(options.plugin)):
            measured = guard.measure(name)
            verdict = "" if measured <= budget else "  OVER ITS BUDGET"
            over += bool(verdict)
            print("%-16s %10.1f %10.1f  %s%s" % (name, measured, budget, what, verdict))
    if over:
        print("Make these parts cheaper, or raise their budgets and give the reason, in")
        print("bench/guard/budgets.txt and in the commit message.")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
