# SPDX-License-Identifier: Apache-2.0
"""Compiles functions again and again, so that new code objects and names get old addresses.

While a function sleeps, the first word of the shared file is the number in its name times 65,536,
plus 1. Otherwise the word is 0.

usage: recompiled.py MARKER_FILE ABOUT_FILE
"""
import json
import mmap
import os
import sys
import threading
import time

SOURCE = '''
def f%06d():
    word[0] = %d
    sleep(0.0003)
    word[0] = 0
f%06d()
'''

with open(sys.argv[1], 'wb') as file:
    file.write(bytes(4096))
with open(sys.argv[1], 'r+b') as file:
    word = memoryview(mmap.mmap(file.fileno(), 4096)).cast('Q')
with open(sys.argv[2] + '.new', 'w') as file:
    json.dump({'tid': threading.get_native_id()}, file)
os.rename(sys.argv[2] + '.new', sys.argv[2])
number = 100000
while True:
    number = 100000 + (number + 1) % 900000
    exec(compile(SOURCE % (number, number * 65536 + 1, number), 'file%06d.py' % number, 'exec'),
         {'word': word, 'sleep': time.sleep})
