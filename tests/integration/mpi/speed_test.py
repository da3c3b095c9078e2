#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much faster two processes of xtrace-mpi merge many ranks than one of xtrace merge.

The speedup is the median of alternating pairs. It needs two processors without other load.
"""

import argparse
import filecmp
import os
import statistics
import subprocess
import sys
import tempfile
import time

SEED, PARTS = "5", "20"


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, check=True, env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                                                 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    for name in ("maker", "merge", "mpi", "mpiexec"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--output", default="--brief")
    parser.add_argument("--speedup-min", type=float, default=1.6)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-speed.") as folder:
        logs = os.path.join(folder, "logs")
        os.mkdir(logs)
        subprocess.run([args.maker, "none", SEED, logs, str(args.ranks), str(args.steps), PARTS],
                       check=True)
        files = [os.path.join(folder, name) for name in ("one", "two")]
        one = [args.merge, "--jobs=1", "--quiet", logs, args.output, files[0]]
        two = [args.mpiexec, "-n", "2", args.mpi, "merge", "--quiet", logs, args.output, files[1]]
        pairs = [(seconds(one), seconds(two)) for _ in range(args.pairs)]
        is_same = filecmp.cmp(files[0], files[1], shallow=False)
    speedups = [first / second for first, second in pairs]
    print("one process %.2f s, two %.2f s, speedup %.2f [%.2f %.2f]" % (
        statistics.median(first for first, _ in pairs),
        statistics.median(second for _, second in pairs),
        statistics.median(speedups), min(speedups), max(speedups)))
    return not (is_same and statistics.median(speedups) >= args.speedup_min)


if __name__ == "__main__":
    sys.exit(main())
