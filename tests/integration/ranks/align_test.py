#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that timelines of several hosts are on one clock, on made-up jobs.

The ranks leave an all-reduce within microseconds. So its ends, by the database and by the Chrome
trace, may differ only by the stated error. The clocks of the hosts are up to a second apart.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

import truth

END_SPREAD_NS = 3000  # of a collective, in the jobs
UNITS_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def apart_ns(ends):
    """The largest difference between the ends of one collective."""
    return max(max(times) - min(times) for times in ends.values() if len(times) > 1)


def stated_ns(text):
    """The sum of the errors that the notes state."""
    return sum(float(value) * UNITS_NS[unit]
               for value, unit in re.findall(r"right to within ([0-9.]+) (ns|us|ms|s)\.", text))


def database_ends(path):
    ends = collections.defaultdict(list)
    with contextlib.closing(sqlite3.connect(path)) as database:
        for key, number, end_ns in database.execute(
                "SELECT communicator_id, number, end_ns FROM collectives "
                "WHERE operation = 'AllReduce' AND path_id IS NOT NULL"):
            ends[key, number].append(end_ns)
        missing, = database.execute("SELECT count(*) FROM collectives WHERE path_id IS NULL").fetchone()
        offset, = database.execute("SELECT max(abs(offset_ns)) FROM host_clock").fetchone()
    return ends, missing, offset


def chrome_ends(path):
    """All-reduces of all ranks, by their order. Only for jobs with one communicator."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    order, ends = collections.Counter(), collections.defaultdict(list)
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        if event["name"].startswith("ncclDevKernel_AllReduce"):
            ends[order[event["pid"]]].append((event["ts"] + event["dur"]) * 1e3)
            order[event["pid"]] += 1
    return ends


def check(args, seed, folder):
    """Returns how far the clocks of the job are apart, or None if it has one host."""
    job = truth.make(args.maker, "slow_loader", seed, folder)[0]
    database, trace = os.path.join(folder, "a.db"), os.path.join(folder, "a.json")
    done = subprocess.run([args.merge, job.folder, "--sqlite", database, "--chrome", trace],
                          stderr=subprocess.PIPE, text=True, check=True)
    hosts = {rank["host"] for rank in job.ranks}
    assert done.stderr.count("the clock of") == len(hosts) - 1, done.stderr
    if len(hosts) == 1:
        return None
    ends, missing, offset_ns = database_ends(database)
    limit_ns = stated_ns(done.stderr) + END_SPREAD_NS
    assert not missing, f"seed {seed}: {missing} collectives have no work"
    assert apart_ns(ends) <= limit_ns, f"seed {seed}: {apart_ns(ends)} ns apart, not {limit_ns}"
    if job.content["layout"] != "tensor":
        seen_ns = apart_ns(chrome_ends(trace))
        assert seen_ns <= limit_ns, f"seed {seed}: {seen_ns} ns apart in the trace"
    return offset_ns


def main():
    parser = argparse.ArgumentParser()
    for name in ("maker", "merge"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seeds", type=int, default=8)
    args = parser.parse_args()
    offsets_ns = []
    for seed in range(args.seeds):
        with tempfile.TemporaryDirectory() as folder:
            offset_ns = check(args, seed, folder)
        if offset_ns is not None:
            offsets_ns.append(offset_ns)
    print(f"{len(offsets_ns)} jobs, clocks up to {max(offsets_ns) / 1e6:.1f} ms apart")
    return 0 if max(offsets_ns) > 1e6 else 1


if __name__ == "__main__":
    sys.exit(main())
