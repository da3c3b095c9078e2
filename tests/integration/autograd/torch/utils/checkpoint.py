# SPDX-License-Identifier: Apache-2.0
"""Both kinds of checkpoints. Functions are run again when their backward pass begins."""

import contextlib
import ctypes

import torch
from torch.autograd import Function


@contextlib.contextmanager
def recomputing(place):
    torch.library.recompute_begin(place)
    try:
        with torch.set_grad_enabled(True):
            yield
    finally:
        torch.library.recompute_end()


class CheckpointFunction(Function):
    @staticmethod
    def forward(ctx, tensor, run_function):
        ctx.run_function = run_function
        ctx.tensor = tensor
        ctx.place = torch.here()
        return run_function(tensor)

    @staticmethod
    def backward(ctx, grad):
        detached = torch.new_tensor(0, 1)
        with recomputing(ctx.place):
            outputs = ctx.run_function(detached)
        torch.autograd.backward(outputs, grad)
        return detached.grad


@contextlib.contextmanager
def saved_tensors_hooks(unpack):
    torch.kept.append(torch.HOOK(unpack))
    torch.library.set_unpack_hook(ctypes.cast(torch.kept[-1], ctypes.c_void_p))
    try:
        yield
    finally:
        torch.library.set_unpack_hook(None)


def checkpoint(function, tensor, use_reentrant):
    if use_reentrant:
        return CheckpointFunction.apply(tensor, function)
    place = torch.here()
    recomputed = set()

    def recompute_fn(tensor):
        function(tensor)

    def unpack_hook():
        task = torch.library.current_graph_task_id()
        if task not in recomputed:
            recomputed.add(task)
            with recomputing(place):
                recompute_fn(tensor)

    with saved_tensors_hooks(unpack_hook):
        return function(tensor)
