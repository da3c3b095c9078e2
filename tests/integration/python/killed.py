# SPDX-License-Identifier: Apache-2.0
"""Launches from a new line each time, then is killed: killed.py LAUNCHES. The ledger lists the
calls."""

import os
import signal
import sys

import gpu


def place(number):
    name = "place_%d" % number
    names = {"gpu": gpu}
    exec(compile("def %s():\n%s gpu.launch()\n gpu.launch()\n" % (name, "\n" * (number % 50)),
                 "killed_%d.py" % (number % 7), "exec"), names)
    return names[name]


def work(count):
    for number in range(count // 2):
        place(number)()


work(int(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
