# SPDX-License-Identifier: Apache-2.0
"""One thread holds the interpreter lock, another waits for it, and a third waits for a lock.

usage: gil.py OUTPUT
"""
import os
import re
import sys
import threading
import time

ids = {}
mutex = threading.Lock()


def hold():
    ids['holder'] = threading.get_native_id()
    while len(ids) < 3:
        time.sleep(0.01)
    time.sleep(0.2)
    with open(sys.argv[1] + '.new', 'w') as file:
        file.write(' '.join('%s=%d' % item for item in ids.items()))
    os.rename(sys.argv[1] + '.new', sys.argv[1])
    # The regular expression engine keeps the lock.
    re.match('(a*)*b', 'a' * 40)


def wait():
    ids['waiter'] = threading.get_native_id()
    while True:
        time.sleep(0.001)


def wait_for_lock():
    ids['locked'] = threading.get_native_id()
    mutex.acquire()


mutex.acquire()
for target in (hold, wait, wait_for_lock):
    threading.Thread(target=target, daemon=True).start()
time.sleep(1000000)
