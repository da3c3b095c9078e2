#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one kind of Python work on a GPU, for tests/gpu/python_frames.py.

The kinds are CuPy, JAX, and PyTorch: eager, compiled, as a CUDA graph, with loader processes, and
with autograd's threads. Prints the median time of a step. If LEDGER is in the environment, writes
a line of JSON to that file for each NVTX mark, with the Python frames at the mark.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import time

ledger = open(os.environ["LEDGER"], "w") if "LEDGER" in os.environ else None
marks = 0


def frames_of(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename,
                       frame.f_lineno))
        frame = frame.f_back
    return frames


def note(frame, text):
    ledger.write(json.dumps({"text": text, "frames": frames_of(frame)}) + "\n")
    ledger.flush()


def mark(torch):
    """Note and mark share a line, because both record its number."""
    global marks
    if ledger:
        marks += 1
        note(sys._getframe(), "mark %d" % marks), torch.cuda.nvtx.mark("mark %d" % marks)


def make_model(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.norm = nn.LayerNorm(dim)
            self.up = nn.Linear(dim, 4 * dim)
            self.down = nn.Linear(4 * dim, dim)

        def forward(self, x):
            mark(torch)
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    class Model(nn.Module):
        def __init__(self, dim=256, depth=8):
            super().__init__()
            self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    return Model().cuda()


def make_training(torch, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(64, 256, device="cuda")
    label = torch.randint(0, 10, (64,), device="cuda")

    def train_step(x=x, label=label):
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    return train_step


def eager(torch):
    yield torch.cuda.synchronize
    train_step = make_training(torch, make_model(torch))
    while True:
        train_step()
        yield


def compiled(torch):
    yield torch.cuda.synchronize
    global ledger
    ledger = None  # a mark would split the compiled function
    train_step = make_training(torch, torch.compile(make_model(torch)))
    while True:
        train_step()
        yield


def graph(torch):
    yield torch.cuda.synchronize
    model = make_model(torch)
    x = torch.randn(64, 256, device="cuda")

    def forward():
        with torch.no_grad():
            return model(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        forward()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        forward()
    while True:
        captured.replay()
        yield


def loader(torch):
    yield torch.cuda.synchronize
    from torch.utils.data import DataLoader

    train_step = make_training(torch, make_model(torch))
    while True:
        for batch, label in DataLoader(Numbers(), batch_size=64, num_workers=2, pin_memory=True,
                                       multiprocessing_context="fork"):
            train_step(batch.cuda(non_blocking=True), label.cuda(non_blocking=True))
            yield


class Numbers:
    """A data set with random access, as the loader's processes require."""

    def __len__(self):
        return 64 * 100

    def __getitem__(self, index):
        import torch
        return torch.full((256,), float(index % 7)), index % 10


def autograd(torch):
    """A Python function whose backward pass runs in one of autograd's threads."""
    yield torch.cuda.synchronize

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(context, gradient):
            mark(torch)
            x, = context.saved_tensors
            return 2 * x * gradient

    x = torch.randn(1 << 16, device="cuda", requires_grad=True)

    def train_step():
        y = x
        for _ in range(20):
            y = Square.apply(y * 0.5)
        y.sum().backward()
        x.grad = None
    while True:
        train_step()
        yield


def cupy(cupy):
    yield cupy.cuda.Device().synchronize
    x = cupy.random.rand(1 << 16, dtype=cupy.float32)

    def step():
        y = x
        for _ in range(20):
            y = cupy.sqrt(y * y + 1)
        return y.sum()
    while True:
        step()
        yield


def jax(jax):
    import jax.numpy as jnp
    x = jnp.ones((256, 256))

    @jax.jit
    def inner(x):
        return jnp.tanh(x @ x / 256)

    def step(x):
        for _ in range(20):
            x = inner(x) + 1
        return x.block_until_ready()
    yield lambda: step(x)
    while True:
        step(x)
        yield


PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n\0"


def driver(ctypes):
    """Calls the CUDA driver through ctypes. Needs no package and runs on the simulated GPU."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    if (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            or cuda.cuCtxSetCurrent(context) or cuda.cuModuleLoadData(ctypes.byref(module), PTX)
            or cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")):
        raise RuntimeError("cannot use the CUDA driver")
    yield cuda.cuCtxSynchronize

    def launch(depth):
        if depth:
            launch(depth - 1)
        else:
            cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    while True:
        for depth in range(10):
            launch(depth)
        yield


KINDS = {
    "driver": (driver, "ctypes"),
    "eager": (eager, "torch"),
    "compile": (compiled, "torch"),
    "graph": (graph, "torch"),
    "loader": (loader, "torch"),
    "autograd": (autograd, "torch"),
    "cupy": (cupy, "cupy"),
    "jax": (jax, "jax"),
}


BATCH_STEPS = 5


def make_switch(ctypes):
    """Returns a function that switches recording, if it follows the profiler's range."""
    cuda = ctypes.CDLL("libcuda.so.1")
    return lambda is_on: cuda.cuProfilerStart() if is_on else cuda.cuProfilerStop()


def time_steps(steps, synchronize, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        next(steps)
        synchronize()
        times.append((time.perf_counter() - begin) * 1000)
    return times


def time_switched(steps, synchronize, pair_count, switch):
    """Compares pairs of neighbouring batches without and with recording.

    Returns the step times without recording and the added times of the other batches. Uses medians,
    because caches are cold after each switch.
    """
    off, added = [], []
    for number in range(pair_count):
        order = (False, True) if number % 2 else (True, False)
        pair = {}
        for is_on in order:
            switch(is_on)
            pair[is_on] = statistics.median(time_steps(steps, synchronize, BATCH_STEPS))
        off.append(pair[False])
        added.append(pair[True] - pair[False])
    return off, added


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--switch", action="store_true",
                        help="switch recording off and on every few steps, and print the added time")
    parser.add_argument("--needs", action="store_true", help="print the required package and whether it is installed")
    arguments = parser.parse_args()
    work, needed = KINDS[arguments.kind]
    if arguments.needs:
        print(needed, "yes" if importlib.util.find_spec(needed) else "no")
        return
    steps = work(importlib.import_module(needed))
    synchronize = next(steps)
    time_steps(steps, synchronize, arguments.warm_up)
    if arguments.switch:
        off, added = time_switched(steps, synchronize, arguments.steps // BATCH_STEPS // 2,
                                   make_switch(importlib.import_module("ctypes")))
        print("%.4f ms/step, recording adds %.5f" % (
            statistics.median(off), statistics.median(added)))
    else:
        print("%.4f ms/step" % statistics.median(
            time_steps(steps, synchronize, arguments.steps)))


if __name__ == "__main__":
    import importlib.util
    main()
