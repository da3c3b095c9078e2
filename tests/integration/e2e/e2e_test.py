#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests recording and merging on the simulated GPU against its ground truth.

Checks every kernel to the nanosecond, every call path, and every total. The launcher names each
kernel after the path that launches it, so the name gives the expected path.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

CASES = [
    # threads, streams, launches each, seed, synchronise every, kernel ns range, preloaded
    (1, 1, 2000, 1, 0, "1000:5000", False),
    (1, 4, 3000, 2, 100, "100:200000", True),
    (2, 3, 3000, 3, 50, "500:20000", False),
    (8, 2, 4000, 4, 0, "1000:2000", False),
    (8, 8, 2000, 5, 10, "10:100000", True),
]

LAUNCH_CLASSES = (1, 2)


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{command} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def read_truth(path):
    kernels, launches, total = [], collections.Counter(), None
    with open(path) as file:
        for line in file:
            word, *rest = line.split()
            if word == "kernel":
                correlation, device, context, stream, start, end, node, name = rest
                kernels.append((int(correlation), int(device), int(context), int(stream),
                                int(start), int(end) - int(start), int(node), name))
            elif word == "launch":
                launches[int(rest[1])] += 1
            elif word == "end":
                total = int(rest[0])
    assert total == len(kernels), f"the truth is torn: {total} against {len(kernels)}"
    return kernels, launches


def read_dump(tool, log):
    """Kernels and calls from the independent reader."""
    tables = collections.defaultdict(list)
    for line in run([tool, "--format", "json", log]).stdout.splitlines():
        row = json.loads(line)
        if row.get("record") == "row":
            tables[row["kind"]].append(row)
    strings = {row["id"]: row["text"] for row in tables["STRING"]}
    shapes = {row["id"]: strings[row["name"]] for row in tables["SHAPE"]}
    streams = {row["id"]: (row["device"], row["context"], row["stream"])
               for row in tables["STREAM"]}
    kernels = [(row["correlation"], *streams[row["stream"]], row["start_ns"], row["duration_ns"],
                row["graph_node"], shapes[row["shape"]]) for row in tables["KERNEL"]]
    return kernels, tables


def read_folded(text):
    lines = []
    for line in text.splitlines():
        frames, weight = line.rsplit(" ", 1)
        lines.append((frames.split(";"), int(weight)))
    return lines


def path_of(frames):
    return "".join(frame[-1] for frame in frames if re.fullmatch(r"path_[abc]", frame))


def check_folded(lines, truth_by_name, threads, what):
    sums = collections.Counter()
    for frames, weight in lines:
        leaf = frames[-1]
        assert leaf.startswith("[GPU_Kernel]k_"), frames
        name = leaf[len("[GPU_Kernel]"):]
        assert "k_" + path_of(frames) == name, f"{what}: wrong owner: {frames}"
        assert frames[-2] == "cuLaunchKernel" and frames[-3] == "launch", frames
        # Sanitizers start threads through their own function.
        assert frames[0] == "run" or frames[1] == "run" and "san" in frames[0], frames
        sums[name] += weight
    assert sums == truth_by_name, f"{what}: sums differ from the truth"


def check_chrome(path, kernels):
    with open(path) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    spans = [e for e in events if e["ph"] == "X" and e.get("cat", "").startswith("kernel")]
    assert len(spans) == len(kernels), f"{len(spans)} kernel spans for {len(kernels)} kernels"
    starts = collections.Counter(e["id"] for e in events if e["ph"] == "s")
    ends = collections.Counter(e["id"] for e in events if e["ph"] == "f")
    assert len(ends) == len(kernels) and set(ends) <= set(starts), "flow arrows do not pair up"


def check_case(args, case, folder):
    threads, streams, launches, seed, sync_every, kernel_ns, preload = case
    data = os.path.join(folder, "data")
    truth_path = os.path.join(folder, "truth")
    environment = dict(os.environ, XTRACE_SIMGPU_TRUTH=truth_path, XTRACE_SIMGPU_SEED=str(seed),
                       XTRACE_SIMGPU_KERNEL_NS=kernel_ns, XTRACE_AUDIT="100")
    program = [args.launcher, str(threads), str(streams), str(launches), str(seed),
               str(sync_every)]
    if preload:
        environment.update(LD_PRELOAD=args.inject, XTRACE_DATA=data,
                           LD_LIBRARY_PATH=args.simgpu,
                           XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"))
        done = run(program, env=environment)
    else:
        done = run([args.xtrace, "record", "--simulate", "-o", data, "--", *program],
                   env=environment)
    assert done.stdout == f"{threads * launches} launches\n", done.stdout
    logs = [name for name in os.listdir(data) if name.endswith(".xtr")]
    assert len(logs) == 1 and not any(name.endswith(".spool") for name in os.listdir(data)), \
        os.listdir(data)
    log = os.path.join(data, logs[0])

    truth, truth_launches = read_truth(truth_path)
    assert len(truth) == threads * launches
    run([args.dump, "--check", log])
    kernels, tables = read_dump(args.dump, log)
    assert sorted(kernels) == sorted(truth), "the kernels in the log differ from those that ran"
    launching = {row["id"] for row in tables["API"] if row["class"] in LAUNCH_CLASSES}
    calls = collections.Counter(row["correlation"] for row in tables["CALL"]
                                if row["api"] in launching)
    assert calls == truth_launches, "the calls in the log differ from those made"
    account = {row["name"]: row["value"] for row in tables["ACCOUNT"]}
    assert account["calls.seen"] == account["calls.written"] == len(tables["CALL"]), account
    assert account["stacks.mismatched"] == 0 and account["stacks.audited"] > 0, account
    assert account["stacks.truncated"] == 0 and account["kernels.invalid"] == 0, account

    names_ns, names_count = collections.Counter(), collections.Counter()
    for *_, duration, _, name in truth:
        names_ns[name] += duration
        names_count[name] += 1
    chrome = os.path.join(folder, "trace.json")
    merged = run([args.merge, data, "--folded", "-", "--chrome", chrome])
    check_folded(read_folded(merged.stdout), names_ns, threads, "gpu-time")
    merged = run([args.merge, data, "--folded", "-", "--weight", "count"])
    check_folded(read_folded(merged.stdout), names_count, threads, "count")
    check_chrome(chrome, kernels)
    print(f"{threads} threads, {streams} streams: {len(truth)} kernels, all as they ran")


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "inject", "simgpu", "dump", "launcher"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            check_case(args, case, folder)


if __name__ == "__main__":
    main()
