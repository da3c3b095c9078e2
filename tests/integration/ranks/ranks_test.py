#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the analysis of collectives with the truth of made-up jobs.

Each job is made from a scenario and a seed, merged to a summary, and compared. A failure names the
scenario and the seed: "make_ranks SCENARIO SEED FOLDER" makes the same logs again.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent import futures

import truth

BLAME = ("none", "slow_loader", "slow_kernel", "gc_pause", "slow_link", "moving")
BAD_INPUT = ("mismatch_operation", "mismatch_bytes", "hang", "missing", "duplicated", "damaged", "two_jobs",
             "late_start", "no_payload", "graphs")
CLOCKS_WITHIN = 0.99       # share of the clocks that are within their stated error
MEDIAN_ERROR_NS_MAX = 50_000
ROUNDING_NS = 4            # of an instance, without clock errors


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

    def error_ns(self):
        """The largest stated error of a time difference between two hosts."""
        errors = sorted(clock["error_ns"] or 0 for clock in self.content["clocks"])
        return sum(errors[-2:])


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


def check_waits(result):
    content, found = result.content, result.differences
    for job in result.jobs if len(result.jobs) == 1 else ():
        expected = job.waits_ns()
        limit = (result.error_ns() + ROUNDING_NS) * len(job.matched())
        for row in content["ranks"]:
            found.check(abs(row["wait_ns"] - expected[row["rank"]]) <= limit,
                        f"wait of rank {row['rank']}: is {row['wait_ns']}, not "
                        f"{expected[row['rank']]} +- {limit}")
        found.same("wait_ns", content["wait_ns"], sum(row["wait_ns"] for row in content["ranks"]))


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
    for instance in job.matched():
        groups[instance.communicator, instance.operation, instance.bytes].append(instance)
    rows = {(row["communicator"], row["operation"], row["bytes"]): row
            for row in result.content["groups"]}
    found.same("groups", sorted(rows), sorted(groups))
    error_ns = result.error_ns() + ROUNDING_NS
    for key, instances in groups.items():
        row = rows.get(key)
        if not row:
            continue
        found.same(f"count of {key}", row["count"], len(instances))
        found.same(f"ranks of {key}", row["ranks"], len(instances[0].ranks))
        wait_ns = sum(sum(i.waits_ns()) for i in instances)
        found.check(abs(row["wait_ns"] - wait_ns) <= error_ns * len(instances) * row["ranks"],
                    f"wait of {key}: is {row['wait_ns']}, not {wait_ns}")
        transfer_ns = statistics.median(min(i.end_ns) - max(i.start_ns) for i in instances)
        if key[1] in ("Broadcast", "Reduce"):
            continue
        found.check(abs(row["transfer_ns"] - transfer_ns) <= error_ns,
                    f"transfer of {key}: is {row['transfer_ns']}, not {transfer_ns}")
        for name, expected in zip(("algorithm", "bus"), bandwidths(instances, row["transfer_ns"])):
            value = row[name + "_bytes_per_second"]
            found.check(abs(value - expected) <= 0.05 * expected,
                        f"{name} bandwidth of {key}: is {value}, not {expected}")


def check_causes(result):
    """The guilty rank causes most, and the path of its largest cause has the expected frame."""
    content, expected, found = result.content, result.job.verdict, result.differences
    caused = sum(row["caused_ns"] for row in content["ranks"])
    found.check(caused <= content["wait_ns"], "more is caused than waited for", caused)
    if expected["kind"] != "rank":
        return
    worst = max(content["ranks"], key=lambda row: row["caused_ns"])
    found.same("rank that causes most", worst["rank"], expected["rank"])
    found.check(worst["late_count"] > 0, "it is never late")
    cause = max(content["causes"], key=lambda row: row["wait_ns"])
    path = ";".join(cause["path"])
    found.same("rank of the largest cause", cause["rank"], expected["rank"])
    found.check(any(frame.split()[0] in path for frame in expected["where"]),
                f"path of the largest cause: is {path}, without {expected['where']}")


def check_verdict(result):
    expected, verdict = result.job.verdict, result.content["verdict"]
    found = result.differences
    found.same("verdict kind", verdict["kind"], expected["kind"])
    found.same("verdict rank", verdict["rank"], expected["rank"])
    if expected["kind"] == "rank":
        found.check(verdict["where"] in expected["where"],
                    f"where: is {verdict['where']!r}, not in {expected['where']}")
        found.same("verdict process", result.ranks.get(verdict["process"]), expected["rank"])
    for word in {"rank": (f"ank {expected['rank']}",), "none": ()}.get(expected["kind"], ()):
        found.check(word in verdict["text"], "text of the verdict", verdict["text"])


def check_clocks(result):
    """Offsets count against the first host, at the start of the job."""
    if len(result.jobs) > 1:
        return
    clocks, job = result.content["clocks"], result.job
    found = result.differences
    hosts = {row["host"] for row in job.ranks if row["log"]}
    found.same("hosts", {clock["host"] for clock in clocks}, hosts)
    for clock in clocks[1:]:
        if clock["error_ns"] is None:
            found.append(f"clock of {clock['host']} has no error")
            continue
        expected = job.realtime_offset_ns(clock["host"], 0) - \
            job.realtime_offset_ns(clocks[0]["host"], 0)
        result.clocks.append((clock["offset_ns"] - expected, clock["error_ns"]))


def check_mismatches(result):
    expected = {(m["communicator"], m["index"], m["what"]) for m in
                result.job.content["mismatches"]}
    rows = result.content["mismatches"]
    result.differences.same("mismatches", {(m["communicator"], m["index"], m["what"])
                                           for m in rows}, expected)
    for mismatch in result.job.content["mismatches"]:
        for row in rows:
            if (row["communicator"], row["index"]) == (mismatch["communicator"],
                                                       mismatch["index"]):
                ranks = [result.ranks[process] for process in row["processes"]]
                result.differences.check(mismatch["rank"] in ranks, "mismatch of", ranks)
                result.differences.same("values", set(map(str, row["values"])),
                                        set(map(str, mismatch["values"])))


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


def check(args, scenario, seed, folder):
    jobs = truth.make(args.maker, scenario, seed, folder)
    done = subprocess.run([args.merge, jobs[0].folder, "--summary", "-"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    result = Result(jobs, json.loads(done.stdout)["collectives"])
    damaged = [row["log"] for row in result.job.ranks if row["log"] and row["until_ns"] is not None]
    for log in damaged:
        result.differences.check(log in done.stderr, f"{log} is not named", done.stderr)
    if scenario != "hang":
        result.differences.same("exit status", done.returncode, 1 if damaged else 0)
    check_counts(result)
    check_waits(result)
    check_clocks(result)
    check_groups(result)
    check_mismatches(result)
    check_unfinished(result)
    if scenario in (*BLAME, "no_payload", "graphs"):
        check_verdict(result)
        check_causes(result)
    return result


def checked(args, scenario, seed, folder):
    """Any failure is a difference, so that the others are still reported."""
    try:
        result = check(args, scenario, seed, folder)
        return scenario, seed, list(result.differences), result.clocks
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
