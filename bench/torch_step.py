#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a small PyTorch training step of about 500 launches.

The model is that of pytorch_train.py in samples. A batch is a few steps and a wait. The last line
is JSON: milliseconds per step of each batch, and the time just before the program exits.

With --turns, it takes turns with other processes: for each line of stdin, such as "large 4", it
runs so many steps and prints how long one took. The GPU needs longer for a large step than the CPU.
"""

import argparse
import json
import os
import sys
import time


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", required=True, help="where pytorch_train.py lies")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10, help="of each batch")
    parser.add_argument(
        "--profiler", choices=("none", "cuda", "cpu+cuda", "stacks"), default="none"
    )
    parser.add_argument(
        "--paired",
        action="store_true",
        help="put every second batch between cudaProfilerStart() and cudaProfilerStop(), so that a tracer "
        "that records only there is compared with itself",
    )
    parser.add_argument("--turns", action="store_true", help="run what stdin asks for")
    parser.add_argument("--trace", default="torch_trace.json", help="what the profiler writes")
    return parser.parse_args()


def make_profiler(torch, kind):
    """torch.profiler around all batches, as in typical use."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    if kind != "cuda":
        activities.append(torch.profiler.ProfilerActivity.CPU)
    return torch.profiler.profile(activities=activities, with_stack=kind == "stacks")


SIZES = {"small": [], "large": "--dim 1024 --heads 16 --batch 16 --length 256".split()}


def take_turns(torch, training_of):
    """The first step of a turn is not timed: the GPU may have been idle."""
    trainings = {size: training_of(options) for size, options in SIZES.items()}
    for training in 3 * list(trainings.values()):
        training.step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        size, steps = line.split()
        step = trainings[size].step
        step()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(int(steps)):
            step()
        torch.cuda.synchronize()
        print(1e3 * (time.perf_counter() - begin) / int(steps), flush=True)


def switch_recording(torch, is_on):
    if is_on:
        torch.cuda.profiler.start()
    else:
        torch.cuda.profiler.stop()


def peak_kib():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def main():
    options = parse_options()
    sys.path.insert(0, options.samples)
    import torch
    from pytorch_train import Training, parse_options as parse_training

    if not torch.cuda.is_available():
        raise SystemExit("torch_step: PyTorch finds no GPU")
    if options.turns:
        take_turns(torch, lambda words: Training(parse_training(words)))
        return
    training = Training(parse_training([]))
    profiler = make_profiler(torch, options.profiler) if options.profiler != "none" else None
    if profiler:
        profiler.start()
    for _ in range(2 * options.steps):
        training.step()
    torch.cuda.synchronize()
    step_ms = []
    for batch in range(options.batches):
        if options.paired:
            switch_recording(torch, batch % 2 == 1)
        begin = time.perf_counter()
        for _ in range(options.steps):
            training.step()
        torch.cuda.synchronize()
        step_ms.append(1e3 * (time.perf_counter() - begin) / options.steps)
    report = {
        "step_ms": step_ms,
        "steps": (2 + options.batches) * options.steps,
        "steps_a_batch": options.steps,
    }
    if profiler:
        profiler.stop()
        profiler.export_chrome_trace(options.trace)
        report["trace_bytes"] = os.path.getsize(options.trace)
    report["peak_kib"] = peak_kib()
    report["end_ns"] = time.monotonic_ns()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
