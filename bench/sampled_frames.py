#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sampled_frames.py FOLDER SECONDS: marks which function runs when, in random trees of calls.

Each of two threads writes markers to a mapped file, FOLDER/markers.TID: time (monotonic ns) and
code, both u64. A code is 4 * function + action. Between a marker ENTER or RETURNED and the next
CALL or LEAVE, the thread is in that function. At all other moments the function is uncertain.
tests/gpu/cpu.py compares the frames in CPU samples with the markers.
"""

import mmap
import os
import random
import struct
import sys
import threading
import time

ENTER, CALL, RETURNED, LEAVE = range(4)
FUNCTIONS = 6
THREADS = 2
DEPTH = 5
MARKER_BYTES = 16
FILE_BYTES = 32 << 20

# Markers are written inline: a function for that would add a frame. Iterations are short, but some
# calls wait, so that samples of blocked threads are checked, too.
SOURCE = """
def function_%(number)d(t, depth):
    mark(t.file, t.at, now(), %(enter)d); t.at += 16
    for _ in range(int(draw() * %(iterations)d)):
        pass
    if depth and t.at < t.end:
        for _ in range(2):
            callee = functions[int(draw() * len(functions))]
            mark(t.file, t.at, now(), %(call)d); t.at += 16
            callee(t, depth - 1)
            mark(t.file, t.at, now(), %(returned)d); t.at += 16
            for _ in range(int(draw() * %(iterations)d)):
                pass
    elif draw() < 0.02:
        wait(draw() * 0.02)
    mark(t.file, t.at, now(), %(leave)d); t.at += 16
functions.append(function_%(number)d)
"""


class Thread(threading.Thread):
    def __init__(self, folder, seconds, functions):
        super().__init__()
        self.folder, self.seconds, self.functions, self.at = folder, seconds, functions, 0
        self.end = FILE_BYTES - (DEPTH + 2) * 4 * MARKER_BYTES

    def run(self):
        path = os.path.join(self.folder, "markers.%d" % threading.get_native_id())
        with open(path, "w+b") as file:
            file.truncate(FILE_BYTES)
            self.file = mmap.mmap(file.fileno(), FILE_BYTES)
            end = time.monotonic() + self.seconds
            while time.monotonic() < end and self.at < self.end:
                self.functions[int(random.random() * FUNCTIONS)](self, DEPTH)
            file.truncate(self.at)


def main():
    folder, seconds = sys.argv[1], float(sys.argv[2])
    source = "".join(SOURCE % {
        "number": i, "iterations": 100 * 4 ** i, "enter": 4 * i + ENTER, "call": 4 * i + CALL,
        "returned": 4 * i + RETURNED, "leave": 4 * i + LEAVE} for i in range(FUNCTIONS))
    functions = []
    exec(compile(source, os.path.join(folder, "generated.py"), "exec"), {
        "functions": functions, "mark": struct.Struct("=QQ").pack_into, "now": time.monotonic_ns,
        "draw": random.random, "wait": time.sleep})
    threads = [Thread(folder, seconds, functions) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
