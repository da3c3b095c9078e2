#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests reading several logs in parallel. Outputs and messages must be the same as when they are
read one after another.

The logs have different lengths, so that they finish in another order. One is damaged, one
truncated, one empty, one no log, one missing.
"""

import os
import subprocess
import sys
import tempfile
import unittest

MERGE, GENERATOR = sys.argv[1:3]
SEEDS = range(1, 8)
OUTPUTS = [
    ["--folded"],
    ["--folded", "--by", "thread"],
    ["--weight", "count", "--svg"],
    ["--weight", "gpu-exclusive", "--folded"],
    ["--weight", "gpu-idle", "--folded"],
    ["--weight", "alloc-bytes", "--folded"],
    ["--pprof"],
    ["--speedscope"],
    ["--brief"],
    # These receive events as they are read.
    ["--text"],
    ["--chrome"],
    # This one reads the tree.
    ["--filter", "cuLaunch", "--folded"],
]


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
        output = self.path("output")
        done = subprocess.run([MERGE, "--jobs", str(jobs), *arguments, output, *logs],
                              capture_output=True, text=True, check=False, timeout=120)
        with open(output, "rb") as file:
            return done.returncode, done.stdout, done.stderr, file.read()

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
