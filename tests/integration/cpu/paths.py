# SPDX-License-Identifier: Apache-2.0
"""Calls functions along a few known paths, fast. usage: paths.py SECONDS"""
import json
import sys
import time


def leaf_a(n):
    return sum(range(n))


def leaf_b(n):
    return len(json.dumps(list(range(n))))


def middle_a(n):
    return leaf_a(n)


def middle_b(n):
    return leaf_b(n)


def outer_a(n):
    return [middle_a(n) for _ in range(3)]


def outer_b(n):
    return sorted(range(3), key=lambda _: middle_b(n // 20))


def main(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        outer_a(3000)
        outer_b(3000)


main(float(sys.argv[1]))
