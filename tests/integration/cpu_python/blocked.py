# SPDX-License-Identifier: Apache-2.0
"""Threads that block in many kinds of code. Writes to a file what Python says about their frames.

usage: blocked.py OUTPUT
"""
import asyncio
import functools
import json
import os
import queue
import sys
import threading
import time

FOREVER = 1000000
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def block():
    time.sleep(FOREVER)


@case
def sleep():
    time.sleep(FOREVER)


@case
def queue_get():
    queue.Queue().get()


@case
def lock():
    mutex = threading.Lock()
    mutex.acquire()
    mutex.acquire()


@case
def recursion(depth=100):
    if depth:
        recursion(depth - 1)
    else:
        block()


@case
def deep_recursion(depth=1500):
    if depth:
        deep_recursion(depth - 1)
    else:
        block()


@case
def generator():
    def inner():
        yield 1
        block()

    def outer():
        yield 0
        yield from inner()

    list(outer())


@case
def generator_expression():
    list(block() for _ in range(1))


@case
def coroutine():
    async def inner():
        await asyncio.sleep(0)
        block()

    async def outer():
        await inner()

    asyncio.new_event_loop().run_until_complete(outer())


@case
def comprehension():
    return [block() for _ in range(2)]


@case
def nested_lambda():
    (lambda: (lambda: time.sleep(FOREVER))())()


@case
def class_body():
    class Body:
        value = block()


@case
def code_without_file():
    exec(compile('\n\ndef made():\n\n    block()\nmade()', '<made>', 'exec'),
         {'block': block})


@case
def constructor():
    class Made:
        def __init__(self):
            block()

    Made()


@case
def callback_from_c():
    sorted([2, 1], key=lambda _: functools.reduce(lambda *_: block(), [1, 2]))


@case
def method_and_property():
    class Owner:
        @property
        def value(self):
            return self.method()

        def method(self):
            block()

    Owner().value


@case
def context_and_exception():
    try:
        raise ValueError('x')
    except ValueError:
        with open(os.devnull):
            block()


@case
def names_in_other_scripts():
    exec(compile('def größe():\n    block()\ndef 大きさ():\n    größe()\n大きさ()',
                 '/größe/大きさ\U0001f40d.py', 'exec'), {'block': block})


@case
def long_texts():
    name = 'f' * 1500
    exec(compile('def %s():\n    block()\n%s()' % (name, name), '/d' * 3000 + '.py', 'exec'),
         {'block': block})


@case
def after_many_frames():
    for _ in range(1000):
        sum(n for n in range(3))
    block()


def frames_of(frame):
    out = []
    while frame:
        code = frame.f_code
        out.append([getattr(code, 'co_qualname', code.co_name), code.co_filename,
                    code.co_firstlineno, frame.f_lineno])
        frame = frame.f_back
    return out


def main():
    ids = {}

    def run(name):
        ids[name] = (threading.get_ident(), threading.get_native_id())
        CASES[name]()

    sys.setrecursionlimit(5000)
    threading.stack_size(64 << 20)
    for name in CASES:
        threading.Thread(target=run, args=(name,), daemon=True).start()
    while len(ids) < len(CASES):
        time.sleep(0.01)
    time.sleep(1)
    frames = sys._current_frames()
    said = {name: {'tid': tid, 'frames': frames_of(frames[ident])}
            for name, (ident, tid) in ids.items()}
    with open(sys.argv[1] + '.new', 'w') as file:
        json.dump(said, file)
    os.rename(sys.argv[1] + '.new', sys.argv[1])
    block()


main()
