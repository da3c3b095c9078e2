# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace attach of a thread that waits in one system call (waits.c)."""

import concurrent.futures
import os
import select
import time

from programs import Test

TIME_MS = 1500  # of waits.c
ATTEMPTS = 4
KERNELS = 20
EINTR = 4
ETIMEDOUT = 110

# The result of a wait, its length in ms, and how often its handler ran.
WAITS = {
    "read": (1, None, 0),
    "accept": (None, None, 0),
    "futex": (0, None, 0),
    "futex_time": (-ETIMEDOUT, TIME_MS, 0),
    "poll": (1, None, 0),
    "poll_time": (0, TIME_MS, 0),
    "select": (0, TIME_MS, 0),
    "epoll": (1, None, 0),
    "nanosleep": (0, TIME_MS, 0),
    "clock_nanosleep": (0, TIME_MS, 0),
    "thread": (1, None, 0),
    # A handler that runs meanwhile ends the call, unless the kernel would have restarted it.
    "interrupted": (-EINTR, 0, 1),
    "restarted": (1, None, 1),
    "nanosleep_interrupted": (-EINTR, 0, 1),
}


class Waits(Test):
    """A call that waits returns as if nothing had happened, with all registers as they were."""

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(len(WAITS) + 1) as pool:
            parts = [pool.submit(Wait(self.args, self.folder).run_mode, mode) for mode in WAITS]
            parts.append(pool.submit(Repeated(self.args, self.folder).run))
            for done in parts:
                done.result()


class Late(Exception):
    """A wait took longer than its time. On a busy machine, that proves nothing."""


class Wait(Test):
    def run_mode(self, mode):
        for attempt in range(ATTEMPTS):
            try:
                self.run_once(mode, "%s-%d" % (mode, attempt))
                return
            except Late as late:
                lateness = late
        raise lateness

    def run_once(self, mode, name):
        self.data = os.path.join(self.folder, name)
        with self.waits(mode) as program:
            time.sleep(0.2)
            self.attach(program)
            self.check(program, mode)

    def check(self, program, mode):
        result, time_ms, handled = WAITS[mode]
        if time_ms is None:
            time.sleep(0.05)
            assert not select.select([program.process.stdout], [], [], 0)[0], program.line()
            program.send()
        line = program.line()
        words = line.split()
        got, took, errno = int(words[1]), float(words[3]), int(words[5])
        if result is None:
            assert got > 2, line
        else:
            assert got == result, (mode, line)
        if time_ms:
            assert time_ms <= took, (mode, line)
        assert errno == 4711 and int(words[7]) == handled, (mode, line)
        assert words[8:] == ["changed"], (mode, line)
        self.finish(program)
        if time_ms and took >= time_ms + 400:
            raise Late(mode, line)

    def finish(self, program):
        """The program still uses CUDA, and xtrace records that."""
        program.send("\n\n")
        program.end()
        counts = self.counts()
        assert sum(counts.values()) == KERNELS, counts
        assert "attached" in self.summary()["trust"]["reasons"][-1]


class Repeated(Test):
    """epoll_wait() with a time may wait for it twice. A small stack is refused."""

    def run(self):
        with self.waits("epoll_time") as program:
            time.sleep(0.2)
            self.attach(program)
            words = program.line().split()
            assert words[1] == "0" and TIME_MS <= float(words[3]) < 2 * TIME_MS + 200, words
            program.send("\n\n")
            program.end()
        with self.waits("thread_small") as program:
            text = self.attach(program)  # its main thread waits in pthread_join()
            assert "recording" in text, text
            program.send()
            assert program.line().split()[8:] == ["changed"]
            program.send("\n\n")
            program.end()
