# SPDX-License-Identifier: Apache-2.0
"""The call of the engine."""

from torch.autograd import graph
from torch.autograd.function import Function

__all__ = ["Function", "backward"]


def backward(tensors, grad_tensors=None, create_graph=False):
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    grad_tensors = [grad_tensors] if grad_tensors is not None else None
    graph._engine_run_backward(tensors, grad_tensors, create_graph)
