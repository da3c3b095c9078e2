# SPDX-License-Identifier: Apache-2.0
"""Launches while the interpreter shuts down: from daemon threads, exit handlers, and objects that
die with their module. The program must not be harmed.
"""

import atexit
import ctypes
import os
import sys
import threading
import time

import gpu


bridge = ctypes.CDLL(os.environ["BRIDGE"])


def busy():
    gpu.in_thread()
    while True:
        for launch in (gpu.launch, lambda: gpu.launch(gpu.held)):
            launch()


def spin():
    """Never returns to Python."""
    gpu.in_thread()
    bridge.bridge_spin(gpu.released.cuLaunchKernel, gpu.function, 60000)


class Mortal:
    """Keeps what it needs, because its module may already be cleared."""

    def __init__(self):
        self.cuda, self.function, self.sleep = gpu.released, gpu.function, time.sleep
        self.spun = ctypes.c_ulong.in_dll(bridge, "bridge_spun")

    def __del__(self):
        for _ in range(20):
            self.sleep(0.0005)
            self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        # Wait until the spinning threads have launched while the interpreter ends.
        end = self.spun.value + 10
        while self.spun.value < end:
            self.sleep(0.001)


sys.mortal = Mortal()  # the daemon threads keep the objects of this module alive
gpu.note = lambda *arguments, **named: None  # their ledger entries are not used
atexit.register(gpu.launch)
for work in (busy, spin, busy, spin, spin):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
