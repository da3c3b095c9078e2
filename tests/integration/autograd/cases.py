# SPDX-License-Identifier: Apache-2.0
"""Training steps of every kind, on the stand-in for PyTorch. Names of kernels tell their lines."""

import sys
import threading

import torch
from torch.utils.checkpoint import checkpoint

STEPS = 3
DEPTH = 400


def tensor(requires_grad=True, device=0):
    return torch.new_tensor(device, requires_grad)


def linear(x, weights):
    return torch.addmm(weights[0], x, weights[1])


def model(x, weights):
    x = linear(x, weights)
    x = torch.relu(x)
    x = torch.mul_Tensor(x, x)
    x = linear(x, weights)
    return torch.sum(x)


def plain():
    weights = tensor(), tensor()
    for _ in range(STEPS):
        model(tensor(False), weights).backward()


def masked(x):
    """The slice's number is the one that gt sees."""
    x = torch.relu(x)
    y = torch.slice_Tensor(x)
    mask = torch.gt_Scalar(x)
    return torch.mul_Tensor(y, mask)


def views():
    weight = tensor()
    for _ in range(STEPS):
        x = masked(weight)
        x = torch.view(x)
        x = torch.relu(x)
        torch.sum(x).backward()


def unknown():
    """No node with a launch precedes the slice."""
    x = torch.slice_Tensor(tensor())
    x = torch.mul_Tensor(x, x)
    torch.sum(x).backward()


def copy_slices():
    weight = tensor()
    for _ in range(STEPS):
        y = torch.relu(weight)
        z = torch.mul_Tensor(weight, weight)
        torch.copy_(y, z)
        y = torch.relu(y)
        torch.sum(y).backward()


def first_thread(weights):
    for _ in range(STEPS * 10):
        loss = model(tensor(False), weights)
        loss.backward()


def second_thread(weights):
    for _ in range(STEPS * 10):
        x = torch.relu(weights[0])
        x = torch.mm(x, weights[1])
        loss = torch.sum(x)
        loss.backward()


def third_thread(weights):
    for _ in range(STEPS * 10):
        x = masked(weights[0])
        loss = model(x, weights)
        loss.backward()


def in_thread(function, device):
    if not device:
        torch.library.new_thread_stream()
    function((tensor(device=device), tensor(device=device)))


def run_threads(devices):
    functions = [first_thread, second_thread, third_thread] * 2
    threads = [threading.Thread(target=in_thread, args=pair) for pair in zip(functions, devices)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def threads():
    run_threads([0] * 6)


def devices():
    run_threads([0, 1, 1, 0, 0, 1])


def deep():
    """The call of backward() has many callers, which are not of this file."""
    names = {"plain": plain}
    exec(compile("def recurse(n):\n    return recurse(n - 1) if n else plain()\n", "deep.py", "exec"),
         names)
    names["recurse"](DEPTH)


def other_makers_backward(losses):
    for loss in losses:
        torch.autograd.backward(loss, tensor(False))


def quiet():
    """One thread launches nothing itself, and runs nodes of the main thread. Another trains."""
    weight = tensor()
    losses = []
    for _ in range(STEPS * 20):
        loss = torch.relu(weight)
        losses.append(loss)
    threads = [threading.Thread(target=first_thread, args=((tensor(), tensor()),)),
               threading.Thread(target=other_makers_backward, args=(losses,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def same_thread():
    torch.library.set_multithreading_enabled(0)
    plain()
    custom()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        y = torch.mul_Tensor(x, x)
        return torch.mul_Tensor(x, y)

    @staticmethod
    def backward(ctx, grad):
        grad = torch.mul_Tensor(grad, ctx.x)
        return torch.mul_Tensor(grad, ctx.x)


class Identity(torch.autograd.Function):
    """Its forward function launches nothing."""

    @staticmethod
    def forward(ctx, x):
        return torch.view(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.mul_Tensor(grad, grad)


def custom():
    weight = tensor()
    for _ in range(STEPS):
        x = torch.relu(weight)
        x = Cube.apply(x)
        x = torch.relu(x)
        x = Identity.apply(x)
        x = torch.relu(x)
        torch.sum(x).backward()


def block(x):
    x = torch.mul_Tensor(x, x)
    return torch.relu(x)


def checkpointed(use_reentrant):
    weight = tensor()
    for _ in range(STEPS):
        x = torch.relu(weight)
        x = checkpoint(block, x, use_reentrant)
        x = torch.mul_Tensor(x, x)
        x = checkpoint(block, x, use_reentrant)
        torch.sum(x).backward()


def recompute():
    checkpointed(False)


def reentrant():
    checkpointed(True)


def recompute_same_thread():
    torch.library.set_multithreading_enabled(0)
    checkpointed(False)


def double_backward():
    weight = tensor()
    for _ in range(STEPS):
        x = torch.mul_Tensor(weight, weight)
        x = torch.slice_Tensor(x)
        x = torch.relu(x)
        loss = torch.sum(x)
        loss.backward(create_graph=True)
        grad = torch.mul_Tensor(weight.grad, weight.grad)
        loss = torch.sum(grad)
        loss.backward()
        torch.clear_grad(weight)


def retain_graph():
    weights = tensor(), tensor()
    for _ in range(STEPS):
        loss = model(tensor(False), weights)
        loss.backward()
        loss.backward()


def hooks():
    weights = tensor(), tensor()

    def hook():
        torch.gt_Scalar(weights[0])
    torch.register_post_accumulate_grad_hook(weights[0], hook)
    for _ in range(STEPS):
        model(tensor(False), weights).backward()


def graph():
    weights = tensor(), tensor()

    def step():
        model(tensor(False), weights).backward()
        checkpointed_once(weights[0])
    step()
    torch.library.capture_begin()
    step()
    torch.library.capture_end()
    for _ in range(STEPS):
        torch.library.replay()


def checkpointed_once(x):
    x = checkpoint(block, x, False)
    torch.sum(x).backward()


def several_roots():
    weight = tensor()
    for _ in range(STEPS):
        x = torch.mul_Tensor(weight, weight)
        torch.autograd.backward([torch.sum(x), torch.relu(x)])


if __name__ == "__main__":
    torch.library.set_user_file(__file__.encode())
    globals()[sys.argv[1]]()
    torch.library.synchronize()
