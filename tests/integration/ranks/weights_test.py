#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the weights collective-wait and collective-cause on made-up jobs: their sums are those of
the comparison of ranks, below each root of --by, and the largest cause is that of the verdict.

tests/integration/exports compares the other outputs with the folded stacks.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import unittest

import truth

ARGS = None
WAIT, CAUSE = "collective-wait", "collective-cause"
FIGURES = {WAIT: "exposed_wait_ns", CAUSE: "cost_ns"}  # of the summary, in all and by rank
UNKNOWN = "[no path takes longer than in other ranks]"


def merge(*arguments):
    return subprocess.run([ARGS.merge, "-q", *arguments], capture_output=True, text=True, check=False)


class Job:
    """A job, and what its summary says."""

    def __init__(self, scenario, seed, folder):
        self.truth = truth.make(ARGS.maker, scenario, seed, folder)[0]
        self.folder = str(self.truth.folder)
        self.summary = json.loads(merge(self.folder, "--summary", "-", "--top", "1000000").stdout)
        self.collectives = self.summary["collectives"]

    def folded(self, weight, *options):
        done = merge(self.folder, "--folded", "-", "--weight", weight, *options)
        assert done.returncode == 0, done.stderr
        lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
        return {tuple(path.split(";")): int(value) for path, value in lines}


def on_jobs(*scenarios):
    """Runs a test with jobs of each scenario."""
    def decorate(check):
        def test(self):
            for scenario in scenarios:
                for seed in range(ARGS.seeds):
                    with self.subTest(scenario=scenario, seed=seed):
                        check(self, Job(scenario, seed, self.folder))
        return test
    return decorate


class WeightsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    @on_jobs("slow_loader", "moving", "none")
    def test_sums(self, job):
        for weight, figure in FIGURES.items():
            paths = job.folded(weight)
            self.assertEqual(sum(paths.values()), job.collectives[figure])
            self.assertEqual({tuple(job.summary["paths"][row["path"]]): row["value"]
                              for row in job.summary["weights"][weight]["paths"]["rows"]}, paths)

    @on_jobs("slow_kernel")
    def test_where_ranks_wait(self, job):
        for path in job.folded(WAIT):
            self.assertIn("nccl", path[-1])

    @on_jobs("slow_loader", "slow_kernel")
    def test_cause_of_the_verdict(self, job):
        paths = job.folded(CAUSE)
        largest = ";".join(max(paths, key=paths.get))
        self.assertTrue(any(frame.split()[0] in largest for frame in job.truth.verdict["where"]),
                        f"{largest} is not of {job.truth.verdict['where']}")

    @on_jobs("slow_loader", "moving")
    def test_processes(self, job):
        """Each process has its own waits and costs, and without the roots all is the same."""
        for weight, figure in FIGURES.items():
            by_process, merged = collections.Counter(), collections.Counter()
            for path, value in job.folded(weight, "--by", "process").items():
                by_process[path[0]] += value
                merged[path[1:]] += value
            self.assertEqual(by_process, +collections.Counter(
                {row["process"]: row[figure] for row in job.collectives["ranks"]}))
            self.assertEqual(merged, job.folded(weight))

    @on_jobs("slow_loader")
    def test_other_roots(self, job):
        processes = {row["process"] for row in job.collectives["ranks"]}
        for by in ("device", "stream", "thread"):
            for weight in FIGURES:
                split = collections.Counter()
                for path, value in job.folded(weight, "--by", by).items():
                    self.assertIn(path[1], processes)
                    self.assertNotIn("unknown", path[0])
                    split[path[2:]] += value
                self.assertEqual(split, job.folded(weight))

    @on_jobs("moving")
    def test_unexplained(self, job):
        """What no path explains is a path of its own."""
        unexplained = sum(row["cost_ns"] for row in job.collectives["causes"] if not row["path"])
        self.assertGreater(unexplained, 0)
        self.assertEqual(job.folded(CAUSE)[UNKNOWN,], unexplained)

    @on_jobs("slow_loader")
    def test_in_parallel(self, job):
        for weight in FIGURES:
            self.assertEqual(job.folded(weight, "--jobs", "1"), job.folded(weight, "--jobs", "4"))

    def test_refused(self):
        job = Job("slow_loader", 0, self.folder)
        log = next(row["log"] for row in job.truth.ranks if row["log"])
        for arguments, why in (((f"{job.folder}/{log}",), "give the logs of several"),
                               ((job.folder, "--from", "1ms"), "not a part of it"),
                               ((job.folder, "--filter", "main"), "not a part of it")):
            done = merge(*arguments, "--folded", "-", "--weight", CAUSE)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"cannot use --weight {CAUSE}: it compares ranks", done.stderr)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--maker", required=True)
    parser.add_argument("--merge", required=True)
    parser.add_argument("--seeds", type=int, default=2)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
