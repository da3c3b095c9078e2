#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the merge of many ranks: wall time and peak memory, each with a limit.

About 2.6 % of the launches are collectives.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SEED, PARTS = "5", "20"
LAUNCHES_PER_STEP = 267


def main():
    parser = argparse.ArgumentParser()
    for name in ("maker", "merge"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--launches", type=int, default=100_000, help="of each rank, about")
    parser.add_argument("--seconds-max", type=float, default=60)
    parser.add_argument("--mib-max", type=float, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-scale.") as folder:
        subprocess.run([args.maker, "none", SEED, folder, str(args.ranks),
                        str(args.launches // LAUNCHES_PER_STEP), PARTS], check=True)
        began = time.monotonic()
        output = os.path.join(folder, "summary.json")
        merge = subprocess.Popen([args.merge, folder, "--quiet", "--summary", output])
        _, status, usage = os.wait4(merge.pid, 0)
        seconds = time.monotonic() - began
        with open(output, encoding="utf-8") as file:
            summary = json.load(file)
    mib = usage.ru_maxrss / 1024
    collectives = summary["collectives"]
    print("%d ranks, %d launches, %d collectives: %.1f s, %.1f s of CPU time, %.0f MiB" % (
        args.ranks, summary["headline"]["launch_count"], collectives["count"], seconds,
        usage.ru_utime + usage.ru_stime, mib))
    is_right = not status and collectives["verdict"]["kind"] == "none" and \
        len(collectives["ranks"]) == args.ranks
    return not (is_right and seconds <= args.seconds_max and mib <= args.mib_max)


if __name__ == "__main__":
    sys.exit(main())
