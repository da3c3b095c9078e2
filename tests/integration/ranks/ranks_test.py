#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the analysis of collectives with the truth of made-up jobs.

Each job is made from a scenario and a seed, merged to a summary, and compared. A failure names the
scenario and the seed: "make_ranks SCENARIO SEED FOLDER" makes the same logs again.
"""

import argparse
import collections
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent import futures

import truth

BLAME = ("none", "slow_loader", "slow_kernel", "gc_pause", "slow_link", "moving", "slow_cpu",
         "launch_bound", "contended", "contended_loader", "contended_kernel", "unequal",
         "launch_bound_graphs", "blocking_graphs")
BAD_INPUT = ("mismatch_operation", "mismatch_bytes", "hang", "hang_at_start", "missing", "duplicated",
             "damaged", "two_jobs", "late_start", "no_payload", "graphs")
CLOCKS_WITHIN = 0.99       # share of the clocks that are within their stated error
MEDIAN_ERROR_NS_MAX = 50_000
# How far a stated cost may be from the truth. Where launches decide, chance costs a little, too.
SHARE_RELATIVE, SHARE_ABSOLUTE = 0.25, {"slow_cpu": 0.07, "launch_bound": 0.03,
                                  "launch_bound_graphs": 0.07}
SHARE_ABSOLUTE_ELSE = 0.02
NOTABLE_SHARE_MAX = 0.025  # 0.02 and some error
ROUNDING_NS = 4            # of an instance, without clock errors
DRIFT_MAX = 60e-6          # of the first host's clock, by which all is measured: nobody knows it


class Differences(list):
    """What is not as expected in one job."""

    def check(self, is_right, what, *values):
        if not is_right:
            self.append(what + "".join(f" {value!r}" for value in values))

    def same(self, what, value, expected):
        self.check(value == expected, f"{what}: is {value!r}, not {expected!r}")


class Result:
    """The part "collectives" of a summary, and the truth of its jobs."""

    def __init__(self, jobs, content):
        self.jobs, self.content = jobs, content
        self.job = jobs[0]
        self.differences = Differences()
        self.clocks = []  # (difference from the truth, stated error) of each host but the first
        self.ranks = {row["process"]: row["rank"] for row in content["ranks"]}

    def total(self, count):
        return sum(count(job) for job in self.jobs)

    def is_near(self, value, expected, count):
        """Whether a sum of so many differences of times is right within the stated errors."""
        errors = sorted(clock.get("error_ns") or 0 for clock in self.content["clocks"])
        limit = (sum(errors[-2:]) + ROUNDING_NS) * count + DRIFT_MAX * expected
        return abs(value - expected) <= limit


def check_counts(result):
    job, content, found = result.job, result.content, result.differences
    matched = result.total(lambda j: len(j.matched()))
    mismatched = result.total(lambda j: len(j.content["mismatches"]))
    partial = result.total(lambda j: len(j.partial()))
    by_order = result.total(lambda j: sum(not j.has_range(i) for i in j.matched()))
    found.same("count", content["count"], result.total(lambda j: j.kernel_count()))
    # An instance whose ranks disagree may count as matched or not.
    found.check(matched - mismatched <= content["matched"] <= matched,
                f"matched: is {content['matched']}, not {matched}")
    if not job.content["unfinished"]:
        found.same("partial", content["partial"], partial)
    found.same("by_order", content["by_order"], by_order)
    found.same("jobs", content["job_count"], len(result.jobs))


def check_waits(result):
    content, found = result.content, result.differences
    for job in result.jobs if len(result.jobs) == 1 else ():
        expected = job.waits_ns()
        for row in content["ranks"]:
            found.check(result.is_near(row["wait_ns"], expected[row["rank"]], len(job.present())),
                        f"wait of rank {row['rank']}: is {row['wait_ns']}, not "
                        f"{expected[row['rank']]}")
        total = sum(row["wait_ns"] for row in content["ranks"])
        found.check(abs(content["wait_ns"] - total) <= len(job.instances) * len(job.ranks),
                    f"wait_ns: is {content['wait_ns']}, not {total}")


def bandwidths(instances, transfer_ns):
    """Bytes per second: of the algorithm, and of the bus."""
    first, count = instances[0], len(instances[0].ranks)
    moved = first.bytes * (count if first.operation in ("AllGather", "ReduceScatter") else 1)
    share = {"AllReduce": 2 * (count - 1) / count, "AllGather": (count - 1) / count,
             "ReduceScatter": (count - 1) / count}.get(first.operation, 1)
    return moved / transfer_ns * 1e9, share * moved / transfer_ns * 1e9


def check_groups(result):
    """Only where each instance has a communicator and a size that all ranks agree on."""
    job, found = result.job, result.differences
    if len(result.jobs) > 1 or job.content["mismatches"] or not all(
            map(job.has_range, job.instances)):
        return
    groups = collections.defaultdict(list)
    for instance in job.present():
        groups[instance.communicator, instance.operation, instance.bytes].append(instance)
    rows = {(row["communicator"], row["operation"], row["bytes"]): row
            for row in result.content["groups"]}
    found.same("groups", sorted(rows), sorted(groups))
    for key, instances in groups.items():
        if key in rows:
            check_group(result, key, rows[key], instances)


def check_communicators(result):
    """Each communicator has its ranks, its calls and the waits of its groups."""
    job, found = result.job, result.differences
    if len(result.jobs) > 1 or job.content["mismatches"] or job.content["unfinished"] or not all(
            map(job.has_range, job.instances)) or len(job.matched()) < len(job.instances):
        return
    expected = collections.defaultdict(lambda: [set(), collections.Counter()])
    for instance in job.instances:
        ranks, counts = expected[instance.communicator]
        ranks.update(instance.ranks)
        counts[instance.operation] += 1
    rows = {row["communicator"]: row for row in result.content["communicators"]}
    found.same("communicators", sorted(rows), sorted(expected))
    for key, (ranks, counts) in expected.items():
        row = rows.get(key, {"ranks": "", "operations": {}, "log_count": 0, "wait_ns": 0})
        found.same(f"ranks of {key}", set(ranks_of(row["ranks"])), ranks)
        found.same(f"logs of {key}", row["log_count"], len(ranks))
        found.same(f"calls of {key}", row["operations"], counts)
        found.same(f"wait of {key}", row["wait_ns"], sum(
            group["wait_ns"] for group in result.content["groups"] if group["communicator"] == key))


def ranks_of(text):
    """The ranks in a text such as "0-3, 7"."""
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def check_group(result, key, row, instances):
    found = result.differences
    found.same(f"count of {key}", row["count"], len(instances))
    wait_ns = sum(sum(i.waits_ns()) for i in instances)
    found.check(result.is_near(row["wait_ns"], wait_ns, len(instances) * row["ranks"]),
                f"wait of {key}: is {row['wait_ns']}, not {wait_ns}")
    complete = [i for i in instances if len(i.ranks) == row["ranks"] > 1]
    if key[1] in ("Broadcast", "Reduce") or len(complete) < len(instances):
        return
    transfer_ns = statistics.median(min(i.end_ns) - max(i.start_ns) for i in instances)
    # Either of two in the middle counts. Their jitter is 1 % and some 100 ns.
    found.check(result.is_near(row["transfer_ns"], transfer_ns, 1) or
                abs(row["transfer_ns"] - transfer_ns) < 500 + 0.02 * transfer_ns,
                f"transfer of {key}: is {row['transfer_ns']}, not {transfer_ns}")
    for name, expected in zip(("algorithm", "bus"), bandwidths(instances, row["transfer_ns"])):
        value = row[name + "_bytes_per_second"]
        found.check(abs(value - expected) <= 0.05 * expected,
                    f"{name} bandwidth of {key}: is {value}, not {expected}")


def check_causes(result):
    """The guilty rank causes most, and the path of its largest cause has the expected frame."""
    content, expected, found = result.content, result.job.verdict, result.differences
    caused = sum(row["caused_ns"] for row in content["ranks"])
    found.check(caused <= 1.001 * content["wait_ns"], "more is caused than waited for", caused,
                content["wait_ns"])
    if expected["kind"] != "rank":
        return
    worst = max(content["ranks"], key=lambda row: row["caused_ns"])
    found.same("rank that causes most", worst["rank"], expected["rank"])
    found.check(worst["late_count"] > 0, "it is never late")
    cause = max(content["causes"], key=lambda row: row["wait_ns"])
    path = ";".join(cause["path"])
    found.same("rank of the largest cause", cause["rank"], expected["rank"])
    found.check(not expected["where"] or
                any(frame.split()[0] in path for frame in expected["where"]),
                f"path of the largest cause: is {path}, without {expected['where']}")


def expected_share(result):
    """The part of the job's time that it would have saved without the fault."""
    job = result.job.content
    return 1 - job["end_without_fault_ns"] / job["end_ns"]


def check_verdict(result):
    expected, verdict = result.job.verdict, result.content["verdict"]
    found = result.differences
    scenario = result.job.content["scenario"]
    # Ranks differ by chance. check_share() has the limit.
    if scenario == "launch_bound" and verdict["kind"] == "moving" or \
            scenario == "launch_bound_graphs" and verdict["kind"] in ("moving", "rank"):
        return
    # A fault below the limit for a verdict may have one or not.
    if expected["kind"] == "rank" and verdict["kind"] == "none" and \
            expected_share(result) < NOTABLE_SHARE_MAX:
        return
    found.same("verdict kind", verdict["kind"], expected["kind"])
    found.same("verdict rank", verdict.get("rank"), expected["rank"])
    if expected["kind"] == "link":
        found.check(expected["communicator"] in (None, verdict.get("communicator")),
                    "link of the verdict", verdict.get("communicator"))
    if expected["kind"] == "rank":
        found.check(verdict["where"] in expected["where"] or not expected["where"],
                    f"where: is {verdict['where']!r}, not in {expected['where']}")
        found.same("verdict process", result.ranks.get(verdict["process"]), expected["rank"])
    words = [f"ank {expected['rank']}"] if expected["kind"] == "rank" else []
    if result.job.content["scenario"] == "slow_cpu" and verdict["share"] > 0.1:
        words.append("the CPU launches work too slowly")
    for word in words:
        found.check(word in verdict["text"], "text of the verdict", verdict["text"])


def check_share(result):
    """The stated share of the job's time is what the job would have saved without the fault."""
    content, job = result.content, result.job.content
    expected = expected_share(result)
    absolute = SHARE_ABSOLUTE.get(job["scenario"], SHARE_ABSOLUTE_ELSE)
    difference = content["verdict"]["share"] - expected
    limit = absolute + SHARE_RELATIVE * expected
    # A slow kernel may be in the path that waits make slower in the other ranks.
    low = max(limit, 0.55 * expected) if job["scenario"] == "contended_kernel" else limit
    result.differences.check(-low <= difference <= limit,
                             f"share: is {content['verdict']['share']:.3f}, not {expected:.3f}")


def check_clocks(result):
    """Offsets of the realtime clocks count against the first host, at a stated time."""
    if len(result.jobs) > 1:
        return
    clocks, job = result.content["clocks"], result.job
    found = result.differences
    hosts = {row["host"] for row in job.ranks if row["log"]}
    found.same("hosts", {clock["host"] for clock in clocks}, hosts)
    for clock in clocks[1:]:
        if clock.get("error_ns") is None:
            # The rest of a damaged log may share no collective with the other logs.
            is_cut = any(row["until_ns"] is not None for row in job.ranks
                         if row["host"] == clock["host"])
            found.check(is_cut, f"clock of {clock['host']} has no error")
            continue
        at_ns = job.true_of_realtime_ns(clock["host"], clock["at_realtime_ns"])
        expected = job.realtime_offset_ns(clock["host"], at_ns) - \
            job.realtime_offset_ns(clocks[0]["host"], at_ns)
        result.clocks.append((clock["offset_ns"] - expected, clock["error_ns"]))


def check_mismatches(result):
    expected = {(m["communicator"], m["index"], m["what"]) for m in
                result.job.content["mismatches"]}
    rows = result.content["mismatches"]
    result.differences.same("mismatches", {(m["communicator"], m["index"], m["what"])
                                           for m in rows}, expected)
    for mismatch in result.job.content["mismatches"]:
        for row in rows:
            if (row["communicator"], row["index"]) != (mismatch["communicator"], mismatch["index"]):
                continue
            values = {result.ranks[process]: value
                      for process, value in zip(row["processes"], row["values"])}
            result.differences.same("value of the guilty rank", values.pop(mismatch["rank"], None),
                                    mismatch["values"][1])
            result.differences.same("values of the others", set(values.values()),
                                    {mismatch["values"][0]})


def check_unfinished(result):
    """The collective that the hanging rank never launched, and no others than in the truth."""
    rows = {(row["communicator"], row["index"]):
            (row["operation"], sorted(result.ranks[p] for p in row["present"]),
             sorted(result.ranks[p] for p in row["absent"]))
            for row in result.content["unfinished"]}
    expected = {(row["communicator"], row["index"]):
                (row["operation"], row["present"], row["absent"])
                for row in result.job.content["unfinished"]}
    for key, row in rows.items():
        result.differences.same(f"unfinished {key}", row, expected.get(key))
    for key, row in list(expected.items())[:1]:
        result.differences.same("hang", rows.get(key), row)


def query(args, log, folder, sql):
    """Rows from the database of one log."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".db") as database:
        subprocess.run([args.merge, log, "--quiet", "--sqlite", database.name], check=True)
        with contextlib.closing(sqlite3.connect(database.name)) as connection:
            return connection.execute(sql).fetchall()


def check_hang(result, done, args, folder):
    """The verdict and a finding name a rank that never came, and the line of its last work."""
    content, found = result.content, result.differences
    verdict, first = content["verdict"], content["unfinished"][0]
    found.same("verdict", verdict["kind"], "hang")
    found.same("first finding", json.loads(done.stdout)["findings"]["rows"][0]["rule"], "hang")
    found.check(verdict.get("process") in first["absent"], "rank of the verdict", verdict)
    log, = [row["log"] for row in result.job.ranks if row["rank"] == verdict.get("rank")]
    (path,), = query(args, os.path.join(result.job.folder, log), folder,
                     "SELECT p.text FROM work w JOIN path p ON p.id = w.path_id "
                     "ORDER BY w.start_ns DESC LIMIT 1")
    found.check(verdict["where"].split()[0] in path, "last work", verdict["where"], path)


def covered_ns(spans, since, until):
    """The time from since to until in which at least one span runs."""
    covered = 0
    for start, end in sorted(spans):
        covered += max(0, min(end, until) - max(start, since))
        since = max(since, end)
    return covered


def check_split(result, args, folder):
    """The parts of a rank's time, against the kernels and copies in its log."""
    row = result.content["ranks"][0]
    log, = [rank["log"] for rank in result.job.ranks if rank["rank"] == row["rank"] and rank["log"]][:1]
    work = query(args, os.path.join(result.job.folder, log), folder,
                 "SELECT kind, start_ns, start_ns + duration_ns FROM work")
    collectives, kernels = ([span for kind, *span in work if kind == wanted]
                            for wanted in ("collective", "kernel"))
    since, until = min(collectives)[0], max(end for _, end in collectives)
    busy_ns = covered_ns([span for _, *span in work], since, until)
    # A copy beside a collective hides nothing of it.
    alone_ns = covered_ns(collectives + kernels, since, until) - covered_ns(kernels, since, until)
    expected = {"time_ns": until - since, "idle_ns": until - since - busy_ns,
                "compute_ns": busy_ns - alone_ns,
                "communication_ns": alone_ns - row["exposed_wait_ns"]}
    for name, ns in expected.items():
        result.differences.check(abs(row[name] - ns) <= 0.01 * (until - since) + 1000,
                                 f"{name} of rank {row['rank']}: is {row[name]}, not {ns}")


def check_spread(result, args, folder):
    """The line of the slow kernel differs most. All rows are as the database of all logs has them."""
    rows, found = result.content["spread"], result.differences
    expected = result.job.verdict
    found.check(rows and rows[0]["where"] in expected["where"], "first row of the spread", rows[:1])
    found.check(rows and result.ranks[rows[0]["process"]] == expected["rank"], "its rank", rows[:1])
    sums = collections.defaultdict(list)
    for stack, kernel, ns in query(args, result.job.folder, folder,
                                   "SELECT p.text, w.name, sum(w.duration_ns) FROM work w "
                                   "JOIN path p ON p.id = w.path_id GROUP BY 1, 2, w.process_id"):
        sums[stack, "[GPU_Kernel]" + kernel].append(ns)
    for row in rows:
        *stack, _, kernel = row["path"]  # without the call
        times_ns = sums[";".join(stack), kernel]
        found.same(f"spread of {row['where']}", (row["process_count"], row["max_ns"], row["min_ns"],
                                                 row["mean_ns"]),
                   (len(times_ns), max(times_ns), min(times_ns), sum(times_ns) // len(times_ns)))


def check_end(result, done):
    """The exit status, and the names of damaged logs."""
    damaged = [row["log"] for row in result.job.ranks if row["log"] and row["until_ns"] is not None]
    for log in damaged:
        result.differences.check(log in done.stderr, f"{log} is not named", done.stderr)
    if not result.job.content["unfinished"]:
        result.differences.same("exit status", done.returncode, 1 if damaged else 0)


def check(args, scenario, seed, folder):
    jobs = truth.make(args.maker, scenario, seed, folder)
    done = subprocess.run([args.merge, jobs[0].folder, "--summary", "-"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    content = json.loads(done.stdout).get("collectives")
    if content is None and len({rank for part in jobs[0].present() for rank in part.ranks}) < 2:
        return [], []  # a single rank has nothing to compare
    result = Result(jobs, content)
    check_end(result, done)
    if scenario == "hang_at_start":  # one log has calls, but no work
        result.differences.same("last work of a rank without any",
                                content["verdict"].get("where", ""), "")
        return result.differences, []
    check_counts(result)
    check_waits(result)
    check_clocks(result)
    check_groups(result)
    check_communicators(result)
    check_mismatches(result)
    check_unfinished(result)
    if scenario in ("none", "slow_loader", "graphs"):
        check_split(result, args, folder)
    if scenario == "slow_kernel":
        check_spread(result, args, folder)
    if scenario in ("hang", "hang_at_start") and content["unfinished"]:
        check_hang(result, done, args, folder)
    if scenario in (*BLAME, "no_payload", "graphs"):
        check_verdict(result)
        check_causes(result)
        check_share(result)
    return result.differences, result.clocks


def checked(args, scenario, seed, folder):
    """Any failure is a difference, so that the others are still reported."""
    try:
        return scenario, seed, *check(args, scenario, seed, folder)
    except (KeyError, TypeError, ValueError, subprocess.CalledProcessError) as error:
        return scenario, seed, [f"{type(error).__name__}: {error}"], []


def report(results, seconds):
    """Prints what differs. Returns whether all is as expected."""
    bad = collections.Counter(scenario for scenario, _, differences, _ in results if differences)
    for scenario, seed, differences, _ in results:
        for difference in differences[:4]:
            print(f"{scenario} {seed}: {difference}")
    clocks = [clock for *_, found in results for clock in found]
    within = sum(abs(difference) <= error for difference, error in clocks)
    print(f"{len(results)} jobs in {seconds:.1f} s, {sum(bad.values())} with differences "
          f"{dict(bad)}")
    if not clocks:
        return not bad
    median_ns = statistics.median(error for _, error in clocks)
    print(f"clocks: {within} of {len(clocks)} within the stated error, median {median_ns:.0f} ns")
    return not bad and within >= CLOCKS_WITHIN * len(clocks) and median_ns <= MEDIAN_ERROR_NS_MAX


def main():
    parser = argparse.ArgumentParser()
    for name in ("maker", "merge"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--scenarios", nargs="+", default=[*BLAME, *BAD_INPUT])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    keys = [(scenario, args.first_seed + seed) for seed in range(args.seeds)
            for scenario in args.scenarios]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda key: checked(args, *key, folder), keys))
    return not report(results, time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main())
