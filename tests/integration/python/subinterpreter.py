# SPDX-License-Identifier: Apache-2.0
"""Launches in a second interpreter of the same thread, and in the first one before, meanwhile and
after.

Up to 3.11, a thread does not tell which of its interpreters runs, except the one that holds the
GIL. Launches are uncertain if they release the GIL, or hold it in the second interpreter.
"""

import sys

import gpu

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

WORK = """
import itertools, sys
sys.path[:] = %r
import gpu
gpu.numbers = itertools.count(%d)


def inside(by):
    gpu.launch(by, uncertain=True)
    gpu.launch(by, uncertain=True)


inside(gpu.released)
inside(gpu.held)
"""


def create():
    if sys.version_info < (3, 12):
        return interpreters.create()
    if sys.version_info < (3, 13):
        return interpreters.create(isolated=False)
    return interpreters.create("legacy")


def work(first):
    gpu.launch()
    number = create()
    gpu.launch(gpu.held)
    interpreters.run_string(number, WORK % (sys.path, first))
    gpu.launch(uncertain=True)
    gpu.launch(gpu.held)
    interpreters.destroy(number)
    gpu.launch()


for repetition in range(1, 4):
    work(1000 * repetition)
gpu.synchronize()
