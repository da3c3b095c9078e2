#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random programs on the simulated GPU and checks the output of the merge.

Every path and every weight must match what the program did, to the nanosecond. A failure prints
the seed. To keep its files, run --first SEED --seeds 1 --keep DIR.
"""

import argparse
import functools
import os
import random
import subprocess
import sys
import tempfile

import evidence
import model
import parts
import steps
import summary
import timeline

# Chosen by seed.
LEVELS = ("all", "all", "work", "launch")
KERNEL_NS = ("500:30000", "1:2000", "100:200000")
FOLLOWS_PROFILER = (2, 7)  # in 2 of 10 seeds, record between cuProfilerStart() and cuProfilerStop()
FAULTS = {3: "zero_times:7", 6: "reversed_times:5", 9: "drop_records:6"}  # in 3 of 10 seeds


def mode_of(seed):
    """After a pause, a program that ran graphs recorded as a whole is not recorded again. If a
    graph has copy nodes, copies between devices are not recorded.
    """
    follows_profiler = seed % 10 in FOLLOWS_PROFILER
    return evidence.Mode(device_count=1 + seed % 2, follows_profiler=follows_profiler,
                         forces_nodes=follows_profiler or seed // 4 % 2 == 0,
                         reuses_ids=seed % 4 == 1,
                         without_graph_copies=follows_profiler or seed % 3 == 0)


def run(command, allowed=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8",
                          errors="replace", **options)
    if done.returncode not in allowed:
        raise evidence.Mismatch(f"{command} exited {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def record(args, seed, level, folder):
    """Runs the program, injected in one of the two ways. Returns the path of the log."""
    data, mode = os.path.join(folder, "data"), mode_of(seed)
    environment = dict(
        os.environ, LD_LIBRARY_PATH=args.simgpu, XTRACE_DATA=data, XTRACE_API=level,
        XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"), XTRACE_AUDIT="10",
        XTRACE_SIMGPU_SEED=str(seed), XTRACE_SIMGPU_DEVICES=str(mode.device_count),
        XTRACE_SIMGPU_TRUTH=os.path.join(folder, "truth"),
        XTRACE_SIMGPU_KERNEL_NS=KERNEL_NS[seed % 3], XTRACE_SIMGPU_FAULT=FAULTS.get(seed % 10, ""))
    if seed % 5 == 0:
        environment["LD_PRELOAD"] = args.inject
    else:
        environment["CUDA_INJECTION64_PATH"] = environment["NVTX_INJECTION64_PATH"] = args.inject
    if mode.follows_profiler:
        environment["XTRACE_CAPTURE_RANGE"] = "cudaProfilerApi"
    if mode.forces_nodes:
        environment["XTRACE_GRAPH_DETAIL"] = "node"
    environment["XTRACE_SIMGPU_REUSE_IDS"] = str(int(mode.reuses_ids))
    # Nested graphs are identified by id, so do not nest if ids recur.
    words = ["flat"] * mode.reuses_ids + ["no-graph-copies"] * mode.without_graph_copies
    run([args.program, str(seed), os.path.join(folder, "ledger"), *words], env=environment)
    logs = os.listdir(data)
    evidence.expect(len(logs) == 1 and logs[0].endswith(".xtr"), "one log is wanted:", logs)
    return os.path.join(data, logs[0])


def read_folded(text):
    lines = text.splitlines()
    evidence.expect(lines == sorted(lines, key=str.encode), "lines are not sorted")
    weights = {}
    for line in lines:
        path, weight = line.rsplit(" ", 1)
        frames = [frame for frame in path.split(";") if not evidence.is_sanitizers(frame)]
        weights[";".join(frames)] = int(weight)
    return weights


def in_us(weights):
    """Rounds ns to us, and carries the remainder to the next line."""
    carried, rounded = 0, {}
    for line, weight in weights.items():
        before, carried = carried, carried + weight
        rounded[line] = carried // 1000 - before // 1000
    return rounded


def check_folded(args, log, reference, settings, unit="ns"):
    command = [args.merge, log, "--quiet", "--folded", "-"]
    command += ["--unit", unit] if unit != "ns" else []
    for option, value in settings._asdict().items():
        if value != model.Settings._field_defaults[option]:
            command += ["--" + option.replace("_", "-"), value]
    # 1: unmatched pops, or launches without kernels because all were captured
    found = read_folded(run(command, allowed=(0, 1)).stdout)
    wanted = reference.folded(settings)
    if unit == "us":
        wanted = in_us({line: wanted.get(line, 0) for line in found})
    evidence.expect_same(found, wanted, " ".join(command[4:]))


ROOTS = ("device", "stream", "thread", "process", "none")


def settings_to_check(seed):
    """All weights with default settings, all roots of GPU time, and a sample of all other
    combinations."""
    for weight in model.Model.WEIGHTS:
        yield model.Settings(weight)
    for graph_stacks in ("replay", "capture"):
        yield model.Settings(graph_stacks=graph_stacks)
    for by in ROOTS:
        yield model.Settings(by=by)
    for nvtx in ("roots", "off"):
        yield model.Settings(nvtx=nvtx)
    chance = random.Random(seed)
    for _ in range(6):
        settings = model.Settings(chance.choice(list(model.Model.WEIGHTS)), chance.choice(ROOTS),
                                  chance.choice(("both", "replay", "capture")),
                                  chance.choice(("frames", "roots", "off")))
        if not (settings.by == "device" and settings.weight in model.WITHOUT_DEVICE or
                settings.by == "stream" and settings.weight in model.WITHOUT_STREAM):
            yield settings


def check_seed(args, seed, folder):
    level = LEVELS[seed % len(LEVELS)]
    log_path = record(args, seed, level, folder)
    seen = evidence.Evidence(os.path.join(folder, "ledger"), os.path.join(folder, "truth"), level,
                             mode_of(seed))
    evidence.check_log(seen, evidence.Log(args.dump, log_path),
                       seed % 10 in FAULTS)
    pid = log_path.rsplit(".", 2)[1]
    reference = model.Model(seen, f"{os.path.basename(args.program)} ({pid})")
    problems = []
    checks = [functools.partial(check_folded, args, log_path, reference, settings)
              for settings in settings_to_check(seed)]
    checks.append(functools.partial(check_folded, args, log_path, reference, model.Settings(),
                                    "us"))
    text = run([args.merge, log_path, "--quiet", "--text", "-", "--all", "--top", "1000000"],
               allowed=(0, 1)).stdout
    checks += summary.Checker(seen, reference, text).all()
    text = run([args.merge, log_path, "--quiet", "--chrome", "-"], allowed=(0, 1)).stdout
    checks += timeline.Checker(seen, reference, text).all()
    checks += parts.Checker(
        seen, reference, log_path, seed,
        lambda *options: read_folded(run([args.merge, log_path, "--quiet", "--folded", "-",
                                          *options], allowed=(0, 1)).stdout),
        lambda: run([args.merge, log_path, "--quiet", "--summary", "-", "--top", "1000000"],
                    allowed=(0, 1)).stdout).all()
    checks += steps.Checker(
        seen, reference, log_path,
        lambda *options: run([args.merge, log_path, "--quiet", "--summary", "-", "--top",
                              "1000000", *options], allowed=(0, 1)).stdout).all()
    for check in checks:
        if args.only and getattr(check, "__name__", "") != args.only:
            continue
        try:
            check()
        except evidence.Mismatch as mismatch:
            problems.append(str(mismatch))
    evidence.expect(not problems, "\n".join(problems))
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("merge", "inject", "simgpu", "dump", "program"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--step", type=int, default=1, help="from one seed to the next")
    parser.add_argument("--only", help="only this check, such as steps")
    parser.add_argument("--keep", help="leave the files here, a folder for each seed")
    args = parser.parse_args()
    failed, calls, work = [], 0, 0
    for seed in range(args.first, args.first + args.seeds * args.step, args.step):
        with tempfile.TemporaryDirectory() as folder:
            if args.keep:
                folder = os.path.join(args.keep, str(seed))
                os.makedirs(folder)
            try:
                seen = check_seed(args, seed, folder)
                calls += len(seen.calls)
                work += len(seen.work)
            except evidence.Mismatch as mismatch:
                print(f"seed {seed}: {mismatch}")
                failed.append(seed)
    print(f"{args.seeds} seeds, {calls} calls, {work} pieces of GPU work; "
          f"{len(failed)} failed{': ' if failed else ''}{' '.join(map(str, failed))}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
