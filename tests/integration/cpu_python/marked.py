# SPDX-License-Identifier: Apache-2.0
"""Runs through many functions and says in a shared file which one is innermost.

The first word of the file is a sequence number times 65,536, plus the number of the function.
During a call or return, this number is 0. So while a word with a function does not change, that
function is the innermost one. The call sites are drawn when the source is made: each line with a
call calls one function.

usage: marked.py MARKER_FILE SITES_FILE
"""
import json
import mmap
import os
import random
import sys
import threading
import time
import zlib

FUNCTIONS = 40
data = bytes(200000)
sites = {}
lines_of = {} # function of each line with a comprehension


def make_source(draw):
    lines = ['count = 0']

    def add(text):
        lines.append(text)
        return len(lines)

    def mark(n):
        add('    count += 65536; word[0] = count | %d' % n)

    for n in range(1, FUNCTIONS + 1):
        add('def f%d(depth):' % n)
        add('    global count')
        mark(n)
        for _ in range(draw.randint(1, 3)):
            work = draw.randrange(4)
            if work == 0:
                add('    crc32(data[:%d])' % draw.randint(1000, 200000))
            elif work == 1:
                add('    for _ in range(%d): pass' % draw.randint(1, 3000))
            elif work == 2:
                add('    sorted(range(%d), key=abs)' % draw.randint(10, 3000))
            else:
                lines_of[add('    sum([i * i for i in range(%d)])' %
                             draw.randint(10, 3000))] = 'f%d' % n
            called = draw.randint(1, FUNCTIONS)
            mark(0)
            sites['f%d:%d' % (n, add('    if depth: f%d(depth - 1)' % called))] = 'f%d' % called
            mark(n)
        # Calls in turn, without pauses: reads of different moments would pair a line with the
        # wrong function.
        mark(0)
        add('    for _ in range(%d):' % draw.randint(1, 50))
        for _ in range(3):
            called = draw.randint(1, 5)
            sites['f%d:%d' % (n, add('        g%d()' % called))] = 'g%d' % called
    for n in range(1, 6):
        add('def g%d():' % n)
        sites['g%d:%d' % (n, add('    h%d()' % n))] = 'h%d' % n
        add('def h%d(): return' % n)
    return '\n'.join(lines)


def main():
    draw = random.Random(1)
    with open(sys.argv[1], 'wb') as file:
        file.write(bytes(4096))
    with open(sys.argv[1], 'r+b') as file:
        word = memoryview(mmap.mmap(file.fileno(), 4096)).cast('Q')
    scope = {'word': word, 'crc32': zlib.crc32, 'data': data}
    exec(compile(make_source(draw), 'made.py', 'exec'), scope)
    with open(sys.argv[2] + '.new', 'w') as file:
        json.dump({'tid': threading.get_native_id(), 'sites': sites, 'lines': lines_of}, file)
    os.rename(sys.argv[2] + '.new', sys.argv[2])
    while True:
        scope['f%d' % draw.randint(1, FUNCTIONS)](draw.randint(0, 6))


main()
