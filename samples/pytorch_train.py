#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer on random tokens: a PyTorch program to trace.

Needs torch and a GPU, but no network. With --graph, the training step is captured once as a CUDA
graph and replayed, so each step is a single launch.

To try `xtrace diff`, use --slow-silu, --extra-sync or --extra-copy. Each adds one regression.
"""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):
    def __init__(self, dim, slow_silu):
        super().__init__()
        self.slow_silu = slow_silu
        self.gate = nn.Linear(dim, 4 * dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def activate(self, x):
        return x * torch.sigmoid(x) if self.slow_silu else F.silu(x)

    def forward(self, x):
        return self.down(self.activate(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, dim, heads, slow_silu):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.ffn_norm = nn.LayerNorm(dim)
        self.ffn = FeedForward(dim, slow_silu)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self, vocab, dim, layers, heads, length, slow_silu):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.zeros(length, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, slow_silu) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    """A model, its optimizer and one fixed batch that the model memorises."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        vocab = 1024
        self.model = Transformer(
            vocab, options.dim, options.layers, options.heads, options.length, options.slow_silu
        ).cuda()
        # capturable keeps the step count on the GPU, as a graph requires.
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=1e-3,
            foreach=options.foreach,
            capturable=options.graph,
        )
        shape = (options.batch, options.length + 1)
        self.batch = torch.randint(vocab, shape, device="cuda")
        self.loss = torch.zeros((), device="cuda")
        self.extra_sync = options.extra_sync
        self.extra_copy = options.extra_copy

    def step(self):
        logits = self.model(self.batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), self.batch[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        if self.extra_sync:
            torch.cuda.synchronize()
        if self.extra_copy:
            torch.zeros(64).cuda()
        loss.backward()
        self.optimizer.step()
        self.loss.copy_(loss.detach())


def capture(training):
    """Captures the training step as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # allocate and set up before the capture
            training.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    return graph


def parse_options(arguments=None):
    """Parses a list of arguments ([]: all defaults), or the command line if it is None."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, initial, what in (
        ("steps", 100, "training steps"),
        ("dim", 256, "width of the model"),
        ("layers", 4, "transformer blocks"),
        ("heads", 4, "attention heads"),
        ("batch", 8, "sequences per step"),
        ("length", 64, "tokens per sequence"),
        ("seed", 1, "seed of weights and data"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=initial, metavar="N", help=f"{what} ({initial})"
        )
    parser.add_argument("--graph", action="store_true", help="replay the step as a CUDA graph")
    for name, what in (
        ("foreach", "let the optimizer update all tensors with few kernels"),
        ("slow-silu", "compute one activation with two kernels instead of one"),
        ("extra-sync", "wait for the GPU in the middle of each step"),
        ("extra-copy", "copy a small tensor to the GPU in each step"),
    ):
        parser.add_argument(f"--{name}", action="store_true", help=what)
    options = parser.parse_args(arguments)
    if options.graph and (options.extra_sync or options.extra_copy):
        parser.error("--extra-sync and --extra-copy cannot be captured into a graph")
    return options


def main():
    options = parse_options()
    if not torch.cuda.is_available():
        raise SystemExit("pytorch_train: PyTorch finds no GPU")
    training = Training(options)
    run = capture(training).replay if options.graph else training.step
    run()
    torch.cuda.synchronize()
    first = training.loss.item()
    begin = time.perf_counter()
    for _ in range(options.steps):
        run()
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - begin
    print(f"GPU: {torch.cuda.get_device_name()}")
    print(
        f"{options.steps} steps, {1e3 * elapsed / options.steps:.3f} ms/step, "
        f"loss {first:.4f} -> {training.loss.item():.4f}"
    )


if __name__ == "__main__":
    main()
