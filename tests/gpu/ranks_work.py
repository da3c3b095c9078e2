#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank that trains a small transformer with PyTorch. tests/gpu/ranks.py starts it.

    ranks_work.py --kind KIND --slow WAY [--steps N] [--backend nccl|mpi]

RANK, WORLD_SIZE and so on are set, or mpirun started it. With MPI, gradients are reduced in host
memory by mpi4py.

| kind | what is trained |
| --- | --- |
| ddp | data parallel, with DistributedDataParallel |
| fsdp | fully sharded, with fully_shard() |
| tensor | tensor parallel, with parallelize_module() |
| graph | data parallel; the step and its all-reduces are replays of a CUDA graph |

The last rank is made late in one way, after a few steps. Prints a line of JSON: the median time of
a step, the time of all steps in which it is late, and the times of some all-reduces by CUDA events.
"""

import argparse
import importlib.util
import json
import os
import random
import statistics
import sys
import time

SKIPPED = 77
WARM_UP, LATE_S, EXTRA_KERNELS = 5, 0.02, 40
# Large enough that the GPU needs longer than the CPU needs to launch its work.
BLOCKS, HEAD, TOKENS, BATCH = 4, 128, 512, 4
# MPI adds gradients on the CPU.
WIDTHS = {"nccl": 2048, "mpi": 512}
# Sizes that no step uses, and that take longer than a launch.
TIMED_ELEMENTS, TIMED = (8_000_001, 16_000_003, 64_000_001), 20

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.functional import gelu, scaled_dot_product_attention
except ImportError:
    sys.exit(SKIPPED)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        normal = self.norm1(x)
        # A rank may have only some of the heads.
        q, k, v = (layer(normal).unflatten(-1, (-1, HEAD)).transpose(1, 2)
                   for layer in (self.q, self.k, self.v))
        mixed = scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.o(mixed)
        return x + self.down(gelu(self.up(self.norm2(x))))


def load_batch(is_late, batch, width):
    if is_late:
        time.sleep(LATE_S)
    return torch.randn(batch, TOKENS, width, device="cuda")


def extra_work(square, count):
    for _ in range(count):
        square = torch.mm(square, square).clamp_(-1, 1)


class Eager:
    def __init__(self, kind, width):
        self.width = width
        model = nn.Sequential(*(Block(self.width) for _ in range(BLOCKS))).cuda()
        if kind == "ddp":
            model = nn.parallel.DistributedDataParallel(model)
        elif kind == "fsdp":
            from torch.distributed.fsdp import fully_shard
            for block in model:
                fully_shard(block)
            fully_shard(model)
        elif kind == "tensor":
            shard(model)
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=False)

    def step(self, batch):
        self.model(batch).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def close(self):
        pass


def shard(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model:
        parallelize_module(block, mesh, {
            "q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(),
            "o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})


class Reduced(Eager):
    """Data parallel, by hand: MPI reduces the gradients on the host."""

    def __init__(self, comm):
        super().__init__("alone", WIDTHS["mpi"])
        self.comm = comm

    def step(self, batch):
        self.model(batch).square().mean().backward()
        for parameter in self.model.parameters():
            self.reduce(parameter.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def reduce(self, gradient):
        host = gradient.cpu()
        self.comm.Allreduce(host.numpy().copy(), host.numpy())
        gradient.copy_(host)


class Replayed:
    width = WIDTHS["nccl"]

    def __init__(self):
        self.model = nn.Sequential(*(Block(self.width) for _ in range(BLOCKS))).cuda()
        self.parameters = list(self.model.parameters())
        self.batch = torch.zeros(BATCH, TOKENS, self.width, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.work()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.work()

    def work(self):
        self.model.zero_grad(set_to_none=False)
        self.model(self.batch).square().mean().backward()
        for parameter in self.parameters:
            dist.all_reduce(parameter.grad)
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.sub_(parameter.grad, alpha=1e-5)

    def step(self, batch):
        self.batch.copy_(batch)
        self.graph.replay()

    def close(self):
        # NCCL waits for graphs that use a communicator before it destroys it.
        self.graph.reset()


def train_step(trainer, slow, is_late, square, batch_size):
    batch = load_batch(is_late and slow == "loader", batch_size, trainer.width)
    extra_work(square, 1 + (EXTRA_KERNELS if is_late and slow == "kernel" else 0))
    if is_late and slow == "pause" and random.random() < 0.5:
        time.sleep(2 * LATE_S)
    trainer.step(batch)
    torch.cuda.synchronize()


def time_all_reduces():
    """Mean microseconds of an all-reduce by CUDA events, by its bytes."""
    times_us = {}
    for elements in TIMED_ELEMENTS:
        data = torch.ones(elements, device="cuda")
        dist.barrier()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        dist.all_reduce(data)  # the ranks wait for each other here
        start.record()
        for _ in range(TIMED):
            dist.all_reduce(data)
        end.record()
        torch.cuda.synchronize()
        times_us[4 * elements] = start.elapsed_time(end) * 1e3 / TIMED
    return times_us


def has_backend(backend):
    if backend == "mpi":
        return importlib.util.find_spec("mpi4py")
    return dist.is_nccl_available()


def set_up(args):
    """Returns the rank, the number of ranks, and what trains."""
    comm = None
    if args.backend == "mpi":
        from mpi4py import MPI  # initialises MPI
        comm = MPI.COMM_WORLD
    rank = comm.Get_rank() if comm else int(os.environ["RANK"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    if not comm:
        dist.init_process_group(args.backend, device_id=device)
    torch.manual_seed(1)
    if comm:
        return rank, comm.Get_size(), Reduced(comm)
    trainer = Replayed() if args.kind == "graph" else Eager(args.kind, WIDTHS[args.backend])
    return rank, dist.get_world_size(), trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("ddp", "fsdp", "tensor", "graph"), required=True)
    parser.add_argument("--slow", choices=("none", "loader", "kernel", "pause"), required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--backend", choices=("nccl", "mpi"), default="nccl")
    args = parser.parse_args()
    if not torch.cuda.is_available() or not has_backend(args.backend):
        sys.exit(SKIPPED)
    rank, rank_count, trainer = set_up(args)
    square = torch.eye(2048, device="cuda")
    # Each rank has a part of each layer only.
    batch_size = BATCH * rank_count if args.kind == "tensor" else BATCH
    is_late, times = rank == rank_count - 1, []
    for step in range(args.steps):
        start = time.perf_counter()
        train_step(trainer, args.slow, is_late and step >= WARM_UP, square, batch_size)
        times.append(time.perf_counter() - start)
    times_us = time_all_reduces() if args.backend == "nccl" else {}
    trainer.close()
    if args.backend != "mpi":
        dist.destroy_process_group()
    print(json.dumps({"step_ms": statistics.median(times[len(times) // 4:]) * 1e3,
                      "late_ms": sum(times[WARM_UP:]) * 1e3, "all_reduce_us": times_us}),
          flush=True)


if __name__ == "__main__":
    main()
