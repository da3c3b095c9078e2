# SPDX-License-Identifier: Apache-2.0
"""Launches from threads with unusual Python states. Either their thread-local variable names a
state that another thread runs or has deleted, or it does not name their state.

The ledger gives the expected frames of each launch.
"""

import ctypes
import os
import sys

import gpu

COUNT = 200  # launches per case: the first is unwound, the others hit the stack cache


class Native(ctypes.Structure):
    _fields_ = [("launch", ctypes.c_void_p), ("function", ctypes.c_void_p),
                ("set_context", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("first", ctypes.c_uint), ("count", ctypes.c_uint), ("inner", ctypes.c_char_p)]


released = ctypes.CDLL(os.environ["BRIDGE"])
held = ctypes.PyDLL(os.environ["BRIDGE"])


def native(first, inner, by_itself=True):
    """A thread whose launches have no Python frames of their own."""
    launched = range(first, first + COUNT) if by_itself else ()
    gpu.entries.extend({"number": number, "frames": [], "native": True} for number in launched)
    return Native(ctypes.cast(gpu.released.cuLaunchKernel, ctypes.c_void_p), gpu.function,
                  ctypes.cast(gpu.released.cuCtxSetCurrent, ctypes.c_void_p), gpu.context,
                  first, COUNT, inner.encode())


def deep(by, depth):
    return deep(by, depth - 1) if depth else by.states_stand()


def hand_over(first):
    """Within Python: its own frames are below another thread's."""
    held.states_hand_over(ctypes.byref(native(first, "deep(held, 5)")))
    held.states_hand_over(ctypes.byref(native(first + 1000, "deep(released, 5)")))


def deleted():
    orphan = native(70000, "")
    released.states_begin_orphan(ctypes.byref(orphan))
    held.states_delete()
    released.states_end_orphan()


gpu.launch()
if sys.version_info < (3, 14):  # later versions bind a state to the stack of its thread
    released.states_hand_over_in_thread(ctypes.byref(native(10000, "deep(held, 5)")))
    released.states_hand_over_in_thread(ctypes.byref(native(20000, "deep(released, 5)")))
    hand_over(30000)
    gpu.launch()
held.states_lend(ctypes.byref(native(50000, "[gpu.launch(lent=True) for _ in range(2)]", False)))
gpu.launch()
gpu.synchronize()
deleted()
gpu.released.cuCtxSynchronize()
