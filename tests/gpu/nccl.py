#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests NCCL's NVTX ranges in a trace, on a real GPU, with one process and one rank.

    tests/gpu/nccl.py BIN [-o RESULTS]        # BIN: the folder of xtrace and xtrace-merge

PyTorch's NCCL pushes ncclCommInitRankConfig without a payload and pops it with one. Checks:
- Every NCCL range ends.
- No later kernel is in the range of the initialisation.
- Payloads have values: communicator, ranks, rank, bytes, operation.

Prints the results. Exit status: 0 success, 1 a check failed, 77 no PyTorch, NCCL or GPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from gpu_results import SKIPPED, finish

STEPS = 20
ELEMENTS = 12345
COMM, RANKS, RANK, BYTES = ("NCCL communicator ID", "No. of ranks", "Rank", "Message size [bytes]")


def work():
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        sys.exit(SKIPPED)
    if not torch.cuda.is_available() or not dist.is_nccl_available():
        sys.exit(SKIPPED)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=dist.HashStore(), world_size=1, rank=0)
    data = torch.ones(ELEMENTS, device="cuda")
    for _ in range(STEPS):
        dist.all_reduce(data)
        data = torch.tanh(data)
    dist.broadcast(data, 0)
    torch.cuda.synchronize()
    dist.destroy_process_group()
    print("NCCL", torch.cuda.nccl.version())


def nccl_events(merge, data):
    trace = subprocess.run([merge, data, "--quiet", "--chrome", "-"], check=True,
                           capture_output=True, text=True).stdout
    return [event for event in json.loads(trace)["traceEvents"]
            if event.get("cat") == "nvtx" and event["name"].startswith("NCCL:")]


def check(merge, data, problems):
    events = nccl_events(merge, data)
    values = {}
    for event in events:
        if event["args"].get("values"):
            values.setdefault(event["name"], []).append(event["args"]["values"])
    found = {"ranges": len(events), "open": [e["name"] for e in events if e["ph"] == "B"],
             "values": {name: [len(rows), rows[0]] for name, rows in values.items()}}

    def expect(condition, text):
        if not condition:
            problems.append(text)

    expect(events, "no NCCL ranges: does this NCCL have NVTX?")
    expect(not found["open"], "ranges without an end: %s" % found["open"])
    init = values.get("NCCL:ncclCommInitRankConfig", values.get("NCCL:ncclCommInitRank", []))
    expect(init and init[0].get(RANKS) == 1 and init[0].get(RANK) == 0 and COMM in init[0],
           "ncclCommInitRank* has no payload with ranks and rank: %s" % init[:1])
    reduces = values.get("NCCL:ncclAllReduce", [])
    expect(len(reduces) == STEPS, "%d of %d ncclAllReduce have values" % (len(reduces), STEPS))
    expect(all(row.get(BYTES) == 4 * ELEMENTS and row.get("Reduction operation") == "Sum"
               for row in reduces), "unexpected values of ncclAllReduce: %s" % reduces[:1])
    if init and reduces:
        expect(init[0].get(COMM) == reduces[0].get(COMM), "the communicators differ")
    folded = subprocess.run([merge, data, "--quiet", "--folded", "-"], check=True,
                            capture_output=True, text=True).stdout.splitlines()
    inside = [line for line in folded if "tanh" in line and "[NVTX NCCL:" in line]
    expect(any("tanh" in line for line in folded), "no kernel of the steps was recorded")
    expect(not inside, "kernels of the steps are in NCCL ranges: %s" % inside[:1])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    folder = args.bin if os.path.exists(os.path.join(args.bin, "xtrace")) \
        else os.path.join(args.bin, "bin")
    problems = []
    with tempfile.TemporaryDirectory(prefix="xtrace-nccl.") as temporary:
        data = os.path.join(temporary, "data")
        done = subprocess.run(
            [os.path.join(folder, "xtrace"), "record", "-o", data, "--", sys.executable,
             os.path.abspath(__file__), "--work-itself"], capture_output=True, text=True,
            timeout=300)
        if done.returncode == SKIPPED:
            print("cannot find PyTorch with NCCL and a GPU")
            sys.exit(SKIPPED)
        if done.returncode:
            print(done.stdout + done.stderr)
            sys.exit(1)
        print(done.stdout.strip())
        found = check(os.path.join(folder, "xtrace-merge"), data, problems)
    for name, (count, first) in sorted(found["values"].items()):
        print("%-36s %4d  %s" % (name, count, first))
    finish(args.output, found, problems)


if __name__ == "__main__":
    if "--work-itself" in sys.argv:
        work()
    else:
        main()
