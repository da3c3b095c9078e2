# SPDX-License-Identifier: Apache-2.0
"""Launches in a second interpreter of the same thread, and after it in the first."""

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
gpu.numbers = itertools.count(1000)


def inside(by):
    gpu.launch(by, inside=True)
    gpu.launch(by, inside=True)


inside(gpu.released)
inside(gpu.held)
"""


def create():
    if sys.version_info < (3, 12):
        return interpreters.create()
    if sys.version_info < (3, 13):
        return interpreters.create(isolated=False)
    return interpreters.create("legacy")


def work():
    gpu.launch()
    number = create()
    gpu.note(0, sys._getframe(), outside=True); interpreters.run_string(number, WORK % sys.path)
    gpu.launch()
    interpreters.destroy(number)
    gpu.launch()


work()
gpu.synchronize()
