# SPDX-License-Identifier: Apache-2.0
"""Launches from greenlets, which move their stacks away and back. Each is switched within a chain
of function calls of its own depth, and continues there.
"""

import greenlet

from multiple import launch

COUNT, TURNS = 20, 25


def deep(depth, main):
    if depth:
        return deep(depth - 1, main)
    failed = 0
    for _ in range(TURNS):
        failed += launch(1)
        main.switch()
    return failed


def main():
    here = greenlet.getcurrent()
    many = [greenlet.greenlet(deep) for _ in range(COUNT)]
    ended = 0
    results = []
    while ended < COUNT:
        ended = 0
        for depth, one in enumerate(many):
            if one.dead:
                ended += 1
                continue
            result = one.switch(depth, here) if not one else one.switch()
            if one.dead:
                results.append(result)
    print(len(results), sum(results), flush=True)


main()
