#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records jobs whose ranks are processes that wait for each other in collectives, in real time.

Compares the logs with the simulator's ground truth, to the nanosecond within each log. Across
logs, waiting times agree within the error of the clock pairs in the logs.
"""

import argparse
import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = None
STEPS, LAYERS, LATE_MS = 8, 4, 4
LIMIT_S = 60
SLACK_NS = 20_000
INCOMPLETE = 1  # exit status of a merge that misses kernels
HUNG = 4  # exit status of a rank whose collective can never end
# Starts the ranks like a launcher on one host, and returns the last failure.
LAUNCHER = """
for rank in $(seq 0 $((WORLD_SIZE - 1))); do
    RANK=$rank LOCAL_RANK=$rank "$@" & ranks="$ranks $!"
done
for rank in $ranks; do wait "$rank" || status=$?; done
exit ${status:-0}
"""
RANGES = {"AllReduce": "ncclAllReduce", "AllGather": "ncclAllGather", "Reduce": "ncclReduce",
         "ReduceScatter": "ncclReduceScatter", "Broadcast": "ncclBroadcast"}

Collective = collections.namedtuple(
    "Collective", "correlation device context stream start end communicator index rank ranks "
                  "awaited awaited_ns size name")
# id: of a graph node, or 0. name: of a kernel.
Work = collections.namedtuple("Work", "correlation device context stream start end id kind name")


def operation(name):
    return name.split("_")[1]


class Truth:
    """The events of one rank, as the program wrote them."""

    def __init__(self, path):
        self.collectives, self.unfinished, self.launches, self.work = {}, [], {}, []
        self.pid = self.last = None
        with open(path, encoding="utf-8") as file:
            for line in file:
                self.last = line.split()
                self.take(*self.last)
        assert self.last[0] == "end", f"{path}: incomplete"

    def take(self, kind, *fields):
        if kind == "collective":
            found = Collective(*map(int, fields[:13]), fields[13])
            assert found.correlation not in self.collectives
            self.collectives[found.correlation] = found
        elif kind == "unfinished_collective":
            self.unfinished.append(Collective(*map(int, fields[:10]), fields[10],
                                              *map(int, fields[11:13]), fields[13]))
        elif kind in ("kernel", "copy", "set"):
            self.work.append(Work(*map(int, fields[:7]), kind,
                                  fields[7] if kind == "kernel" else ""))
        elif kind == "call":
            self.pid = int(fields[0])
            self.launches[int(fields[2])] = int(fields[8]) - int(fields[5])


class Log:
    """The merge's rows about one rank, in its database of all ranks."""

    def __init__(self, database, process, path):
        self.work = [Work(*row) for row in database.execute(
            "SELECT correlation, device, context, stream, start_ns, start_ns + duration_ns, "
            "coalesce(graph_node, 0), CASE kind WHEN 'collective' THEN 'kernel' ELSE kind END, "
            "CASE WHEN kind IN ('kernel', 'collective') THEN name ELSE '' END "
            "FROM work WHERE process_id = ?", (process,))]
        # Times before clocks were aligned. Jobs without several hosts have no such row.
        moved_ns, = database.execute(
            "SELECT coalesce(max(moved_ns), 0) FROM host_clock WHERE host = "
            "(SELECT host FROM process WHERE id = ?)", (process,)).fetchone()
        self.work = [work._replace(start=work.start - moved_ns, end=work.end - moved_ns)
                     for work in self.work]
        self.payloads = dict(database.execute(
            "SELECT c.correlation, r.payload FROM api_call c JOIN nvtx_range r ON "
            "r.process_id = c.process_id AND r.thread_id = c.thread_id AND "
            "r.start_ns <= c.start_ns AND c.start_ns < r.start_ns + r.duration_ns "
            "WHERE c.process_id = ?", (process,)))
        self.ranges = dict(database.execute(
            "SELECT c.correlation, n.text FROM api_call c JOIN nvtx_range r ON "
            "r.process_id = c.process_id AND r.thread_id = c.thread_id AND "
            "r.start_ns <= c.start_ns AND c.start_ns < r.start_ns + r.duration_ns "
            "JOIN name n ON n.id = r.name_id WHERE c.process_id = ?", (process,)))
        rows = subprocess.run([sys.executable, ARGS.dump, "--format", "json", "--kind", "CLOCK",
                               path], check=True, capture_output=True, text=True).stdout
        self.pairs = [(row["monotonic_ns"], row["realtime_ns"])
                      for row in map(json.loads, rows.splitlines()) if "monotonic_ns" in row]
        self.meta = {}
        rows = subprocess.run([sys.executable, ARGS.dump, "--format", "json", "--kind", "META",
                               path], check=True, capture_output=True, text=True).stdout
        for row in map(json.loads, rows.splitlines()):
            if "key" in row:
                self.meta[row["key"]] = row["value"]


def machine_offset_ns():
    """Realtime minus monotonic, from the narrowest of several readings."""
    readings = []
    for _ in range(50):
        before, real, after = (time.clock_gettime_ns(clock) for clock in (
            time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, time.CLOCK_MONOTONIC))
        readings.append((after - before, real - (before + after) // 2))
    return min(readings)[1]


class Skew:
    def __init__(self, offset_ns=0, drift_ppb=0):
        self.text = f"{offset_ns}:{drift_ppb}"
        self.offset_ns, self.drift_ppb = offset_ns, drift_ppb

    def at(self, monotonic_ns):
        return self.offset_ns + monotonic_ns * self.drift_ppb // 10 ** 9


class Job:
    def __init__(self, folder, ranks, words, skews=None, timeout_s="30"):
        self.folder, self.ranks, self.timeout_s = folder, ranks, timeout_s
        self.skews = skews or [Skew()] * ranks
        for name in ("ranks", "truth", "data"):
            os.mkdir(self.path(name))
        command = [ARGS.program, "--steps", str(STEPS), "--late-ms", str(LATE_MS), *words]
        (self.run_hosts if skews else self.run_launcher)(command)
        self.truth = {}
        self.logs = {}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def environment(self, **more):
        return {**os.environ, "WORLD_SIZE": str(self.ranks),
                "XTRACE_SIMGPU_RANKS": self.path("ranks"),
                "XTRACE_SIMGPU_RANKS_TIMEOUT": self.timeout_s,
                "XTRACE_SIMGPU_TRUTH": self.path("truth", "%p"), **more}

    def record(self, output, command, **more):
        return subprocess.Popen([ARGS.xtrace, "record", "--simulate", "--quiet", "-o", output,
                                 *command], env=self.environment(**more), stderr=subprocess.PIPE,
                                text=True)

    def finish(self, processes):
        start = time.monotonic()
        self.messages = [process.communicate(timeout=LIMIT_S)[1] for process in processes]
        self.statuses = [process.returncode for process in processes]
        self.duration_s = time.monotonic() - start

    def run_launcher(self, command):
        self.finish([self.record(self.path("data", "all"),
                                 ["sh", "-c", LAUNCHER, "sh", *command])])

    def run_hosts(self, command):
        self.finish([self.record(
            self.path("data", f"node{rank}"), command, RANK=str(rank), LOCAL_RANK="0",
            LD_PRELOAD=ARGS.other_host, XTRACE_TEST_HOST=f"node{rank}",
            XTRACE_TEST_CLOCK=skew.text) for rank, skew in enumerate(self.skews)])

    def read(self, merge_status=0):
        data = [self.path("data", name) for name in sorted(os.listdir(self.path("data")))]
        merge = subprocess.run([ARGS.merge, *data, "--sqlite", self.path("all.sqlite")],
                               stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert merge.returncode == merge_status, merge.stderr
        by_pid = {int(name): Truth(self.path("truth", name))
                  for name in os.listdir(self.path("truth"))}
        with sqlite3.connect(self.path("all.sqlite")) as database:
            for process, pid, path in database.execute("SELECT id, pid, log FROM process"):
                log = Log(database, process, path)
                rank = int(log.meta["env.RANK"])
                self.logs[rank] = log
                self.truth[rank] = by_pid.get(pid)
        return self

    def instances(self):
        """The finished collectives by communicator and index, then by rank of the job."""
        found = collections.defaultdict(dict)
        for rank, truth in self.truth.items():
            for one in truth.collectives.values() if truth else ():
                found[one.communicator, one.index][rank] = one
        return found


def needed(one, members):
    """The collectives whose start this one needs, itself included."""
    if operation(one.name) == "Broadcast":
        return [other for other in members if other is one or other.rank == 0]
    if operation(one.name) == "Reduce" and one.rank != one.ranks - 1:
        return [one]
    return members


class RanksLive(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="xtrace-ranks-live-")
        self.addCleanup(self.folder.cleanup)

    def check_truth(self, job):
        """Ranks wait exactly for those that they need."""
        for members in job.instances().values():
            self.assertEqual(len({one.name for one in members.values()}), 1)
            all_members = list(members.values())
            self.assertEqual(len(all_members), all_members[0].ranks)
            for one in all_members:
                last = max(other.start for other in needed(one, all_members))
                self.assertEqual(one.awaited_ns, last, one)
                self.assertIn(one.awaited, [other.rank for other in all_members
                                            if other.start == last])
                self.assertGreater(one.end, last, one)

    def check_logs(self, job):
        """The work of the truth is in the log, with its times, and no other; collectives also with
        their payloads.
        """
        for rank, truth in job.truth.items():
            log = job.logs[rank]
            if not truth:
                continue
            origin = min(work.start for work in truth.work) - min(work.start for work in log.work)
            self.assertEqual(sorted(work._replace(start=work.start + origin, end=work.end + origin)
                                    for work in log.work), sorted(truth.work), f"rank {rank}")
            found = {work.correlation: work for work in truth.work}
            for one in truth.collectives.values():
                self.assertEqual(found[one.correlation][:6], one[:6])
                self.assertEqual(log.ranges[one.correlation], "NCCL:" + RANGES[operation(one.name)])
                payload = json.loads(log.payloads[one.correlation])
                self.assertEqual(int(payload["NCCL communicator ID"]), one.communicator)
                self.assertEqual(payload["Message size [bytes]"], one.size)

    def clock_error_ns(self, job, rank):
        """How wrong the clock pairs in the log are."""
        offset = machine_offset_ns()
        return max(abs(real - monotonic - offset - job.skews[rank].at(monotonic))
                   for monotonic, real in job.logs[rank].pairs)

    def check_waits(self, job):
        """Waiting times from the logs, aligned by their clocks, equal the truth."""
        errors = {rank: self.clock_error_ns(job, rank) for rank in job.logs}
        starts = {}
        for rank, log in job.logs.items():
            monotonic = log.pairs[0][0]
            for work in log.work:
                # The merge moves each log by a constant, which contains the skew of its host.
                starts[rank, work.correlation] = work.start - job.skews[rank].at(monotonic)
        waits, wanted = collections.Counter(), collections.Counter()
        for members in job.instances().values():
            for rank, one in members.items():
                last = max(starts[other, that.correlation] for other, that in members.items()
                           if that in needed(one, list(members.values())))
                wait = last - starts[rank, one.correlation]
                truth = one.awaited_ns - one.start
                self.assertLessEqual(abs(wait - truth), 2 * max(errors.values()) + SLACK_NS, one)
                waits[rank] += wait
                wanted[rank] += truth
        count = len(job.instances())
        for rank in job.logs:
            self.assertLessEqual(abs(waits[rank] - wanted[rank]),
                                 count * (2 * max(errors.values()) + SLACK_NS))

    def check_job(self, job, late, at_least_ms):
        self.assertEqual(set(job.statuses), {0}, job.messages)
        job.read()
        self.assertEqual(sorted(job.logs), list(range(job.ranks)))
        self.assertNotIn(None, job.truth.values())
        self.check_truth(job)
        self.check_logs(job)
        self.check_waits(job)
        self.assertFalse([one for truth in job.truth.values() for one in truth.unfinished])
        world = [members for members in job.instances().values() if len(members) == job.ranks]
        self.assertEqual(len(world), STEPS * LAYERS + 4)
        # A rank that waited for the late one in a pair is late itself.
        self.check_lateness([members for members in job.instances().values()
                             if len(members) == 2 or job.ranks != 4], late, at_least_ms)
        self.check_launches(job)

    def check_lateness(self, instances, late, at_least_ms):
        """Each rank that shares these collectives with the late one waits that long for it."""
        waits = collections.Counter()
        for members in instances:
            for rank, one in members.items():
                if late in members and members[late].rank == one.awaited:
                    waits[rank] += one.awaited_ns - one.start
        self.assertTrue(waits)
        for rank, wait in waits.items():
            if rank != late:
                self.assertGreater(wait, at_least_ms * 1e6, f"rank {rank}")

    def check_launches(self, job):
        """Launches return without waiting for other ranks."""
        found = sorted(truth.launches[one.correlation] / (one.awaited_ns - one.start)
                       for truth in job.truth.values() for one in truth.collectives.values()
                       if one.awaited_ns - one.start > LATE_MS * 1e6 / 4)
        self.assertTrue(found)
        self.assertLess(found[len(found) // 2], 0.25)

    def test_four_ranks_wait_for_a_slow_loader(self):
        job = Job(self.folder.name, 4, ["--slow", "loader", "--late-rank", "2", "--pairs"])
        self.check_job(job, 2, STEPS * LATE_MS / 4)
        communicators = {communicator for communicator, _ in job.instances()}
        self.assertEqual(len(communicators), 3)

    def test_hosts_with_skewed_clocks_wait_for_a_slow_kernel(self):
        skews = [Skew(), Skew(730_000_000, 50_000), Skew(-1_000_000_000, -30_000)]
        job = Job(self.folder.name, 3, ["--slow", "kernel", "--late-rank", "1"], skews)
        self.check_job(job, 1, 1)
        metas = [log.meta for log in job.logs.values()]
        self.assertEqual({meta["host.name"] for meta in metas}, {"node0", "node1", "node2"})
        self.assertEqual(len({meta["host.boot"] for meta in metas}), 3)

    def test_two_ranks_wait_for_a_pause(self):
        skews = [Skew(), Skew(11_600_000)]
        job = Job(self.folder.name, 2, ["--slow", "pause", "--late-rank", "0"], skews)
        self.check_job(job, 0, STEPS / 2 * LATE_MS / 4)

    def test_work_behind_a_collective_waits(self):
        job = Job(self.folder.name, 2, ["--late-rank", "1", "--steps", "0", "--mixed"], [Skew()] * 2)
        self.assertEqual(job.statuses, [0, 0], job.messages)
        job.read()
        self.check_truth(job)
        self.check_logs(job)
        truth = job.truth[0]
        last = max(truth.collectives.values(), key=lambda one: one.index)
        later = [work for work in truth.work if work.start >= last.end]
        self.assertEqual([work.kind for work in later].count("copy"), 1)
        self.assertEqual([work.kind for work in later].count("set"), 1)
        self.assertEqual({work.name for work in later if work.name},
                         {"mixed_behind", "mixed_joined", "mixed_legacy", "mixed_replayed"})
        beside, = [work for work in truth.work if work.name == "mixed_beside"]
        self.assertLess(beside.end, last.awaited_ns)
        # In order: a stream, one that waits for its event, and the legacy stream.
        behind, joined, legacy, replayed = [
            next(work for work in later if work.name == "mixed_" + name)
            for name in ("behind", "joined", "legacy", "replayed")]
        for work in (joined, legacy, replayed):
            self.assertGreaterEqual(work.start, behind.end)

    def test_a_dead_rank_leaves_collectives_unfinished(self):
        skews = [Skew()] * 3
        job = Job(self.folder.name, 3, ["--late-rank", "1", "--die-at", "3"], skews)
        self.assertEqual(job.statuses, [HUNG, 3, HUNG], job.messages)
        self.assertLess(job.duration_s, 15, "the death was noticed only by the time limit")
        job.read(INCOMPLETE)
        self.check_logs(job)
        finished = 1 + 3 * LAYERS
        for rank in (0, 2):
            self.assertEqual(len(job.truth[rank].collectives), finished)
            first, *others = sorted(job.truth[rank].unfinished, key=lambda one: one.index)
            self.assertEqual((first.index, first.awaited, first.end), (finished, "1", 0))
            self.assertGreater(first.start, 0)
            self.assertEqual(len(others), LAYERS - 1)
            self.assertEqual({one.start for one in others}, {0})

    def test_different_operations_never_meet(self):
        skews = [Skew()] * 2
        job = Job(self.folder.name, 2, ["--late-rank", "1", "--other-at", "2"], skews, "0.5")
        self.assertEqual(job.statuses, [HUNG, HUNG], job.messages)
        job.read(INCOMPLETE)
        self.check_logs(job)
        names = [min(job.truth[rank].unfinished, key=lambda one: one.index) for rank in (0, 1)]
        self.assertEqual([operation(one.name) for one in names], ["AllReduce", "AllGather"])
        self.assertEqual([one.awaited for one in names], ["1", "0"])


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "dump", "program", "other-host"):
        parser.add_argument("--" + name, required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
