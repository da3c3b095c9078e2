#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Typical PyTorch work, which tests/gpu/check.sh records on a real GPU.

Uses loader processes, pinned and pageable batches, CUDA graphs, NVTX, backward passes in autograd's
threads, and memory that two processes share.
"""

import torch
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.full((256,), float(index)), index % 10


def make_model():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 10)).cuda()


def train_from_loader(model, pinned):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=pinned)
    for batch, label in loader:
        with torch.cuda.nvtx.range("step"):
            with torch.cuda.nvtx.range("copy"):
                batch = batch.cuda(non_blocking=pinned)
                label = label.cuda(non_blocking=pinned)
            with torch.cuda.nvtx.range("forward"):
                loss = nn.functional.cross_entropy(model(batch), label)
            with torch.cuda.nvtx.range("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


def replay_graph(model):
    static_input = torch.randn(32, 256, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(static_input)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_output = model(static_input)
        for i in range(100):
            static_input.fill_(i)
            graph.replay()
    return static_output.sum().item()


def add_copy(shared, device):
    """Runs in another process, which opens the memory by its IPC handle."""
    own = shared.to(device)  # with several GPUs, a copy between two of them
    own.add_(1)
    shared.add_(own.to(shared.device))
    torch.cuda.synchronize(shared.device)


def share_memory():
    shared = torch.ones(1 << 20, device="cuda")
    other = multiprocessing.get_context("spawn").Process(
        target=add_copy, args=(shared, "cuda:%d" % (torch.cuda.device_count() - 1)))
    other.start()
    other.join()
    return shared.mean().item()


def main():
    with torch.cuda.nvtx.range("all"):
        model = make_model()
        print("loss", train_from_loader(model, pinned=True), train_from_loader(model, pinned=False))
        print("graph", replay_graph(model))
        print("shared", share_memory())


if __name__ == "__main__":
    main()
