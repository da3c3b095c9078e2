#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the logs of made-up jobs against their truth files, without the analysis of collectives.

Each log is read alone, by xtrace-dump and as SQLite. Its times are converted by the true clock of
its host. Then the collectives of all logs together must be those of the truth.
"""

import argparse
import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from concurrent import futures

import truth

SCENARIOS = ("none", "slow_loader", "slow_kernel", "gc_pause", "slow_link", "moving",
             "mismatch_operation", "mismatch_bytes", "hang", "missing", "duplicated", "damaged", "two_jobs",
             "late_start", "no_payload", "graphs")
ROUNDING_NS = 3
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")


class Log:
    """The rows of one log, in true time."""

    def __init__(self, job, row, merge):
        self.job, self.row = job, row
        database = job.folder / (row["log"] + ".sqlite")
        subprocess.run([merge, job.folder / row["log"], "--quiet", "--sqlite", database],
                       check=row["until_ns"] is None)
        with sqlite3.connect(database) as connection:
            self.ask = lambda query: connection.execute(query).fetchall()
            self.work = [(kind, name, stream, self.true_ns(start), self.true_ns(start + duration),
                          correlation) for kind, name, stream, start, duration, correlation in
                         self.ask("SELECT kind, name, stream, start_ns, duration_ns, correlation "
                                  "FROM work ORDER BY start_ns")]
            self.calls = {correlation: (self.true_ns(start), self.true_ns(start + duration))
                          for correlation, start, duration in
                          self.ask("SELECT correlation, start_ns, duration_ns FROM api_call")}
            self.ranges = [(name.removeprefix("NCCL:nccl"), self.true_ns(start),
                            self.true_ns(start + duration), json.loads(payload or "{}"))
                           for name, start, duration, payload in
                           self.ask("SELECT n.text, r.start_ns, r.duration_ns, r.payload FROM "
                                    "nvtx_range r JOIN name n ON n.id = r.name_id "
                                    "WHERE r.duration_ns IS NOT NULL ORDER BY r.start_ns")]
        database.unlink()

    def true_ns(self, start_ns):
        """Times in the database count from the start of the log."""
        host = self.row["host"]
        return self.job.true_ns(host, self.job.monotonic_ns(host, self.row["from_ns"]) + start_ns)

    def check_rows(self):
        kinds = collections.Counter(kind for kind, *_ in self.work)
        assert kinds["kernel"] + kinds["collective"] == self.row["kernels"], kinds
        assert kinds["copy"] == self.row["copies"], kinds
        assert len(self.calls) == self.row["calls"], len(self.calls)
        free = collections.defaultdict(float)
        for _, name, stream, start, end, correlation in self.work:
            assert start >= free[stream], f"{name} overlaps in its stream"
            assert start > self.calls[correlation][0], f"{name} precedes its call"
            free[stream] = end

    def collectives(self):
        """(operation, start, end, communicator or None, bytes or None), by time of the call."""
        inside = [r for r in self.ranges if "Message size [bytes]" in r[3]]
        found = []
        for kind, name, _, start, end, correlation in self.work:
            if kind != "collective":
                continue
            call = self.calls[correlation]
            operation = next(o for o in OPERATIONS if "_" + o + "_" in name)
            around = [r for r in inside if r[1] < call[0] and r[2] > call[1]]
            assert len(around) <= 1, around
            values = around[0][3] if around else {}
            assert not around or around[0][0] == operation, (around, operation)
            communicator = values.get("NCCL communicator ID")
            found.append((call[0], start, end, operation, communicator and str(communicator),
                          values.get("Message size [bytes]")))
        return sorted(found)


def expected_collectives(job, rank):
    """What collectives() must find, in the order of the calls."""
    faults = {(m["communicator"], m["index"]): m for m in job.content["mismatches"]
              if m["rank"] == rank}
    found = []
    for instance in job.instances:
        if rank not in job.recorded(instance):
            continue
        at = instance.ranks.index(rank)
        fault = faults.get((instance.communicator, instance.index), {"what": ""})
        operation = fault["values"][1] if fault["what"] == "operation" else instance.operation
        size = fault["values"][1] if fault["what"] == "bytes" else instance.bytes
        has_range = job.has_range(instance)
        found.append((instance.enter_ns[at], instance.start_ns[at], instance.end_ns[at], operation,
                      instance.communicator if has_range else None, size if has_range else None))
    return sorted(found)


def same(a, b):
    return all(abs(x - y) <= ROUNDING_NS for x, y in zip(a[:3], b[:3])) and a[3:] == b[3:]


def check_physics(job):
    """No rank ends a collective before the ranks that it depends on have started it."""
    for instance in job.instances:
        if None in instance.end_ns or instance.operation == "Reduce":
            continue
        last = instance.start_ns[0] if instance.operation == "Broadcast" else max(instance.start_ns)
        assert min(instance.end_ns) > last, instance


def check_waits(job, found):
    """Recomputes the waits from the logs alone. found: collectives() by rank."""
    times = {}
    for rank, rows in found.items():
        for row, expected in zip(rows, (i for i in job.instances if rank in job.recorded(i))):
            times[expected.communicator, expected.index, rank] = row[1:3]
    for instance in job.matched():
        rows = [times[instance.communicator, instance.index, rank] for rank in instance.ranks]
        last = max(start for start, _ in rows)
        if instance.operation in ("Broadcast", "Reduce"):
            continue
        for (start, end), wait in zip(rows, instance.waits_ns()):
            assert abs(min(last, end) - start - wait) <= 2 * ROUNDING_NS, instance


def check_fault(job):
    """The fault must be visible in the truth, or no analysis could find it."""
    kind, rank = job.verdict["kind"], job.verdict["rank"]
    late = collections.Counter()
    for instance in job.instances:
        if None in instance.end_ns or instance.operation in ("Broadcast", "Reduce"):
            continue
        late[instance.ranks[instance.start_ns.index(max(instance.start_ns))]] += \
            sum(instance.waits_ns())
    assert kind != "rank" or rank is not None
    if kind == "rank" and job.content["layout"] != "tensor":
        assert late[rank] > 0.5 * sum(late.values()), late
    if kind == "none":
        assert sum(late.values()) < 0.05 * job.content["end_ns"] * len(job.ranks), late


def check_job(job, merge):
    found = {}
    for rank, row in enumerate(job.ranks):
        if not row["log"]:
            continue
        log = Log(job, row, merge)
        log.check_rows()
        found[rank] = log.collectives()
        expected = expected_collectives(job, rank)
        assert len(found[rank]) == len(expected), (rank, len(found[rank]), len(expected))
        for a, b in zip(found[rank], expected):
            assert same(a, b), (rank, a, b)
    check_physics(job)
    check_waits(job, found)
    check_fault(job)
    return sum(map(len, found.values()))


def main():
    parser = argparse.ArgumentParser()
    for name in ("maker", "merge", "dump"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()

    def check(scenario, seed, folder):
        jobs = truth.make(args.maker, scenario, seed, folder)
        try:
            count = sum(check_job(job, args.merge) for job in jobs)
            logs = [jobs[0].folder / row["log"] for row in jobs[0].ranks
                    if row["log"] and row["until_ns"] is None]
            subprocess.run([sys.executable, args.dump, "--check", *logs[:2]], check=True,
                           stdout=subprocess.DEVNULL)
        except AssertionError as error:
            raise AssertionError(f"{scenario} {seed}: {error}") from error
        return count

    with tempfile.TemporaryDirectory() as folder, \
            futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = list(pool.map(lambda key: check(*key, folder),
                               [(scenario, seed) for scenario in SCENARIOS
                                for seed in range(args.seeds)]))
    assert all(counts), counts
    print(f"{len(counts)} jobs: {sum(counts)} collectives are as in the truth")


if __name__ == "__main__":
    sys.exit(main())
