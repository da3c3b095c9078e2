# SPDX-License-Identifier: Apache-2.0
"""Functions that are written in Python, of one tensor each."""

import ctypes
import functools

import torch

FORWARD = ctypes.CFUNCTYPE(ctypes.py_object)
BACKWARD = ctypes.CFUNCTYPE(ctypes.c_void_p, torch.Tensor)
run_forward = torch.function_of("THPFunction_apply", ctypes.py_object, torch.Tensor, ctypes.c_void_p,
                                ctypes.c_void_p, ctypes.c_char_p, FORWARD, BACKWARD)


class BackwardCFunction(ctypes.Structure):
    """The context. Its memory is part of the object, so that the object has the node's address."""

    _fields_ = [("node", ctypes.c_void_p), ("owner", ctypes.c_void_p)]

    def apply(self, grad):
        result = self._forward_cls.backward(self, grad)
        return result.give() if result is not None else None


class FunctionMeta(type):
    def __init__(cls, name, bases, attrs):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    @classmethod
    def apply(cls, tensor, *arguments):
        context = cls._backward_cls()
        forward = FORWARD(functools.partial(cls.forward, context, tensor, *arguments))
        backward = BACKWARD(context.apply)
        torch.kept += [context, backward]
        result = run_forward(tensor, id(context), ctypes.addressof(context),
                             type(context).__name__.encode(), forward, backward)
        torch.library.THPFunction_connect(result, ctypes.byref(context))
        return result
