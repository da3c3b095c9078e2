#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests who is late in PyTorch's data parallel training (DDP, NCCL), on real GPUs.

    tests/gpu/ranks.py BIN [--ranks N] [-o RESULTS]   # BIN: the folder of xtrace and xtrace-merge

Each rank has a GPU of its own. With fewer GPUs, ranks share them if this NCCL allows it. One rank
is made slow in three ways: its loader sleeps, one of its kernels takes longer, or it pauses at
random places. Checks that xtrace names the rank and the line, and that otherwise nobody waits.

Prints the results. Exit status: 0 success, 1 a check failed, 77 no PyTorch, NCCL or GPU, or NCCL
refuses several ranks on one GPU.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
STEPS, WARM_UP = 40, 5
LATE_RANK, LATE_S = 1, 0.008
# The functions that may be to blame. A pause can be anywhere in a step.
EXPECTED = {"none": None, "loader": ("load_batch",), "kernel": ("extra_work",),
            "pause": ("train_step", "load_batch", "forward", "extra_work", "main")}


def load_batch(torch, slow, is_late):
    if slow == "loader" and is_late:
        time.sleep(LATE_S)
    return torch.randn(64, 1024, device="cuda")


def extra_work(torch, square, count):
    for _ in range(count):
        square = torch.mm(square, square).clamp_(-1, 1)
    return square


def train_step(torch, model, optimizer, args, is_late, square):
    batch = load_batch(torch, args.slow, is_late)
    extra_work(torch, square, 1 + (12 if args.slow == "kernel" and is_late else 0))
    if args.slow == "pause" and is_late and random.random() < 0.5:
        time.sleep(2 * LATE_S)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()


def work(args):
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        sys.exit(SKIPPED)
    rank = int(os.environ["RANK"])
    if not torch.cuda.is_available() or not dist.is_nccl_available():
        sys.exit(SKIPPED)
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("nccl")
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    square = torch.eye(2048, device="cuda")
    for step in range(STEPS):
        train_step(torch, model, optimizer, args, rank == LATE_RANK and step >= WARM_UP, square)
    dist.barrier()
    dist.destroy_process_group()


def run_job(folder, data, slow, ranks):
    """Runs all ranks under xtrace. Returns their exit statuses and the output of the first."""
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT="29511",
                           NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_NVLS_ENABLE="0")
        processes.append(subprocess.Popen(
            [os.path.join(folder, "xtrace"), "record", "-o", os.path.join(data, str(rank)), "--",
             sys.executable, os.path.abspath(__file__), "--work", "--slow", slow],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    texts = [process.communicate(timeout=240)[0] for process in processes]
    return [process.returncode for process in processes], texts


def check(folder, data, slow, ranks, problems):
    logs = [os.path.join(data, str(rank)) for rank in range(ranks)]
    summary = json.loads(subprocess.run(
        [os.path.join(folder, "xtrace-merge"), *logs, "--quiet", "--summary", "-"], check=True,
        capture_output=True, text=True).stdout)
    found = summary.get("collectives")
    if not found:
        problems.append(f"{slow}: no collectives")
        return None
    verdict = found["verdict"]

    def expect(condition, text):
        if not condition:
            problems.append(f"{slow}: {text}: {verdict['text']}")

    expect(found["matched"] and not found["partial"] and not found["mismatches"],
           "%d matched, %d partial, %d different" % (found["matched"], found["partial"],
                                                      len(found["mismatches"])))
    if EXPECTED[slow]:
        expect(verdict["kind"] == "rank" and verdict.get("rank") == LATE_RANK, "not the late rank")
        expect(verdict.get("where", "").startswith(EXPECTED[slow]), "not its line")
    else:
        expect(verdict["kind"] == "none" or verdict["share"] < 0.1, "nobody was made late")
    return {"verdict": verdict, "matched": found["matched"], "by_order": found["by_order"],
            "groups": found["groups"][:4]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    folder = args.bin if os.path.exists(os.path.join(args.bin, "xtrace")) \
        else os.path.join(args.bin, "bin")
    problems, results = [], {}
    for slow in EXPECTED:
        with tempfile.TemporaryDirectory(prefix="xtrace-ranks.") as data:
            statuses, texts = run_job(folder, data, slow, args.ranks)
            if SKIPPED in statuses or "Duplicate GPU" in "".join(texts):
                print("cannot run %d ranks: no PyTorch, NCCL or GPU for each" % args.ranks)
                sys.exit(SKIPPED)
            if any(statuses):
                problems.append(f"{slow}: exit statuses {statuses}")
                print(texts[0][-3000:])
                continue
            results[slow] = check(folder, data, slow, args.ranks, problems)
        print(slow, json.dumps(results[slow]))
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump({"results": results, "problems": problems}, file, indent=1)
    for problem in problems:
        print("WRONG: " + problem)
    print("%d problems" % len(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    if "--work" in sys.argv:
        worker = argparse.ArgumentParser()
        worker.add_argument("--work", action="store_true")
        worker.add_argument("--slow", choices=sorted(EXPECTED))
        work(worker.parse_args())
    else:
        main()
