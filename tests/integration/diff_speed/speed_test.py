#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare two sides of five long runs and check CPU time and memory against limits.

CPU time, because wall time depends on the load of the machine.
"""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

RUNS = 5
BYTES_MAX = 300 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("xtrace")
    parser.add_argument("generator")
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="limit of CPU time")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for side in "ab":
            logs = [pathlib.Path(folder) / f"{side}{run}.xtr" for run in range(RUNS)]
            for log in logs:
                subprocess.run([args.generator, log, str(args.launches)], check=True,
                               stdout=subprocess.DEVNULL)
            sides.append(",".join(map(str, logs)))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([args.xtrace, "diff", *sides], stdout=subprocess.PIPE, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Up to three processes run at a time, two readers and xtrace diff. Count the largest for each.
    used = 3 * after.ru_maxrss * 1024
    print(f"2 x {RUNS} runs of {args.launches} launches: {seconds:.2f} s of CPU time, "
          f"{used >> 20} MiB at most, exit status {done.returncode}")
    # The runs are equal, so nothing can have changed.
    wrong = [what for what, is_wrong in (
        ("exit status", done.returncode != 0), ("time", seconds > args.seconds),
        ("memory", used > BYTES_MAX)) if is_wrong]
    if wrong:
        print(done.stdout)
        sys.exit("limits exceeded: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
