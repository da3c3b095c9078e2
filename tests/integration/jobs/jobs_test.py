#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests reading one log with several threads, and several logs in parallel. Outputs and messages
must be the same as with one thread.

The several logs have different lengths, so that they finish in another order. One is damaged, one
truncated, one empty, one no log, one missing.
"""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

MERGE, GENERATOR = sys.argv[1:3]
SEEDS = range(1, 8)
OUTPUTS = [
    ["--folded"],
    ["--folded", "--by", "thread"],
    ["--weight", "count", "--folded"],
    ["--weight", "gpu-exclusive", "--folded"],
    ["--weight", "gpu-idle", "--folded"],
    ["--weight", "alloc-bytes", "--folded"],
    ["--pprof"],
    ["--brief"],
    # These receive events as they are read.
    ["--text"],
    ["--chrome"],
    # This one reads the tree.
    ["--filter", "cuLaunch", "--folded"],
]


def merge(jobs, arguments, folder, logs):
    output = os.path.join(folder, "output")
    done = subprocess.run([MERGE, "--jobs", str(jobs), *arguments, output, *logs],
                          capture_output=True, text=True, check=False, timeout=120)
    with open(output, "rb") as file:
        return done.returncode, done.stdout, done.stderr, file.read()


LOG_HEADER_BYTES = 64
CHUNK_HEADER = struct.Struct("<IHHIIIIII")
CALL, KERNEL = 10, 13  # kinds of chunks


def split(log):
    """The header of a log, and its chunks as (kind, bytes)."""
    chunks = []
    at = LOG_HEADER_BYTES
    while at < len(log):
        _, kind, _, stored_bytes, *_ = CHUNK_HEADER.unpack_from(log, at)
        chunks.append((kind, log[at:at + CHUNK_HEADER.size + stored_bytes]))
        at += CHUNK_HEADER.size + stored_bytes
    return log[:LOG_HEADER_BYTES], chunks


def damage(header, chunks):
    """Changes a byte in every fifth chunk of events."""
    events = 0
    for kind, chunk in chunks:
        events += kind in (CALL, KERNEL)
        if kind in (CALL, KERNEL) and events % 5 == 3:
            middle = len(chunk) // 2
            chunk = chunk[:middle] + bytes([chunk[middle] ^ 0xff]) + chunk[middle + 1:]
        header += chunk
    return header


def lose(header, chunks):
    """Leaves out every fourth chunk of events."""
    events = 0
    for kind, chunk in chunks:
        events += kind in (CALL, KERNEL)
        if kind not in (CALL, KERNEL) or events % 4 != 1:
            header += chunk
    return header


def reverse(header, chunks):
    """Kernels before calls, and the latest of each first."""
    events = [chunk for chunk in chunks if chunk[0] in (CALL, KERNEL)]
    events.sort(key=lambda chunk: chunk[0])
    return header + b"".join(chunk for kind, chunk in chunks[:-1] if kind not in (CALL, KERNEL)) + \
        b"".join(chunk for _, chunk in events[::-1]) + chunks[-1][1]


ONE_LOG_OUTPUTS = [
    ["--folded"],
    ["--folded", "--by", "thread"],
    ["--weight", "gpu-idle", "--folded"],
    ["--weight", "alloc-bytes", "--folded"],
    ["--filter", "cuLaunch", "--folded"],
]


class OneLog(unittest.TestCase):
    """Threads that decode the chunks of one log change nothing."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="xtrace-jobs-")
        cls.log = os.path.join(cls.folder.name, "log.xtr")
        subprocess.run([GENERATOR, cls.log, "300000", "4", "6"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(cls.log, "rb") as file:
            cls.content = file.read()
        header, chunks = split(cls.content)
        assert sum(kind in (CALL, KERNEL) for kind, _ in chunks) >= 16, len(chunks)
        cls.parts = header, chunks

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, content, outputs):
        with open(self.log, "wb") as file:
            file.write(content)
        for arguments in outputs:
            alone = merge(1, arguments, self.folder.name, [self.log])
            self.assertGreater(len(alone[3]), 500)
            for jobs in (2, 4):
                with self.subTest(arguments=arguments, jobs=jobs):
                    self.assertEqual(merge(jobs, arguments, self.folder.name, [self.log]), alone)
        return alone

    def test_intact(self):
        self.assertEqual(self.check(self.content, ONE_LOG_OUTPUTS)[0], 0)

    def test_damaged_chunks(self):
        self.assertIn("damaged", self.check(damage(*self.parts), ONE_LOG_OUTPUTS[2:])[2])

    def test_lost_chunks(self):
        self.check(lose(*self.parts), ONE_LOG_OUTPUTS[:2])

    def test_order_of_chunks(self):
        self.check(reverse(*self.parts), ONE_LOG_OUTPUTS[:3])

    def test_small_log(self):
        subprocess.run([GENERATOR, self.log, "500"], check=True, stdout=subprocess.DEVNULL)
        with open(self.log, "rb") as file:
            self.assertEqual(self.check(file.read(), OUTPUTS)[0], 0)


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="xtrace-jobs-")
        cls.logs = []
        for seed in SEEDS:
            launches = 20000 // seed
            cls.logs.append(cls.path(f"{seed}.xtr"))
            subprocess.run([GENERATOR, cls.logs[-1], str(launches), "4", "6", str(seed)], check=True,
                           stdout=subprocess.DEVNULL)
        with open(cls.logs[2], "r+b") as file:
            file.seek(os.path.getsize(cls.logs[2]) // 2)
            file.write(b"damage" * 10)
        os.truncate(cls.logs[3], os.path.getsize(cls.logs[3]) * 2 // 3)
        os.truncate(cls.logs[4], 0)
        with open(cls.path("other.xtr"), "wb") as file:
            file.write(b"no log" * 100)
        cls.logs[1:1] = [cls.path("other.xtr"), cls.path("missing.xtr")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def merge(self, jobs, arguments, logs):
        return merge(jobs, arguments, self.folder.name, logs)

    def test_same_bytes(self):
        for arguments in OUTPUTS:
            alone = self.merge(1, arguments, self.logs)
            self.assertEqual(alone[0], 1, alone[2])
            self.assertIn("other.xtr", alone[2])
            self.assertGreater(len(alone[3]), 500)
            for jobs in (3, 8):
                with self.subTest(arguments=arguments, jobs=jobs):
                    self.assertEqual(self.merge(jobs, arguments, self.logs), alone)

    def test_again_and_again(self):
        alone = self.merge(1, ["--folded"], self.logs)
        for _ in range(5):
            self.assertEqual(self.merge(8, ["--folded"], self.logs), alone)

    def test_order_of_logs(self):
        for logs in (self.logs[::-1], self.logs[3:] + self.logs[:3]):
            self.assertEqual(self.merge(8, ["--pprof"], logs), self.merge(1, ["--pprof"], logs))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
