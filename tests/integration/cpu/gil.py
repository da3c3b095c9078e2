# SPDX-License-Identifier: Apache-2.0
"""Two threads compete for the interpreter lock. usage: gil.py SECONDS"""
import sys
import threading
import time

end = time.monotonic() + float(sys.argv[1])


def spin():
    while time.monotonic() < end:
        sum(range(200))


threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
