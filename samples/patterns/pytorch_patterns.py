#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The patterns in typical PyTorch code. Usage: pytorch_patterns.py PATTERN bad|good

Each wastes time in one way (bad), or does the same work without the waste (good). A comment
"finding PATTERN" marks the line that xtrace must report. The first steps are warm-up, which
`xtrace record --capture-range cudaProfilerApi` does not record.
"""

import sys
import time

import torch

STEPS = 60
WARM_UP = 5


def matrix():
    return torch.randn(4096, 4096, device="cuda")


def sync_idle(is_bad):
    """Waits for the loss in each step."""
    x, losses = torch.randn(1024, 1024, device="cuda"), []

    def step():
        for _ in range(4):
            loss = (x @ x).mean()
            losses.append(loss.item() if is_bad else loss)  # finding sync_idle
        if len(losses) > 64:
            losses.clear()
    return step


def short_kernels(is_bad):
    """Runs many small operations that could be replayed as one graph."""
    x = torch.randn(1 << 20, device="cuda")

    def run():
        y = x
        for _ in range(200):
            y = y * 1.0001 + 0.1  # finding short_kernels
        return y

    if is_bad:
        return run
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def pageable_async(is_bad):
    """Copies inputs that are not pinned."""
    inputs, weight = torch.randn(256, 4096), matrix()
    if not is_bad:
        inputs = inputs.pin_memory()

    def step():
        batch = inputs.to("cuda", non_blocking=True)  # finding pageable_async
        return batch @ (weight @ weight)
    return step


def small_copies(is_bad):
    """Copies rows one by one."""
    rows = [torch.randn(256).pin_memory() for _ in range(256)]
    target, weight = torch.empty(256, 256, device="cuda"), matrix()
    gathered = torch.empty(256, 256).pin_memory()

    def step():
        if is_bad:
            for i, row in enumerate(rows):
                target[i].copy_(row, non_blocking=True)  # finding small_copies
        else:
            torch.stack(rows, out=gathered)
            target.copy_(gathered, non_blocking=True)
        return weight @ weight
    return step


def gpu_idle(is_bad):
    """Reads the input between steps. Good: other threads read it in advance."""
    weight = matrix()

    def step():
        if is_bad:
            time.sleep(0.01)
        return weight @ weight  # finding gpu_idle
    return step


def alloc_loop(is_bad):
    """Empties the memory cache in each step."""
    weight = matrix()

    def step():
        y = torch.empty(64 << 20, device="cuda")  # finding alloc_loop
        y[:1024].fill_(1)
        del y
        if is_bad:
            torch.cuda.empty_cache()
        return weight @ weight  # finding alloc_loop
    return step


PATTERNS = {make.__name__: make for make in (sync_idle, short_kernels, pageable_async, small_copies,
                                             gpu_idle, alloc_loop)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PATTERNS or sys.argv[2] not in ("bad", "good"):
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(PATTERNS)} bad|good")
    torch.manual_seed(1)
    step = PATTERNS[sys.argv[1]](sys.argv[2] == "bad")
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
