#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sampled_share.py SHARE CHUNK_US SECONDS: the Python version of sampled_share.c.

Two functions take turns, and the first gets this share of the CPU time. Prints the share that the
thread's CPU clock measured, as JSON.
"""

import json
import random
import sys
import time

CALIBRATION = 200000


def first_work(count):
    total = 0
    for i in range(count):
        total = total * 31 + i & 0xffff
    return total


def second_work(count):
    total = 0
    for i in range(count):
        total = total * 31 + i & 0xffff
    return total


def cpu_ns_of(work, count):
    begin = time.thread_time_ns()
    work(count)
    return time.thread_time_ns() - begin


def main():
    share, chunk_us, seconds = map(float, sys.argv[1:])
    random.seed(chunk_us + share)
    counts = 1e3 * chunk_us * CALIBRATION / cpu_ns_of(first_work, CALIBRATION)
    first_ns = second_ns = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        first_ns += cpu_ns_of(first_work, int(random.uniform(0.5, 1.5) * share * counts))
        second_ns += cpu_ns_of(second_work, int(random.uniform(0.5, 1.5) * (1 - share) * counts))
    print(json.dumps({"share": first_ns / (first_ns + second_ns), "cpu_ns": first_ns + second_ns}))


if __name__ == "__main__":
    main()
