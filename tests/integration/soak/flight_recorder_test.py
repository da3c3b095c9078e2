#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A flight recorder that runs for long: constant memory and log, and complete snapshots.

Samples memory and the size of the log each second, while the program launches at a constant rate.
Takes a snapshot just before the end, which must have every launch of the newest --keep seconds, by
the program's own ledger, each with its kernel.
"""

import argparse
import array
import bisect
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from soak_test import rss_kib

SECOND = 10 ** 9
RSS_GROWTH_KIB = 8192  # rings and buffers grow in steps, when the writer gets no processor
LOG_GROWTH = 1.15


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def log_of(data):
    names = [name for name in os.listdir(data) if name.endswith(".xtr")] if os.path.isdir(data) else []
    return os.path.join(data, names[0]) if names else None


def bytes_on_disk(log):
    """The log, and its compacted copy while there is one."""
    total = 0
    for path in (log, log + ".new"):
        try:
            total += os.stat(path).st_size
        except FileNotFoundError:
            pass
    return os.path.getsize(log), total


def read_ledger(path, until_ns):
    """The complete batches that ended before that time."""
    with open(path, encoding="ascii") as file:
        rows = [tuple(map(int, line.split())) for line in file]
    return [row for row in rows if row[1] <= until_ns]


class Run:
    def __init__(self, args, folder):
        self.args, self.data = args, os.path.join(folder, "data")
        self.ledger = os.path.join(folder, "ledger")
        self.snapshot, self.said = None, ""
        self.samples = []  # seconds, RSS in KiB, bytes of the log, bytes on disk

    def run(self):
        args = self.args
        command = [args.xtrace, "record", "--simulate", "-o", self.data, "--flight-recorder",
                   "%ds" % args.keep, "--", args.program, str(args.seconds), str(args.rate), self.ledger]
        environment = dict(os.environ, XTRACE_SIMGPU_KERNEL_NS="500:1500")
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            self.sample_until_end(process)
            self.said = process.communicate()[1]
        assert process.returncode == 0, (process.returncode, self.said)
        assert self.snapshot, "no snapshot was taken"

    def sample_until_end(self, process):
        began = told = time.monotonic()
        while process.poll() is None:
            now = time.monotonic()
            pids, log = child_of(process.pid), log_of(self.data)
            rss = rss_kib(pids[0]) if pids else None
            if rss and log:
                self.samples.append((now - began, rss, *bytes_on_disk(log)))
            if self.args.verbose and now - told >= 60:
                told = now
                print("%5.0f s: %s" % (now - began, self.samples[-1][1:]), flush=True)
            if log and not self.snapshot and now - began >= self.args.seconds - 2 * self.args.keep - 2:
                self.take_snapshot(log)
            time.sleep(min(1.0, self.args.keep / 10))

    def take_snapshot(self, log):
        """Makes sure that the log is compacted while the snapshot begins."""
        before = os.stat(log).st_ino
        deadline = time.monotonic() + 3 * self.args.keep
        while os.stat(log).st_ino == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(self.args.keep - 0.05)
        self.asked_ns = time.monotonic_ns()
        done = subprocess.run([self.args.xtrace, "snapshot", self.data], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.snapshot, self.snapshot_ns = done.stdout.strip(), time.monotonic_ns()

    def read_times(self):
        """When the log began, and when the program took the request of the snapshot."""
        done = subprocess.run([sys.executable, "-B", self.args.dump, "--format", "json", "--kind", "META",
                               self.snapshot], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        meta = {row["key"]: row["value"] for row in rows if row.get("record") == "row"}
        return rows[0]["start_ns"], int(meta["snapshot.time"])

    def launches(self, folder):
        """When the launches of the snapshot that have a kernel began, in order."""
        database = os.path.join(folder, "run.db")
        done = subprocess.run([self.args.xtrace, "merge", "--quiet", "--sqlite", database, self.snapshot],
                              capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr  # 1: events were lost, perhaps long ago
        start_ns, self.taken_ns = self.read_times()
        assert self.asked_ns <= self.taken_ns <= self.snapshot_ns
        connection = sqlite3.connect(database)
        times = array.array("q", (start_ns + row[0] for row in connection.execute(
            "SELECT c.start_ns FROM api_call c JOIN gpu_work w USING (correlation) ORDER BY c.start_ns")))
        connection.close()
        return times

    def check_snapshot(self, folder):
        times = self.launches(folder)
        batches = [row for row in read_ledger(self.ledger, self.taken_ns)
                   if row[0] >= self.taken_ns - self.args.keep * SECOND]
        for begin_ns, end_ns, count, _ in batches:
            found = bisect.bisect_right(times, end_ns) - bisect.bisect_left(times, begin_ns)
            assert found == count, "%d of %d launches, %.3f s before the snapshot" % (
                found, count, (self.taken_ns - begin_ns) / SECOND)
        assert len(batches) >= 0.5 * 100 * self.args.keep, "the program had no processor"
        oldest = (self.taken_ns - times[0]) / SECOND
        # Compaction may begin late on a busy machine.
        assert oldest <= 2.5 * self.args.keep + 1, "the snapshot has %.1f s" % oldest
        return "snapshot: %d launches in the newest %d s, none missing; it has %.1f s" % (
            sum(row[2] for row in batches), self.args.keep, oldest)

    def slowest(self):
        """Times of launches at the snapshot, and of all others, in ms."""
        rows = read_ledger(self.ledger, 1 << 62)
        during = [row[3] for row in rows if row[1] >= self.asked_ns and row[0] <= self.snapshot_ns]
        others = sorted(row[3] for row in rows)
        return "slowest launch: %.3f ms at the snapshot, %.3f ms at most (99 %% of batches: %.3f ms)" % (
            max(during) / 1e6, others[-1] / 1e6, others[int(len(others) * 0.99)] / 1e6)

    def check_constant(self):
        """Compares the last with the first period after the recorder has filled."""
        period, filled = max(2 * self.args.keep, 1), 2 * self.args.keep
        rows = [row for row in self.samples if row[0] >= filled]
        first = [row for row in rows if row[0] < filled + period]
        last = [row for row in rows if row[0] >= rows[-1][0] - period]
        rss = [statistics.median(row[1] for row in part) for part in (first, last)]
        size = [max(row[2] for row in part) for part in (first, last)]
        text = ("%d s: memory %d KiB, then %d KiB, at most %d KiB; log at most %.2f MiB, then %.2f MiB; "
                "on disk at most %.2f MiB" % (
                    self.args.seconds, rss[0], rss[1], max(row[1] for row in rows), size[0] / 2 ** 20,
                    size[1] / 2 ** 20, max(row[3] for row in rows) / 2 ** 20))
        print(text, flush=True)
        # Too noisy in a short run.
        if self.args.seconds >= 300:
            assert rss[1] - rss[0] <= RSS_GROWTH_KIB, "memory grows"
            assert size[1] <= LOG_GROWTH * size[0], "the log grows"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("xtrace", "dump", "program"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--keep", type=int, default=30, help="seconds that the flight recorder keeps")
    parser.add_argument("--rate", type=int, default=20000, help="launches per second")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-flight.") as folder:
        run = Run(args, folder)
        try:
            run.run()
            run.check_constant()
            print(run.check_snapshot(folder))
            print(run.slowest())
            # A writer that gets no processor for a second loses events.
            assert re.search(r"\b0 lost", run.said), run.said
        except AssertionError as error:
            sys.exit("flight recorder: %s" % error)


if __name__ == "__main__":
    main()
