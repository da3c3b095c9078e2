#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA's cuda-samples bare and under xtrace, and compares status and output.

PART is an archive of tests/gpu/cuda_samples_build.py, or the folder "tree" that it made. Each
sample runs three times bare, once with the default options and once with --cpu. compare_runs.py
has the rules of the comparison. Samples whose features break most easily come first: graphs,
streams, processes that share memory, dynamic parallelism, code compiled at run time, cooperative
groups. Samples that cannot run are listed with the reason.

Exit status: 0 no differences, 1 differences, 2 usage.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile

import compare_runs

MODES = {"default": [], "cpu": ["--cpu"]}
FIRST = ("Conditional", "[gG]raph", "[sS]tream", "IPC|Ipc", "^cdp|device-side|dsl", "JIT|jit|Jit",
         "nvrtc", "CG|Cooperative|AWBarrier", "MMAP|memMap|threadMigration", "Callback|callback",
         "Drv", "Multi|HyperQ|OpenMP|UM|UnifiedMemory|managed|systemWide", "Assert|Printf|newdelete",
         "cuSolver|CUBLAS|CUFFT|Cholesky|conjugate", "ptx|PTX")
# These use the same name for shared memory, or a socket in the same place.
SHARED = re.compile("IPC|Ipc")
# These use so much memory or time on the GPU that only one of them may run.
ALONE = re.compile("p2pBandwidthLatencyTest|UnifiedMemoryPerf|UnifiedMemoryStreams")
NEEDED_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")


def importance(name):
    for place, pattern in enumerate(FIRST):
        if re.search(pattern, name):
            return place
    return len(FIRST)


def unpack(parts, folder):
    """Returns the root of the samples."""
    for part in parts:
        if os.path.isdir(part):
            return os.path.abspath(part)
        with tarfile.open(part) as archive:
            archive.extractall(folder, filter="fully_trusted")
    return folder


def groups_of(options, root, index):
    """The programs to run, by folder and in order of importance, and reasons for the others."""
    gpus = options.gpus if options.gpus is not None else (len(compare_runs.gpu_names()) or 1)
    groups, reasons = {}, {}
    # The libraries of the build machine are only for programs that need them.
    environments = {needs: dict(os.environ, LD_LIBRARY_PATH=compare_runs.library_path(
        *([os.path.join(root, "lib")] if needs else []))) for needs in (False, True)}
    for run in index["runs"]:
        folder = os.path.join(root, run["folder"])
        if not os.path.isdir(folder) or not re.search(options.only, run["name"]):
            continue
        if run["gpus"] > gpus:
            reasons[run["name"]] = "needs %d GPUs" % run["gpus"]
            continue
        name = " ".join([run["name"], *run["arguments"]])
        lock = "shared" if SHARED.search(run["name"]) else (
            "alone" if ALONE.search(run["name"]) else None)
        groups.setdefault(run["folder"], []).append(compare_runs.Program(
            name, [os.path.join(folder, run["name"]), *run["arguments"]], folder,
            environments[run["needs_lib"]], options.limit, lock))
    ordered = sorted(groups.items(), key=lambda group: (importance(group[0].split("/")[-1]),
                                                        group[0]))
    return [group for _, group in ordered], reasons


def missing_library(row):
    found = NEEDED_LIBRARY.search(" ".join(row.get("tail", [])))
    return "needs %s" % found.group(1) if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PART", nargs="+")
    parser.add_argument("--xtrace", required=True, help="the command")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--jobs", type=int, default=8, help="samples at once (8)")
    parser.add_argument("--limit", type=float, default=30, help="seconds of one bare run (30)")
    parser.add_argument("--total", type=float, default=440, help="seconds of everything (440)")
    parser.add_argument("--gpus", type=int, help="number of GPUs (those of the driver)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only samples with this name")
    parser.add_argument("--keep", metavar="DIR", help="keep the traces in DIR")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="samples")
    comparison = compare_runs.Comparison(
        os.path.abspath(options.xtrace), MODES, options.total, options.jobs,
        lambda text: print(text, flush=True), options.keep)
    root = unpack(options.parts, folder)
    with open(os.path.join(root, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    groups, reasons = groups_of(options, root, index)
    print("%d programs in %d folders, %d at once" % (
        sum(map(len, groups)), len(groups), options.jobs), flush=True)
    rows = comparison.run(groups)
    shutil.rmtree(folder, ignore_errors=True)
    for row in rows:
        reason = missing_library(row)
        if reason and row["verdict"] == "same, fails bare":
            row["verdict"] = reason
    reasons.update(index["not_built"])
    for name, reason in sorted(reasons.items()):
        print("not run: %s: %s" % (name, reason))
    return compare_runs.summarise(rows, MODES, {"not_run": reasons}, print, options.output)


if __name__ == "__main__":
    sys.exit(main())
