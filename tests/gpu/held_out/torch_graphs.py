# SPDX-License-Identifier: Apache-2.0
"""Graphs, streams, compiled functions and child processes of PyTorch."""

import torch
from torch import multiprocessing, nn


def graphed_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
    sample = torch.randn(16, 64, device="cuda")
    graphed = torch.cuda.make_graphed_callables(model, (sample.clone().requires_grad_(),))
    optimizer = torch.optim.SGD(graphed.parameters(), lr=0.01)
    for _ in range(50):
        loss = graphed(sample.clone().requires_grad_()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item()


def several_streams():
    streams = [torch.cuda.Stream() for _ in range(4)]
    parts = []
    for number, stream in enumerate(streams):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            x = torch.full((256, 256), float(number), device="cuda")
            for _ in range(20):
                x = x @ torch.eye(256, device="cuda") + 1
            parts.append(x.sum())
    torch.cuda.synchronize()
    return [part.item() for part in parts]


def compiled():
    @torch.compile
    def f(x):
        return torch.nn.functional.gelu(x @ x).softmax(-1).sum()
    torch.manual_seed(1)
    return f(torch.randn(64, 64, device="cuda")).item()


def child(results, number):
    results.put(torch.full((10,), float(number), device="cuda").sum().item())


def main():
    print("graphed", round(graphed_training(), 3))
    print("streams", several_streams())
    print("compiled", round(compiled(), 2))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    children = [context.Process(target=child, args=(results, n)) for n in range(3)]
    for each in children:
        each.start()
    values = sorted(results.get() for _ in children)
    for each in children:
        each.join()
    print("children", values, [each.exitcode for each in children])


if __name__ == "__main__":
    main()
