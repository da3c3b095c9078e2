# SPDX-License-Identifier: Apache-2.0
"""Random call trees: every way in which Python calls Python, nested as the seed determines.

trees.py SEED LAUNCHES. For CPython 3.9 and later.
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import random
import sys
import threading

import gpu

bridge = ctypes.CDLL(os.environ["BRIDGE"])
bridge_held = ctypes.PyDLL(os.environ["BRIDGE"])
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
DEPTH_MAX = 12


class Tree:
    is_over = False  # objects that die with the interpreter must not start threads

    def __init__(self, seed):
        self.random = random.Random(seed)

    def grow(self, depth):
        """Creates a few branches, with launches at their ends."""
        if Tree.is_over:
            return
        if depth <= 0 or self.random.random() < 0.15:
            self.leaf()
            return
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            way = self.random.choice(WAYS)
            way(self, depth - 1)

    def leaf(self):
        if self.random.random() < 0.5:
            gpu.launch()
        elif self.random.random() < 0.5:
            gpu.launch(gpu.held)
        else:
            gpu.launch(); gpu.launch()


def plainly(tree, depth):
    tree.grow(depth)


def deeply(tree, depth, more=5):
    if more:
        deeply(tree, depth, more - 1)
    else:
        tree.grow(
            depth
        )


def by_lambda(tree, depth):
    (lambda: tree.grow(depth))()


def in_list(tree, depth):
    [tree.grow(depth) for _ in range(1)]


def in_dict(tree, depth):
    {i: tree.grow(depth) for i in range(1)}


def by_generator(tree, depth):
    def generator():
        tree.grow(depth)
        yield 1
        tree.grow(depth - 3)
    for _ in generator():
        pass


def by_delegation(tree, depth):
    def inner():
        yield tree.grow(depth)

    def outer():
        yield from inner()
    list(outer())


def by_sum(tree, depth):
    sum(tree.grow(depth) or 0 for _ in range(1))


def by_map(tree, depth):
    list(map(tree.grow, [depth]))


def by_key(tree, depth):
    sorted([1], key=lambda x: tree.grow(depth) or 0)


def by_partial(tree, depth):
    functools.partial(tree.grow, depth)()


def by_callback(tree, depth):
    def callback(argument):
        tree.grow(depth)
        return 0
    bridge.bridge_call(CALLBACK(callback), 0)


def by_held_callback(tree, depth):
    def callback(argument):
        tree.grow(depth)
        return 0
    bridge_held.bridge_call(CALLBACK(callback), 0)


def in_handler(tree, depth):
    try:
        raise ValueError
    except ValueError:
        tree.grow(depth)


def in_finally(tree, depth):
    with contextlib.suppress(KeyError):
        try:
            {}[0]
        finally:
            tree.grow(depth)


def in_exit(tree, depth):
    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, *failure):
            tree.grow(depth)
    with Manager():
        pass


def in_init(tree, depth):
    class Made:
        def __init__(self, times):
            if not times:
                tree.grow(depth)
    for times in reversed(range(12)):
        Made(times)


def by_property(tree, depth):
    class Owner:
        @property
        def value(self):
            return tree.grow(depth)
    Owner().value


def by_operator(tree, depth):
    class Number:
        def __add__(self, other):
            tree.grow(depth)
            return self
    Number() + 1


def by_index(tree, depth):
    class Box:
        def __getitem__(self, key):
            tree.grow(depth)
    Box()[0]


def by_death(tree, depth):
    class Mortal:
        def __del__(self):
            tree.grow(depth)
    Mortal()


def by_collection(tree, depth):
    class Mortal:
        def __del__(self):
            tree.grow(depth)
    mortal = Mortal()
    mortal.itself = mortal
    del mortal
    gc.collect()


def in_class_body(tree, depth):
    class Body:
        value = tree.grow(depth)


def by_exec(tree, depth):
    exec("\n" * (depth % 3) + "tree.grow(depth)", {"tree": tree, "depth": depth})


def by_decorator(tree, depth):
    def decorate(function):
        @functools.wraps(function)
        def wrapper():
            return function()
        return wrapper

    @decorate
    def decorated():
        tree.grow(depth)
    decorated()


def in_coroutine(tree, depth):
    async def inner():
        await asyncio.sleep(0)
        tree.grow(depth)

    async def outer():
        await inner()
    if getattr(tree, "is_running", False):
        tree.grow(depth)
        return
    tree.is_running = True
    asyncio.run(outer())
    tree.is_running = False


def in_bare_coroutine(tree, depth):
    async def coroutine():
        tree.grow(depth)
    with contextlib.suppress(StopIteration):
        coroutine().send(None)


def in_thread(tree, depth):
    was_running, tree.is_running = getattr(tree, "is_running", False), False

    def run():
        gpu.in_thread()
        tree.grow(depth)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    tree.is_running = was_running


WAYS = [way for name, way in list(globals().items())
        if callable(way) and getattr(way, "__module__", "") == __name__
        and name not in ("Tree", "CALLBACK")]

if __name__ == "__main__":
    gc.disable()  # finalizers must not run while threading holds its locks
    seed = int(sys.argv[1])
    while len(gpu.entries) < int(sys.argv[2]):
        for _ in range(2):  # in the second round the stacks are cached
            tree = Tree(seed)
            tree.grow(DEPTH_MAX)
        seed += 1000003
    Tree.is_over = True
    gpu.synchronize()
