# SPDX-License-Identifier: Apache-2.0
"""Launches through ctypes, and records the Python frames at each launch in a ledger.

Each launch has its own number as the first dimension of its grid, so that it can be found in the
log. The ledger has the result of sys._getframe() for it. For CPython 3.9 and later.
"""

import atexit
import ctypes
import itertools
import json
import os
import sys
import threading

KERNEL = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n\0"

# One releases the GIL during the call, the other holds it.
released = ctypes.CDLL("libcuda.so.1")
held = ctypes.PyDLL("libcuda.so.1")
numbers = itertools.count(1)
entries = []
failed = set()  # launches of a thread without a context: finalizers run in any thread
ledger = open(os.environ["LEDGER"], "a") if "LEDGER" in os.environ else None
ledger_is_live = os.environ.get("LEDGER_LIVE") == "1"
ledger_lock = threading.Lock()


def check(result):
    if result:
        raise RuntimeError("CUDA says %d" % result)


context = ctypes.c_void_p()
module = ctypes.c_void_p()
function = ctypes.c_void_p()
check(released.cuInit(0))
check(released.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(released.cuCtxSetCurrent(context))
check(released.cuModuleLoadData(ctypes.byref(module), KERNEL))
check(released.cuModuleGetFunction(ctypes.byref(function), module, b"k"))


def frames_of(frame):
    """Innermost first: function, file, line."""
    frames = []
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename,
                       frame.f_lineno))
        frame = frame.f_back
    return frames


def note(number, frame, **facts):
    entry = dict(facts, number=number, frames=frames_of(frame))
    if ledger_is_live:
        with ledger_lock:
            ledger.write(json.dumps(entry) + "\n")
            ledger.flush()
    else:
        entries.append(entry)


def write_ledger():
    if ledger and not ledger_is_live:
        ledger.writelines(json.dumps(entry) + "\n" for entry in entries
                          if entry["number"] not in failed)
        ledger.flush()


atexit.register(write_ledger)


def in_thread():
    check(released.cuCtxSetCurrent(context))


def launch(by=released, **facts):
    number = next(numbers)
    # sys._getframe() is on the line of the call, so that the lines agree.
    _, result = note(number, sys._getframe(), **facts), by.cuLaunchKernel(function, number, 1, 1, 1, 1, 1, 0, None, None, None)
    if result:
        failed.add(number)
    return number


def synchronize():
    check(released.cuCtxSynchronize())
