# SPDX-License-Identifier: Apache-2.0
"""The function whose frames the tracer looks for."""

import ctypes

import torch

run_backward = torch.function_of("THPEngine_run_backward", None, ctypes.c_void_p, ctypes.c_void_p,
                                 ctypes.c_int, ctypes.c_int)


def array_of(tensors):
    return (ctypes.c_void_p * len(tensors))(*(tensor.value for tensor in tensors))


def _engine_run_backward(t_outputs, grad_tensors, create_graph):
    outputs = array_of(t_outputs)
    grads = array_of(grad_tensors) if grad_tensors else None
    return run_backward(outputs, grads, len(t_outputs), create_graph)
