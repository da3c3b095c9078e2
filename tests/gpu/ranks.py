#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests who is late in distributed training with PyTorch, on real GPUs.

    tests/gpu/ranks.py BIN [--ranks N] [--kind KIND]... [--slow WAY]... [--steps N] [--clocks]
                       [--cost ROUNDS] [--backend nccl|mpi] [-o RESULTS] [-k DIR]

BIN is the folder of xtrace.

Each rank has a GPU of its own. With fewer GPUs, ranks share them, if NCCL allows it. With MPI,
gradients are reduced on the host and CPU samples tell who waits: the line of a slow kernel is not
known, and pauses in half of the steps may be below the limit.

The last rank is made late in three ways: its loader sleeps, one of its kernels takes longer, or it
pauses at random. ranks_work.py has the kinds of training. Checks:
- The verdict names the rank and the line, or no rank if none is late.
- The stated cost is how much longer the steps take than without a late rank, if that ran before.
- The transfer times of all-reduces are what CUDA events measure around them.
- If the clocks of two ranks count as those of two hosts, their offset, which is 0 here, is within
  the stated error.
- With --cost: steps of all ranks with and without recording, in alternating jobs.

Prints the results. Exit status: 0 success, 1 a check failed, 77 no PyTorch, NCCL or GPU, or NCCL
refuses several ranks on one GPU.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

from gpu_results import SKIPPED, finish

KINDS = ("ddp", "fsdp", "tensor", "graph")
# By backend: the kinds that it is tested with.
BACKEND_KINDS = {"nccl": KINDS, "mpi": ("ddp",)}
# The functions that may be to blame. After a pause, the first work of the step comes late.
EXPECTED = {"none": None, "loader": ("load_batch",), "kernel": ("extra_work",),
            "pause": ("train_step", "Eager.step", "Replayed.step", "Block.forward")}
WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks_work.py")
# A cost may differ by this part of itself, and of the time of all steps.
COST_RELATIVE, COST_ABSOLUTE = 0.25, 0.02
TRANSFER_RATIO = (0.8, 1.1)  # by events, the gap between two kernels counts, too
# Makes a rank look as if it ran on a second host, with a kernel that was booted separately.
OTHER_HOST = ["unshare", "--mount", "--uts", "sh", "-c",
              'echo other >/proc/sys/kernel/hostname && mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"']
PORT = 29511


class Job:
    """Runs one process per rank. `data`: the folder for the traces, or None for no tracer."""

    def __init__(self, args, kind, slow, data=None, prefix=()):
        self.logs = [os.path.join(data, str(rank)) for rank in range(args.ranks)] if data else []
        if args.backend == "mpi":
            self.run_mpi(args, kind, slow, data)
            return
        processes = []
        for rank in range(args.ranks):
            environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                               WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(PORT), NCCL_MULTI_RANK_GPU_ENABLE="1",
                               NCCL_NVLS_ENABLE="0")
            command = self.work(args, kind, slow)
            if data:
                os.makedirs(self.logs[rank])
                command = [args.xtrace, "record", "-o", self.logs[rank], "--", *command]
            if rank == args.ranks - 1:
                command = [*prefix, *command]
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE, text=True))
        self.finish(args, processes)

    def work(self, args, kind, slow):
        return [sys.executable, WORK, "--kind", kind, "--slow", slow, "--steps", str(args.steps),
                "--backend", args.backend]

    def run_mpi(self, args, kind, slow, data):
        command = ["mpirun", "--oversubscribe", "-n", str(args.ranks), *self.work(args, kind, slow)]
        if data:
            self.logs = [os.path.join(data, "all")]
            os.makedirs(self.logs[0])
            command = [args.xtrace, "record", "--cpu", "-o", self.logs[0], "--", *command]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.finish(args, [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)])

    def finish(self, args, processes):
        outputs = [process.communicate(timeout=240) for process in processes]
        self.statuses = [process.returncode for process in processes]
        self.errors = "".join(error for _, error in outputs)
        if SKIPPED in self.statuses or "Duplicate GPU" in self.errors:
            print("cannot run %d ranks: no PyTorch, %s or GPU for each" % (args.ranks, args.backend))
            sys.exit(SKIPPED)
        self.said = [] if any(self.statuses) else [
            json.loads(line) for out, _ in outputs for line in out.splitlines()
            if line.startswith("{")]


class Checks:
    def __init__(self, args):
        self.args, self.results, self.problems = args, {}, []
        self.late_ms = {}  # by kind, of the job without a late rank

    def expect(self, condition, name, text):
        if not condition:
            self.problems.append("%s: %s" % (name, text))

    def run_job(self, name, *values, **named):
        job = Job(self.args, *values, **named)
        if not job.said:
            self.problems.append("%s: exit statuses %s" % (name, job.statuses))
            print(name, job.errors[-3000:])
        return job if job.said else None

    def collectives(self, job):
        text = subprocess.run([self.args.merge, *job.logs, "--quiet", "--summary", "-"], check=True,
                              capture_output=True, text=True).stdout
        return json.loads(text).get("mpi" if self.args.backend == "mpi" else "collectives")

    def verdict(self, kind, slow, data):
        name = "%s %s" % (kind, slow)
        job = self.run_job(name, kind, slow, os.path.join(data, kind, slow))
        found = job and self.collectives(job)
        if not found:
            self.problems.append("%s: no collectives" % name)
            return
        if self.args.backend == "mpi":
            self.mpi_verdict(name, slow, found)
            return
        verdict, expected = found["verdict"], EXPECTED[slow]
        self.expect(found["matched"] and not found["partial"] and not found["mismatches"], name,
                    "%d matched, %d partial, %d differ" % (found["matched"], found["partial"],
                                                           len(found["mismatches"])))
        if expected:
            self.expect(verdict["kind"] == "rank" and verdict.get("rank") == self.args.ranks - 1,
                        name, "not the late rank: " + verdict["text"])
            self.expect(verdict.get("where", "").startswith(expected), name,
                        "not its line: " + verdict["text"])
        else:
            self.expect(verdict["kind"] == "none" or verdict["share"] < 0.1, name,
                        "nobody is late: " + verdict["text"])
        late_ms = statistics.mean(said["late_ms"] for said in job.said)
        if slow == "none":
            self.late_ms[kind] = late_ms
        self.results[name] = {
            "cost_ms": self.costs(name, found, late_ms, self.late_ms.get(kind)),
            "verdict": verdict["text"], "collectives": found["count"], "matched": found["matched"],
            "by_order": found["by_order"], "step_ms": [said["step_ms"] for said in job.said],
            "all_reduce_us": self.transfers(name, found, job.said)}

    def mpi_verdict(self, name, slow, found):
        verdict = found["verdict"]
        self.results[name] = {"verdict": verdict["text"], "ranks": found["ranks"]}
        last = "rank %d" % (self.args.ranks - 1)
        if slow == "none":
            self.expect(verdict["kind"] == "unknown", name, "nobody is late: " + verdict["text"])
        elif slow != "pause" or verdict["kind"] == "rank":
            self.expect(verdict["kind"] == "rank" and last in verdict["process"], name,
                        "not the late rank: " + verdict["text"])
        if slow == "loader":
            self.expect(verdict.get("where", "").startswith(EXPECTED[slow]), name,
                        "not its line: " + verdict["text"])

    def costs(self, name, found, late_ms, without_ms):
        """What late ranks cost: as stated, and by the program's own clock."""
        stated_ms = sum(rank["cost_ns"] for rank in found["ranks"]) / 1e6 / (self.args.ranks - 1)
        if without_ms is None:
            print("%s: the cost is not checked, as no job without a late rank ran before" % name)
            return [round(stated_ms), None]
        extra_ms = max(0, late_ms - without_ms)
        self.expect(abs(stated_ms - extra_ms) <= COST_RELATIVE * extra_ms + COST_ABSOLUTE * late_ms,
                    name, "late ranks cost %.0f ms, not %.0f ms" % (stated_ms, extra_ms))
        return [round(stated_ms), round(extra_ms)]

    def transfers(self, name, found, said):
        """By bytes: microseconds by CUDA events, and by xtrace."""
        rows = {}
        for size in said[0]["all_reduce_us"]:
            events_us = statistics.mean(answer["all_reduce_us"][size] for answer in said)
            groups = [group for group in found["groups"]
                      if group["bytes"] == int(size) and group["operation"] == "AllReduce"]
            self.expect(len(groups) == 1, name, "%d groups of %s bytes" % (len(groups), size))
            for group in groups:
                transfer_us = group["transfer_ns"] / 1e3
                rows[size] = [round(events_us, 1), round(transfer_us, 1)]
                low, high = TRANSFER_RATIO
                self.expect(low <= transfer_us / events_us <= high, name,
                            "an all-reduce of %s bytes takes %.1f us, by events %.1f us"
                            % (size, transfer_us, events_us))
        return rows

    def clocks(self, data):
        boot_id = os.path.join(data, "boot_id")
        with open(boot_id, "w", encoding="ascii") as file:
            file.write("01234567-89ab-cdef-0123-456789abcdef\n")
        job = self.run_job("clocks", "ddp", "none", os.path.join(data, "clocks"),
                           prefix=[*OTHER_HOST, boot_id])
        clocks = job and self.collectives(job)["clocks"]
        if not clocks:
            return
        self.results["clocks"] = clocks
        self.expect(len(clocks) == 2 and all(clock["is_aligned"] for clock in clocks), "clocks",
                    "%s" % clocks)
        for clock in clocks:
            self.expect(abs(clock["offset_ns"]) <= clock["error_ns"], "clocks",
                        "the offset is 0, not %d ns within %d ns" % (clock["offset_ns"],
                                                                     clock["error_ns"]))

    def cost(self, kind, rounds, data):
        """Steps with recording, relative to those without, in alternating jobs."""
        ratios = []
        for number in range(rounds):
            times = {}
            for is_traced in (False, True) if number % 2 else (True, False):
                folder = os.path.join(data, "cost", kind, str(number)) if is_traced else None
                job = self.run_job("cost", kind, "none", folder)
                times[is_traced] = job and max(said["step_ms"] for said in job.said)
            if all(times.values()):
                ratios.append(times[True] / times[False])
                print("cost %s: %.3f ms bare, %.3f ms recorded" % (kind, times[False], times[True]),
                      flush=True)
        logs = [math.log(ratio) for ratio in ratios]
        if len(logs) > 1:
            self.results["cost " + kind] = {
                "rounds": len(logs), "percent": round(100 * math.expm1(statistics.mean(logs)), 2),
                "standard_error": round(100 * statistics.stdev(logs) / math.sqrt(len(logs)), 2)}


def run_all(args, data):
    checks = Checks(args)
    for kind in args.kind or BACKEND_KINDS[args.backend]:
        for slow in args.slow or EXPECTED:
            checks.verdict(kind, slow, data)
            name = "%s %s" % (kind, slow)
            print(name, json.dumps(checks.results.get(name)), flush=True)
        if args.cost:
            checks.cost(kind, args.cost, data)
            print(json.dumps(checks.results.get("cost " + kind)), flush=True)
    if args.clocks:
        checks.clocks(data)
        print("clocks", json.dumps(checks.results.get("clocks")), flush=True)
    return checks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--slow", action="append", choices=EXPECTED)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--backend", choices=BACKEND_KINDS, default="nccl")
    parser.add_argument("--cost", type=int, metavar="ROUNDS",
                        help="also compare steps with and without recording")
    parser.add_argument("--clocks", action="store_true",
                        help="also align the clocks of ranks that seem to be on two hosts (as root)")
    parser.add_argument("-o", "--output", help="also write the results to this file (JSON)")
    parser.add_argument("-k", "--keep", metavar="DIR", help="keep the logs in this new folder")
    args = parser.parse_args()
    folder = args.bin if os.path.exists(os.path.join(args.bin, "xtrace")) \
        else os.path.join(args.bin, "bin")
    args.xtrace = os.path.join(folder, "xtrace")
    args.merge = os.path.join(folder, "xtrace-merge")
    with tempfile.TemporaryDirectory(prefix="xtrace-ranks.") as data:
        if args.keep:
            os.makedirs(args.keep)
        checks = run_all(args, args.keep or data)
    finish(args.output, checks.results, checks.problems)


if __name__ == "__main__":
    main()
