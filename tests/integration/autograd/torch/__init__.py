# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch: the same functions call each other, on tensors without data.

The library does the work (library/binding.cpp). Its operators are called without Python frames of
this package in between, as in PyTorch. STANDIN names the library.
"""

import contextlib
import ctypes
import os

library = ctypes.CDLL(os.environ["STANDIN"])
kept = []  # callbacks that the library has


class Tensor(ctypes.c_void_p):
    """Owns a tensor of the library."""

    def __del__(self):
        if self.value and library:
            library.tensor_free(self)

    def give(self):
        """Returns the pointer, which no longer belongs to this object."""
        value, self.value = self.value, None
        return value

    def backward(self, gradient=None, create_graph=False):
        autograd.backward(self, gradient, create_graph)

    @property
    def grad(self):
        return library.tensor_grad(self)


def function_of(name, result, *arguments):
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments
    return function


for name, count in dict(addmm=3, mm=2, mul_Tensor=2, add_Tensor=2, relu=1, sum=1, slice_Tensor=1,
                        view=1, gt_Scalar=1, copy_=2).items():
    globals()[name] = function_of(name, Tensor, *[Tensor] * count)
library.tensor_free.argtypes = [Tensor]
new_tensor = function_of("tensor_new", Tensor, ctypes.c_int, ctypes.c_int)
function_of("tensor_grad", Tensor, Tensor)
clear_grad = function_of("tensor_clear_grad", None, Tensor)
HOOK = ctypes.CFUNCTYPE(None)
function_of("register_post_accumulate_grad_hook", None, Tensor, HOOK)
function_of("set_unpack_hook", None, ctypes.c_void_p)


def register_post_accumulate_grad_hook(tensor, function):
    kept.append(HOOK(function))
    library.register_post_accumulate_grad_hook(tensor, kept[-1])


@contextlib.contextmanager
def set_grad_enabled(enabled):
    before = library.set_grad_enabled(enabled)
    try:
        yield
    finally:
        library.set_grad_enabled(before)


def here():
    """The caller's place in the names of kernels."""
    text = ctypes.create_string_buffer(1024)
    library.here(text, len(text))
    return text.value


from torch import autograd  # noqa: E402
